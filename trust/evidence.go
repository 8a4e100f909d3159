package trust

import (
	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/trust/accountable"
	"repute/trust/fixed"
	"repute/trust/flow"
	"repute/trust/rating"
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
	Tenures           []rating.Tenure
	Actions           []accountable.Action
	// Domains prove the agent and no agent of another owner. They are set where a penalty depends on them.
	Domains []string
	// Since is the first block whose praise counts: earlier praise is about an earlier owner.
	Since uint64
	// Rows are all live ratings and the latest answer to each validation request of
	// allow-listed contracts, in any order.
	Rows []rating.Row
	// Packed are the ratings in chain order where Packing is set; Rows is then empty. It is for evidence of which
	// nothing needs single rows: see Scorer.NeedsRows. Packing MUST be judged by Scales and have the nodes of the graph
	// of Weights.
	Packed  []rating.PackedRow
	Packing *rating.Packing
	// OwnerNumber saves looking up the owner: 1 more than its number among the raters of Packing, 0 when unknown.
	OwnerNumber uint32
	// Validations is the sha256 of that list of contracts, see EncodeValidations. The manifest
	// names it unless it is zero; no score depends on it.
	Validations common.Hash
	// Weights are those of the last epoch, and Scales what its raters had written until then.
	Weights *flow.Weights
	Scales  *rating.Scales
	// Nodes has the node of each rater in the graph of Weights, by Row.Writer - 1; nil when no row has a number.
	Nodes []flow.Node
	// Related is the result of Penalties.Related: surely bad agents that limit this one.
	Related []RelatedAgent
	// Identity has the results of the checks of gates on the agent's identity, nil when no gate has such checks.
	Identity *Identity
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

// Points is a score or a part of one, in thousandths of a point: -100000 to 100000.
type Points = repute.Points
