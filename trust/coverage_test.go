package trust

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/trust/fixed"
	"repute/trust/flow"
	"repute/trust/graph"
	"repute/trust/rating"
)

// Agents that an identity handed over are among its known agents: those that it registered, and those that were rated
// while it had them. Those of a launchpad are not, nor those that it merely passed on.
func TestKnownAgentsOfFormerOwners(t *testing.T) {
	const registrar, former, owner = 900, 901, 902
	w := newWorld()
	var roots []flow.Root
	for i := range 20 {
		roots = append(roots, flow.Root{Address: address(i), Weight: fixed.One})
	}
	hours := func(n int) int64 { return testTime - int64(n)*3600 }
	tenure := func(who int, began, ended int64) rating.Tenure {
		return rating.Tenure{Began: began, Ended: ended, Owner: address(who)}
	}
	r := graph.NewReader(w.evidence().Block, roots, []graph.Link{{A: address(registrar), B: address(905)}}, w.params)
	histories := [][]rating.Tenure{
		{tenure(registrar, hours(100), hours(100)+rating.HandoverSeconds)},               // at once
		{tenure(registrar, hours(100), hours(100)+rating.HandoverSeconds+1)},             // later
		{tenure(registrar, hours(100), hours(99)), tenure(former, hours(99), hours(98))}, // passed on
		{tenure(registrar, hours(100), hours(99)),
			tenure(former, hours(99), hours(1))}, // and rated meanwhile
		{tenure(registrar, hours(100), hours(99)),
			tenure(905, hours(99), hours(98))}, // by a linked address
		{tenure(former, hours(100), hours(50)),
			tenure(owner, hours(50), hours(1))}, // another registrar
		{tenure(registrar, hours(100), hours(99)+1),
			tenure(registrar, hours(99)+1, hours(99)+600)}, // its wallet changed
	}
	for agent, tenures := range histories {
		r.Agent(repute.TokenID{uint64(agent)}, 2, address(owner), common.Address{})
		for _, t := range tenures {
			r.Former(repute.TokenID{uint64(agent)}, t)
		}
	}
	for agent := range histories {
		for i := range 3 {
			said := row(i, int64(90+i), 20*3600)
			r.Rating(repute.TokenID{uint64(agent)}, said)
		}
	}
	_, known := r.Coverage(r.Build().Walk(roots, w.params.Walk))
	want := map[common.Address]int{address(registrar): 5, address(former): 2, address(owner): 7}
	for a, n := range want {
		if known.Of(a) != n {
			t.Errorf("%s has %d known agents, want %d", a, known.Of(a), n)
		}
	}
	if n := known.Of(address(0)); n != 0 {
		t.Errorf("a rater has %d known agents", n)
	}
}

// A penalty that is read for several agents counts once.
func TestPenaltiesCountOnce(t *testing.T) {
	w := newWorld()
	e := w.evidence()
	e.Agent.TokenID.SetUint64(7)
	g := Penalties{}
	for range 10 {
		g.Add(repute.Penalty{Identity: address(900), Holder: address(900), Score: -40_000, High: -30_000})
	}
	if got := g.Related(&e, w.params, func(common.Address) int { return 40 }); got[0].Share.Decimal(3) != "0.100" {
		t.Errorf("share %s, want a tenth", got[0].Share.Decimal(3))
	}
}

// A transfer between addresses of one identity is none to somebody else.
func TestPresentSince(t *testing.T) {
	b := flow.NewGraphBuilder()
	b.Link(b.Add(address(900)), b.Add(address(905)))
	g := b.Build()
	for name, c := range map[string]struct {
		owners, wallets []int
		since           uint64
	}{
		"kept":                {[]int{900}, []int{0}, 0},
		"sold":                {[]int{900, 901}, []int{0, 0}, 10},
		"linked":              {[]int{900, 905}, []int{0, 0}, 0},
		"bought, then linked": {[]int{901, 900, 905}, []int{0, 0, 0}, 10},
		"to the wallet":       {[]int{900, 900, 901}, []int{0, 901, 0}, 0},
		"to another":          {[]int{900, 900, 902}, []int{0, 901, 0}, 20},
		"to an old wallet":    {[]int{900, 900, 901}, []int{901, 0, 0}, 20},
		"twice":               {[]int{900, 901, 902}, []int{901, 902, 0}, 0},
	} {
		var tenures []rating.Tenure
		for i, owner := range c.owners {
			x := rating.Tenure{From: uint64(10 * i), To: uint64(10*i + 9), Owner: address(owner)}
			if c.wallets[i] > 0 {
				x.Wallet = address(c.wallets[i])
			}
			tenures = append(tenures, x)
		}
		if got := rating.PresentSince(tenures, g); got != c.since {
			t.Errorf("%s: since block %d, want %d", name, got, c.since)
		}
	}
}
