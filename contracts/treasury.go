package contracts

import (
	"encoding/json"
	"slices"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/contracts/bindings"
)

// treasuryABI is the ABI of OpenFiTreasury, and treasuryTopics the first topics of its events. Both are computed
// once and never changed.
var (
	treasuryABI    = bindings.NewOpenFiTreasury().GetABI()
	treasuryTopics = eventTopics(treasuryABI)
)

// eventTopics returns the first topics of the events of an ABI, in ascending order.
func eventTopics(of abi.ABI) (topics []common.Hash) {
	for _, e := range of.Events {
		topics = append(topics, e.ID)
	}
	slices.SortFunc(topics, common.Hash.Cmp)
	return topics
}

// TreasuryTopics lists the first topics of what an OpenFiTreasury emits. A registry emits one of them too:
// OwnershipTransferred.
func TreasuryTopics() []common.Hash { return slices.Clone(treasuryTopics) }

// isTreasuryEvent reports whether a log has a topic that only an OpenFiTreasury emits.
func isTreasuryEvent(l *types.Log) bool {
	return shapeOf[l.Topics[0]] == nil && slices.Contains(treasuryTopics, l.Topics[0])
}

// decodeTreasury decodes a log of a treasury. A log that cannot be decoded is kept with its raw topics and data,
// because no such log may be lost.
func decodeTreasury(l *types.Log) repute.TreasuryEvent {
	name, fields, err := DecodeEvent(treasuryABI, l)
	if err != nil {
		return repute.TreasuryEvent{Name: repute.TreasuryUnreadable,
			Fields: encodedFields(map[string]any{"topics": l.Topics, "data": hexutil.Bytes(l.Data)})}
	}
	e := repute.TreasuryEvent{Name: name}
	plain := map[string]any{}
	for field, v := range fields {
		plain[field] = Plain(v)
	}
	for field, into := range map[string]*common.Hash{"agentKey": &e.Agent, "runId": &e.Run, "taskId": &e.Task} {
		if v, ok := fields[field].([common.HashLength]byte); ok {
			*into = v
		}
	}
	e.Fields = encodedFields(plain)
	return e
}

// encodedFields returns decoded arguments as JSON. It is null for a value that JSON cannot express, so that one
// unusual value does not stop the indexer.
func encodedFields(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return b
}
