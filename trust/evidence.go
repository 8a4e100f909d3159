package trust

import (
	"github.com/ethereum/go-ethereum/common"

	"repute"
)

// Evidence is everything known about one agent at one block.
type Evidence struct {
	Agent repute.AgentID
	Block repute.Block // the view; ages run to its time
	// Owner is who holds the agent, Self who signed to be its wallet: what they say of it
	// does not count. Named are those the owner alone says may act for it, approved address
	// and operators: their praise does not count, but their blame does, for an owner could
	// name his critics.
	Owner       common.Address
	Self, Named []common.Address
	// Wallet is the verified one of Self, Registrar who registered the agent, Tenures say who
	// had it when, and Acts who did something with it; zero and none where that is not known.
	Wallet, Registrar common.Address
	Tenures           []Tenure
	Acts              []Act
	// Held is when the owner got the agent, in Unix seconds, and Since the first block in which
	// what is said is said of it: praise of what an earlier owner did does not count.
	Held  int64
	Since uint64
	// Rows are all live ratings and the latest answer to each validation request of
	// allow-listed contracts, in any order.
	Rows []Row
	// Validations is the sha256 of that list of contracts, see EncodeValidations; zero when
	// it is not to be named. No score depends on it, the manifest names it.
	Validations common.Hash
	// Weights are those of the last epoch.
	Weights *Weights
	// Kin are agents that were surely bad when a party had them that is behind this one.
	Kin []Kin
	// Identity is nil where nobody looked.
	Identity *Identity
}

// Row is one rating, or one validation answer.
type Row struct {
	Tx         common.Hash
	Block      uint64
	LogIndex   uint32
	Time       int64 // of the block, Unix seconds
	Rater      common.Address
	Index      uint64 // of the rating, 0 for a validation answer
	Validation bool
	Amount     repute.Amount // 0 to 100 for a validation answer
	Tag1, Tag2 string        // Tag1 is the answer's tag for a validation
	// Content tells equal ratings: the keccak256 of the URI with what it holds, or zero.
	Content common.Hash
	// Paid is what the rater verifiably paid the agent for what it rates, in US dollars; each
	// payment counts for one row.
	Paid Fixed
}

// Kin is an agent that was surely bad when a party had it that is behind another agent.
type Kin struct {
	Agent  repute.AgentID
	Score  Points // by what was said then
	High   Points
	Tier   int
	Holder common.Address // who had it then
	Role   Role           // of the party behind the other agent
}

// Reasons are all of them, in no order that means anything.
func Reasons() []Reason {
	return []Reason{ReasonSelf, ReasonUnknownTag, ReasonRange, ReasonChannel, ReasonEarlier, ReasonFuture, ReasonUndated}
}

// Points is a score or a part of one, in thousandths of a point: -100000 to 100000.
type Points = repute.Points

// Reason is why a row does not count.
type Reason string

// Reasons of excluded rows.
const (
	ReasonSelf       Reason = "self"          // by the agent's own party, or praise by whom the owner named
	ReasonUnknownTag Reason = "unknown-tag"   // the tag table has no rule
	ReasonRange      Reason = "out-of-range"  // the value is outside the tag's range
	ReasonChannel    Reason = "other-channel" // the tag's channel is not part of the score
	ReasonEarlier    Reason = "earlier-owner" // praise from before the owner got the agent
	ReasonFuture     Reason = "future"        // later than the view
	ReasonUndated    Reason = "undated"       // the time of its block is unknown
)
