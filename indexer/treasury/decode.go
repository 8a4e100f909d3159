package treasury

import (
	"encoding/json"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/contracts/bindings"
	"repute/store"
)

// unreadable is the kind of a log that is none of the treasury's events.
const unreadable = "Unreadable"

// decoder reads the events of a treasury.
type decoder struct {
	abi    abi.ABI
	topics []common.Hash
}

func newDecoder() decoder {
	d := decoder{abi: bindings.NewOpenFiTreasury().GetABI()}
	for _, e := range d.abi.Events {
		d.topics = append(d.topics, e.ID)
	}
	return d
}

// event reads a log. One that cannot be read is kept as it is.
func (d *decoder) event(chainID uint64, l *types.Log, in repute.Block) store.TreasuryEvent {
	e := store.TreasuryEvent{ChainID: chainID, Treasury: l.Address, Block: in, LogIndex: uint32(l.Index), Tx: l.TxHash}
	fields, kind, err := d.fields(l)
	if err != nil {
		e.Kind, e.Fields = unreadable, encoded(map[string]any{"topics": l.Topics, "data": hexutil.Bytes(l.Data)})
		return e
	}
	e.Kind = kind
	said := map[string]any{}
	for name, v := range fields {
		said[name] = text(v)
	}
	for name, into := range map[string]*common.Hash{"agentKey": &e.Agent, "runId": &e.Run, "taskId": &e.Task} {
		if v, ok := fields[name].([32]byte); ok {
			*into = v
		}
	}
	e.Fields = encoded(said)
	return e
}

func (d *decoder) fields(l *types.Log) (map[string]any, string, error) {
	if len(l.Topics) == 0 {
		return nil, "", fmt.Errorf("log without topics")
	}
	event, err := d.abi.EventByID(l.Topics[0])
	if err != nil {
		return nil, "", err
	}
	fields := map[string]any{}
	if len(l.Data) > 0 || len(event.Inputs.NonIndexed()) > 0 {
		if err := event.Inputs.UnpackIntoMap(fields, l.Data); err != nil {
			return nil, "", err
		}
	}
	var indexed abi.Arguments
	for _, a := range event.Inputs {
		if a.Indexed {
			indexed = append(indexed, a)
		}
	}
	return fields, event.Name, abi.ParseTopicsIntoMap(fields, indexed, l.Topics[1:])
}

// text is a value as JSON has it: amounts are decimal, bytes hex.
func text(v any) any {
	switch v := v.(type) {
	case *big.Int:
		return v.String()
	case common.Address:
		return v.Hex()
	case [32]byte:
		return hexutil.Encode(v[:])
	case [4]byte:
		return hexutil.Encode(v[:])
	case bool:
		return v
	case string:
		return v
	}
	return fmt.Sprint(v)
}

func encoded(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return b
}
