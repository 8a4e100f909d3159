package trust

import (
	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/trust/fixed"
	"repute/trust/flow"
)

// Evidence is everything known about one agent at one block.
type Evidence struct {
	Agent repute.AgentID
	Block repute.Block // the view; ages run to its time
	// Owner is the agent's owner and Self the addresses that signed to be its wallet. Their
	// ratings do not count. Named are the approved address and the operators, which the owner
	// alone chose. Their praise does not count; their blame does, because an owner could
	// otherwise silence critics by naming them.
	Owner       common.Address
	Self, Named []common.Address
	// Wallet is the verified one of Self, Registrar the address that registered the agent.
	// Tenures are its owners and wallets over time, Actions the first action of each ownership. They are zero when
	// unknown.
	Wallet, Registrar common.Address
	Tenures           []Tenure
	Actions           []Action
	// Domains prove the agent and no agent of another owner. They are set where a penalty depends on them.
	Domains []string
	// Since is the first block whose praise counts: earlier praise is about an earlier owner.
	Since uint64
	// Rows are all live ratings and the latest answer to each validation request of
	// allow-listed contracts, in any order.
	Rows []Row
	// Packed are the ratings in chain order where Packing is set; Rows is then empty. It is for evidence of which nothing
	// needs single rows: see Scorer.NeedsRows. Packing MUST be judged by Scales and have the nodes of the graph of Weights.
	Packed  []PackedRow
	Packing *Packing
	// Validations is the sha256 of that list of contracts, see EncodeValidations. The manifest
	// names it unless it is zero; no score depends on it.
	Validations common.Hash
	// Weights are those of the last epoch, and Scales what its raters had written until then.
	Weights *flow.Weights
	Scales  *Scales
	// Nodes has the node of each rater in the graph of Weights, by Row.Writer - 1; nil when no row has a number.
	Nodes []flow.Node
	// Related is the result of Penalties.Related: surely bad agents that limit this one.
	Related []RelatedAgent
	// Identity has the results of the checks of gates on the agent's identity, nil when no gate has such checks.
	Identity *Identity
}

// Row is one rating, or one validation answer.
type Row struct {
	Tx       common.Hash
	Block    uint64
	LogIndex uint32
	Time     int64 // of the block, Unix seconds
	Rater    common.Address
	// Via is the feedback gateway that wrote the rating for Rater, zero for none. It equals Rater when no ticket names
	// the payer.
	Via        common.Address
	Index      uint64 // of the rating, 0 for a validation answer
	Validation bool
	Amount     repute.Amount // 0 to 100 for a validation answer
	Tag1, Tag2 string        // Tag1 is the answer's tag for a validation
	// Content is equal for ratings with the same feedback URI: a hash that identifies the URI, or zero.
	Content common.Hash
	// Paid is what the rater provably paid the agent for the rated work, in US dollars. Each
	// payment counts for one row.
	Paid fixed.Fixed
	// Payee is the address that received it, and PaidAt the time in Unix seconds. They are zero without a payment, and
	// matter for penalties alone.
	Payee  common.Address
	PaidAt int64
	// Said and Writer save time where many rows are read, and change no result. Said is the result of Params.Said for the
	// row, nil when it is unknown. Writer is a number above 0 of Rater among the raters of all agents, 0 for none.
	Said   *Said
	Writer uint32
}

// Client returns the address that wrote the rating, which numbers it.
func (r *Row) Client() common.Address {
	if r.Via != (common.Address{}) {
		return r.Via
	}
	return r.Rater
}

// RelatedAgent is a surely bad agent that an identity behind another agent answers for.
type RelatedAgent struct {
	Agent  repute.AgentID
	Score  Points // by the ratings that the identity answers for
	High   Points
	Tier   int
	Holder common.Address // the identity's address that had the agent
	Role   Role           // of the identity with regard to the other agent
	// Share is how far it limits the other one, 0 to 1: 1 where GuardParams.FullShare or more of the agents of that
	// identity are surely bad, in proportion less where fewer are.
	Share fixed.Fixed
}

// Reasons returns all reasons, in no particular order.
func Reasons() []Reason {
	return []Reason{ReasonSelf, ReasonUnknownTag, ReasonRange, ReasonScale, ReasonChannel, ReasonEarlier, ReasonFuture,
		ReasonUndated, ReasonGateway}
}

// Points is a score or a part of one, in thousandths of a point: -100000 to 100000.
type Points = repute.Points

// Reason is why a row does not count.
type Reason string

// Reasons of excluded rows.
const (
	ReasonSelf       Reason = "self"          // by the agent's own identity, or praise by an address that the owner named
	ReasonUnknownTag Reason = "unknown-tag"   // the tag table has no rule
	ReasonRange      Reason = "out-of-range"  // the value is outside the tag's range
	ReasonScale      Reason = "scale"         // the scale on which the rater wrote the value is unknown
	ReasonChannel    Reason = "other-channel" // the tag's channel is not part of the score
	ReasonEarlier    Reason = "earlier-owner" // praise from before the owner got the agent
	ReasonFuture     Reason = "future"        // later than the view
	ReasonUndated    Reason = "undated"       // the time of its block is unknown
	ReasonGateway    Reason = "gateway"       // a feedback gateway wrote it, and no ticket names its payer
)
