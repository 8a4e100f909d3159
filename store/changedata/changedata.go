// Package changedata is what changes of the feed say: their kinds, and the data of each as readers get it.
//
// Package store stores and returns changes and knows nothing of their content. Packages that write them take the kind
// and the types of the data from here, and packages that react to changes, such as webhooks that wait for a score to
// fall, read the data with the same types. The data of changes that follow from events of the chain is written by
// package eventdb alone and defined there.
//
// The JSON of a change is a contract with readers of the feed.
package changedata

import (
	"encoding/json"

	"github.com/ethereum/go-ethereum/common"
)

// Kinds of change. The data of each is the state after it, so that a reader who
// drops what was retracted and takes the rest in (block, log) order has the
// state of the tables. Changes of scores are in the order of the feed.
const (
	// KindTransferred says that an agent was minted or changed its owner, which clears wallet and
	// approval.
	KindTransferred = "agent.transferred"
	// KindRegistered says that an agent got its first URI, and its owner where no transfer was
	// seen.
	KindRegistered = "agent.registered"
	// KindURI says that the owner replaced the URI of an agent.
	KindURI = "agent.uri"
	// KindWallet says that the verified wallet of an agent was set or cleared.
	KindWallet = "agent.wallet"
	// KindMetadata says that a metadata value of an agent was set.
	KindMetadata = "agent.metadata"
	// KindApproval says that the address that may transfer an agent changed.
	KindApproval = "agent.approval"
	// KindOperator says that an address may, or may no longer, act for every agent of an owner.
	KindOperator = "operator"
	// KindFeedback says that a client rated an agent.
	KindFeedback = "feedback.given"
	// KindRevoked says that a client revoked a rating.
	KindRevoked = "feedback.revoked"
	// KindResponse says that a rating got a response.
	KindResponse = "response.appended"
	// KindRequested says that a validation of an agent was requested.
	KindRequested = "validation.requested"
	// KindResponded says that a validator answered a request, perhaps not for the first time.
	KindResponded = "validation.responded"

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

	// KindDocument says that the document of an agent was read, or could not be.
	KindDocument = "document.updated"
	// KindProof says that what a domain proves of an agent changed.
	KindProof = "proof.updated"
	// KindManifest says that what the agent.json of a domain says of an agent changed.
	KindManifest = "manifest.updated"
	// KindPayment says that a payment that a rating claims was looked up.
	KindPayment = "payment.checked"

	// KindScore says that the provisional or the final score of an agent is another one: see Score.
	KindScore = "score.changed"
)

// Kinds returns all kinds of change.
func Kinds() []string {
	return []string{KindTransferred, KindRegistered, KindURI, KindWallet, KindMetadata, KindApproval, KindOperator,
		KindFeedback, KindRevoked, KindResponse, KindRequested, KindResponded, KindBackfilled, KindRewound,
		KindRetracted,
		KindRepaired, KindDocument, KindProof, KindManifest, KindPayment, KindScore}
}

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
