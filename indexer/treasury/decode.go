package treasury

import (
	"encoding/json"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/contracts"
	"repute/contracts/bindings"
	"repute/store/walletdb"
)

// unreadable is the kind of a log that is no event of the treasury.
const unreadable = "Unreadable"

// decoder reads the events of a treasury.
type decoder struct {
	abi    abi.ABI
	topics []common.Hash
}

// newDecoder returns a decoder of all events that a treasury emits.
func newDecoder() decoder {
	d := decoder{abi: bindings.NewOpenFiTreasury().GetABI()}
	for _, e := range d.abi.Events {
		d.topics = append(d.topics, e.ID)
	}
	return d
}

// event decodes a log. A log that cannot be decoded is kept with its raw topics and data.
func (d *decoder) event(chainID uint64, l *types.Log, in repute.Block) walletdb.TreasuryEvent {
	e := walletdb.TreasuryEvent{ChainID: chainID, Treasury: l.Address, Block: in, LogIndex: uint32(l.Index), Tx: l.TxHash}
	kind, fields, err := contracts.DecodeEvent(d.abi, l)
	if err != nil {
		e.Kind, e.Fields = unreadable, encoded(map[string]any{"topics": l.Topics, "data": hexutil.Bytes(l.Data)})
		return e
	}
	e.Kind = kind
	plain := map[string]any{}
	for name, v := range fields {
		plain[name] = contracts.Plain(v)
	}
	for name, into := range map[string]*common.Hash{"agentKey": &e.Agent, "runId": &e.Run, "taskId": &e.Task} {
		if v, ok := fields[name].([32]byte); ok {
			*into = v
		}
	}
	e.Fields = encoded(plain)
	return e
}

// encoded returns a decoded argument as JSON. It is null for a value that JSON cannot express, so
// that one unusual value does not stop the follower.
func encoded(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return b
}
