package store

import (
	"encoding/json"

	"github.com/ethereum/go-ethereum/common"
)

// Kinds of change. The data of each is the state after it, so that a reader who
// drops what was retracted and takes the rest in (block, log) order has the
// state of the tables.
const (
	KindTransferred = "agent.transferred"
	KindRegistered  = "agent.registered"
	KindURI         = "agent.uri"
	KindWallet      = "agent.wallet"
	KindMetadata    = "agent.metadata"
	KindApproval    = "agent.approval"
	KindOperator    = "operator"
	KindFeedback    = "feedback.given"
	KindRevoked     = "feedback.revoked"
	KindResponse    = "response.appended"
	KindRequested   = "validation.requested"
	KindResponded   = "validation.responded"

	// KindBackfilled stands for all changes of a range of blocks: read the state.
	KindBackfilled = "backfilled"
	// KindRewound says that everything above its block is undone; KindRetracted
	// follows for every change it undoes.
	KindRewound = "rewound"
	// KindRetracted says that one earlier change is undone; the change is named by Retracts.
	KindRetracted = "retracted"
	// KindRepaired says that an agent, or the whole chain where none is named, was
	// rebuilt from its events: read the state.
	KindRepaired = "repaired"
)

// Marshal returns the JSON of the data of a change. It does not fail: the JSON of a value that cannot be
// marshaled is an object with the error.
func Marshal(data any) []byte {
	b, err := json.Marshal(data)
	if err != nil {
		b, _ = json.Marshal(map[string]string{"error": err.Error()})
	}
	return b
}

// Eip55 is an address that marshals with its checksum.
type Eip55 common.Address

// MarshalText writes 0x and 40 digits, capitals by EIP-55.
func (a Eip55) MarshalText() ([]byte, error) { return []byte(common.Address(a).Hex()), nil }

// Maybe returns an address that marshals to null when it is zero.
func Maybe(a common.Address) *Eip55 {
	if a == (common.Address{}) {
		return nil
	}
	return (*Eip55)(&a)
}
