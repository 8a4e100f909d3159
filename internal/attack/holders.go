package attack

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/trust"
	"repute/trust/fixed"
	"repute/trust/flow"
	"repute/trust/graph"
	"repute/trust/rating"
	"repute/trust/source"
)

// holding is one credential of a party.
type holding struct {
	party  int
	source string
	person int // the same for all addresses of one person; 0: the source does not identify persons
}

// Sources are the facts about raters that attacks buy: the shipped policy, with one source of class B while it has
// none.
type Sources struct {
	policy *source.Policy
	rules  flow.SourceRules
}

// boughtStake is the source of class B where the policy has none.
const boughtStake = "stake"

// NewSources prepares a policy for attacks.
func NewSources(p *source.Policy) *Sources {
	s := &Sources{policy: p, rules: p.Rules()}
	classes := slices.Sorted(maps.Keys(p.Classes))
	b := slices.Index(classes, source.ClassB)
	if !slices.ContainsFunc(s.rules.Sources, func(x flow.Source) bool { return x.Class == b }) {
		s.rules.Sources = append(slices.Clip(s.rules.Sources), flow.Source{ID: boughtStake, Class: b,
			SourceBounds: s.rules.Classes[b].SourceBounds})
	}
	return s
}

// of lists the sources of a class, "" for all.
func (s *Sources) of(class string) (ids []string) {
	for _, x := range s.rules.Sources {
		if class == "" || s.rules.Classes[x.Class].ID == class {
			ids = append(ids, x.ID)
		}
	}
	return ids
}

// weight is what one credential of a source gives. A source that the policy does not have is boughtStake, which has the
// weight of its class.
func (s *Sources) weight(id string) fixed.Fixed {
	if of := s.policy.Source(id); of != nil {
		return of.Weight
	}
	return s.policy.Classes[source.ClassB].Weight
}

// credits are those of some holders. Credentials of one person have one subject, whatever address holds them: the
// engine counts the subject once.
func (s *Sources) credits(held []holding) *graph.Credits {
	out := &graph.Credits{Rules: s.rules, Agents: s.policy.Budget.Agents, Days: s.policy.Budget.Days}
	for _, h := range held {
		at := slices.IndexFunc(s.rules.Sources, func(x flow.Source) bool { return x.ID == h.source })
		subject := common.BytesToHash(Address(h.party).Bytes())
		if h.person > 0 {
			subject = common.BytesToHash(append([]byte{1}, Address(h.person).Bytes()...))
		}
		out.Raters = append(out.Raters, graph.RaterCredit{Rater: Address(h.party), Source: at, Subject: subject,
			Weight: s.weight(h.source)})
	}
	return out
}

// hold gives parties from first on credentials of these sources, so many of each.
func hold(first, each int, sources ...string) (held []holding) {
	for i, id := range sources {
		for n := range each {
			held = append(held, holding{party: first + i*each + n, source: id})
		}
	}
	return held
}

// credited returns the engine with what sources give to holders, if each of them rated the given number of agents
// lately, by which the policy's budget divides. The engine itself does not change.
func (e *Engine) credited(s *Sources, held []holding, agents int) *Engine {
	reader := graph.NewReader(blockAt(e.w.Now), nil, nil, e.p)
	for n := range agents {
		token := repute.TokenID{uint64(n)}
		reader.Agent(token, 0, Address(1<<30+n), common.Address{})
		for _, party := range parties(held) {
			row := RowOf(1, Rating{From: party, Value: 1, Time: e.w.Now})
			reader.Rating(token, row)
		}
	}
	out := *e
	out.weights = reader.Credited(e.weights, s.credits(held))
	out.scorer = trust.NewScorer(out.weights, e.p)
	return &out
}

// parties are those who hold anything, each once.
func parties(held []holding) []int {
	seen := map[int]bool{}
	for _, h := range held {
		seen[h.party] = true
	}
	return slices.Sorted(maps.Keys(seen))
}

// by are ratings of an agent by all holders.
func (b *Bench) by(held []holding, target int, value float64) (out []Rating) {
	for _, p := range parties(held) {
		out = append(out, Rating{p, target, value, b.World.Now})
	}
	return out
}

