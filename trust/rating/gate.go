package rating

import (
	"slices"

	"repute/trust/fixed"
)

// Gate is a line that a policy draws. Upward gates read the lower bound and downward
// gates the upper one, so that thin or hostile evidence neither admits nor condemns.
type Gate struct {
	ID string `json:"id"`
	// No more than one of Low (passed when the lower bound is at least this) and High (passed
	// when the upper bound is below this) is set, in points. One of them is unless Checks are:
	// who an agent is does not depend on whether anybody rated it.
	Low  *fixed.Fixed `json:"low,omitempty"`
	High *fixed.Fixed `json:"high,omitempty"`
	// Paths is how many independent paths the side concerned must come by.
	Paths int `json:"paths,omitempty"`
	// Evidence is needed in Channels, in units; 0 for none.
	Evidence fixed.Fixed `json:"evidence,omitempty"`
	Channels []string    `json:"channels,omitempty"`
	// RecentRaters must have spoken against the agent within RecentDays, in units of their weight.
	RecentRaters int `json:"recentRaters,omitempty"`
	RecentDays   int `json:"recentDays,omitempty"`
	// Checks of who the agent is must all have passed.
	Checks []string `json:"checks,omitempty"`
}

// Tier is a class of agents; the first whose conditions hold is the agent's.
type Tier struct {
	Tier  int          `json:"tier"`
	Gate  string       `json:"gate,omitempty"`  // that must be passed
	Low   *fixed.Fixed `json:"low,omitempty"`   // the lower bound is at least this
	Paths int          `json:"paths,omitempty"` // for the agent
}

// Direction says what passing a gate means.
type Direction string

// Directions. An agent that passes a gate that keeps out is that bad; one that does not is
// not, which is no bad news.
const (
	Admits   Direction = "admits"
	KeepsOut Direction = "keepsOut"
)

// Direction is KeepsOut of gates that read the upper bound.
func (g *Gate) Direction() Direction {
	if g.High != nil {
		return KeepsOut
	}
	return Admits
}

// ThinTier is the tier of agents with too little evidence to be rated: the lowest above 0.
func (p *Params) ThinTier() int {
	lowest := 0
	for _, t := range p.Tiers {
		if t.Tier > 0 && (lowest == 0 || t.Tier < lowest) {
			lowest = t.Tier
		}
	}
	return lowest
}

// Passable are the ids of the gates that an agent can be asked to pass: all but those that
// keep agents out.
func (p *Params) Passable() (ids []string) {
	for i := range p.Gates {
		if p.Gates[i].Direction() == Admits {
			ids = append(ids, p.Gates[i].ID)
		}
	}
	return ids
}

// Checks of who an agent is that a gate may ask for. An agent that does not exist on the
// chain has no score, and so passes no gate.
const (
	CheckRegistration = "registrationResolves" // its registration file was read, has no errors and is still there
	CheckWallet       = "walletDeclared"       // that file names the chain's agentWallet
	CheckDomains      = "domainsProven"        // every host that the file's endpoints use stands by the agent
)

// ChecksIdentity reports whether a gate has checks on the agent's identity.
func (p *Params) ChecksIdentity() bool {
	return slices.ContainsFunc(p.Gates, func(g Gate) bool { return len(g.Checks) > 0 })
}
