package rating

import (
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"repute/trust/flow"
)

// Tenure is a range of blocks in which an agent had one owner and one wallet. Ratings from this range are about them.
// The tenures of an agent follow each other without gaps.
type Tenure struct {
	From, To uint64 // first and last block; To is math.MaxUint64 while the tenure lasts
	// Began and Ended are the times of the changes of owner or wallet, Unix seconds, 0 when unknown. Ended is also 0
	// while the tenure lasts.
	Began, Ended  int64
	Owner, Wallet common.Address // Wallet is zero where none is verified
}

// PresentSince returns the first block whose ratings are about the present owner, 0 without tenures. A transfer between
// two addresses of one identity is not a change of owner.
func PresentSince(tenures []Tenure, g *flow.Graph) (block uint64) {
	one := func(a, b common.Address) bool { return g.Identity(a) == g.Identity(b) }
	return PresentSinceFunc(tenures, one)
}

// PresentSinceFunc is PresentSince with a function that reports whether two addresses are one identity. A transfer to
// the owner's verified wallet is not a change of owner either.
func PresentSinceFunc(tenures []Tenure, one func(a, b common.Address) bool) (block uint64) {
	for i, t := range tenures {
		if i == 0 || t.Owner != tenures[i-1].Wallet && !one(t.Owner, tenures[i-1].Owner) {
			block = t.From
		}
	}
	return block
}

// MovedFrom returns the addresses, other than the present owner, that owned an agent since the block of PresentSince.
// They are addresses of the present owner's identity, or have the owner as their verified wallet.
func MovedFrom(tenures []Tenure, since uint64) (out []common.Address) {
	for _, t := range tenures {
		if t.From >= since && t.Owner != tenures[len(tenures)-1].Owner && !slices.Contains(out, t.Owner) {
			out = append(out, t.Owner)
		}
	}
	return out
}

// IsHandover reports whether a transfer that follows a registration shows that the agent was registered for somebody
// else. Both are times in Unix seconds, zero when unknown.
func IsHandover(registered, transferred int64) bool {
	return registered > 0 && transferred > 0 && transferred-registered <= HandoverSeconds
}

// HandoverSeconds is how long after its registration a transferred agent counts as
// registered for somebody else. Its registrar is then not related to it.
const HandoverSeconds = 10 * 60