// bought is an outcome of credentials, with what holds without them.
func (b *Bench) bought(name string, size, target, agents int, s *Sources, held []holding, more ...Rating) Outcome {
	w := b.World.With(append(more, b.by(held, target, 1)...)...)
	r := NewEngine(w, b.Params).credited(s, held, agents).Score(target)
	o := Outcome{Attack: name, Size: size, World: w.Name, Mean: points(r.Mean), Score: points(r.Score),
		Paths: r.PathsFor,
		Tier:  r.Tier}
	for _, g := range r.Gates {
		o.Opens = o.Opens || g.Passed && g.Direction == rating.Admits
	}
	if r.Sourced != nil {
		o.Units = unitsOf(r.Sourced.Praise)
	}
	return o
}

// BoughtPraise is S1: n holders of credentials of a class, of its sources round-robin, praise a new agent; "" for all
// classes, so many of each source.
func (b *Bench) BoughtPraise(s *Sources, class string, n int) Outcome {
	target := b.World.Next()
	name := "S1 praise by credentials of class " + class
	if class == "" {
		name = "S1 praise by credentials of every source"
	}
	sources, held := s.of(class), []holding(nil)
	for i := range n {
		held = append(held, holding{party: target + 1 + i, source: sources[i%len(sources)]})
	}
	return b.bought(name, n, target, 1, s, held)
}

// BoughtWithRoots is S2: so many compromised roots praise a new agent and fifty wallets, which praise it too, and so
// do a hundred holders of credentials of each source.
func (b *Bench) BoughtWithRoots(s *Sources, roots int) Outcome {
	target := b.World.Next()
	var more []Rating
	for i, root := range b.World.Roots[:roots] {
		more = append(more, Rating{root, target, 1, b.World.Now})
		wallets := b.wallets(root, target+mixWallets*i)
		for _, w := range wallets {
			more = append(more, Rating{w.To, target, 1, b.World.Now})
		}
		more = append(more, wallets...)
	}
	const each = 100
	return b.bought("S2 compromised roots, their wallets and credentials of every source", roots, target, 1, s,
		hold(target+1+mixWallets*roots, each, s.of("")...), more...)
}

// BoughtWithRaters is S2 with honest raters of full weight who were bribed.
func (b *Bench) BoughtWithRaters(s *Sources, raters int) Outcome {
	target := b.World.Next()
	var more []Rating
	for _, p := range b.fullRaters(raters) {
		more = append(more, Rating{p, target, 1, b.World.Now})
	}
	return b.bought("S2 bribed raters of full weight and credentials of every source", raters, target, 1, s,
		hold(target+1, 100, s.of("")...), more...)
}

// ThreeWallets is S3: a holder praises an agent from three wallets, of a source that identifies persons or of one that
// does not.
func (b *Bench) ThreeWallets(s *Sources, id string, identified bool) Outcome {
	const wallets = 3
	target := b.World.Next()
	held := hold(target+1, wallets, id)
	name := "S3 one holder with three wallets, not told apart from three: " + id
	if identified {
		name = "S3 one holder with three wallets, told as one person: " + id
		for i := range held {
			held[i].person = 1
		}
	}
	return b.bought(name, wallets, target, 1, s, held)
}

// Budget is S4: six holders praise so many agents.
func (b *Bench) Budget(s *Sources, id string, agents int) Outcome {
	const holders = 6
	target := b.World.Next()
	return b.bought("S4 six holders lift so many agents, each of them by", agents, target, agents, s,
		hold(target+1, holders, id))
}

// BoughtSlander is S5: a hundred holders of each source of a class say the worst of victims with evidence of five
// units, alone or together with raters of full weight.
func (b *Bench) BoughtSlander(s *Sources, class string, raters int) Drop {
	dummy := b.World.Next() // rated by all holders, so that the graph knows them
	held := hold(dummy+1, 100, s.of(class)...)
	plain := NewEngine(b.World.With(b.by(held, dummy, -1)...), b.Params)
	engine := plain.credited(s, held, 1)
	victims := b.victims(engine, func(r trust.Result) bool { return r.Evidence >= fixed.Int(5) })
	name := fmt.Sprintf("S5 slander by credentials of class %s", class)
	if class == "" {
		name = "S5 slander by credentials of every source"
	}
	if raters > 0 {
		name = "S5 the same with raters of full weight"
	}
	return b.slander(name, cmp.Or(raters, len(held)), engine, victims, func(victim int) []Rating {
		out := b.by(held, victim, -1)
		for _, p := range b.fullRaters(raters + 20) {
			if p != victim && len(out) < len(held)+raters && !b.rated(p, victim) {
				out = append(out, Rating{p, victim, -1, b.World.Now})
			}
		}
		return out
	})
}
