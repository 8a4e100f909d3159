package batch

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"repute"
	"repute/api/wire"
)

// maxTagDifferences is how many tags that agents share are told apart.
const maxTagDifferences = 5

// differences explains what sets agents apart, one sentence each. What more callers decide by comes first. Every
// function returns whether there is a difference; best is nil where one value is not better than another.
func differences(agents []ComparedAgent) (out []Difference) {
	for _, explain := range []func([]ComparedAgent) (Difference, bool){
		differentStatus, differentScore, differentTier, differentRatings, differentGates} {
		if d, found := explain(agents); found {
			out = append(out, d)
		}
	}
	out = append(out, differentTags(agents)...)
	for _, explain := range []func([]ComparedAgent) (Difference, bool){differentServices, differentPrices} {
		if d, found := explain(agents); found {
			out = append(out, d)
		}
	}
	return out
}

// group is the agents that have a value in common, in the order of the comparison. names are short ids.
type group struct {
	value string
	names []string
}

// groupBy groups agents by a value. Groups are in the order of their first agents.
func groupBy(agents []ComparedAgent, value func(ComparedAgent) string) (groups []group) {
	for _, a := range agents {
		v := value(a)
		i := slices.IndexFunc(groups, func(g group) bool { return g.value == v })
		if i < 0 {
			i, groups = len(groups), append(groups, group{value: v})
		}
		groups[i].names = append(groups[i].names, string(a.ShortID))
	}
	return groups
}

// tell writes "A and B is value; C is value" for groups, with a verb for one agent and for several.
func tell(groups []group, verb, verbs string) string {
	parts := make([]string, len(groups))
	for i, g := range groups {
		is := verb
		if len(g.names) > 1 {
			is = verbs
		}
		parts[i] = listed(g.names) + " " + is + " " + g.value
	}
	return strings.Join(parts, "; ")
}

// listed writes a list in words.
func listed(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// leader returns the one agent that is better than all others, nil where there is none. It compares with the best agent
// by its id, so that agents MUST be different ones. Ties have no leader.
func leader[V cmp.Ordered](agents []ComparedAgent, of func(ComparedAgent) V) *wire.ID {
	if len(agents) == 0 {
		return nil
	}
	best := slices.MaxFunc(agents, func(a, b ComparedAgent) int { return cmp.Compare(of(a), of(b)) })
	for _, a := range agents {
		if a.Agent != best.Agent && of(a) == of(best) {
			return nil
		}
	}
	return &best.Agent
}

// differentStatus tells rated agents from others. No status makes an agent best: thin means little evidence, and not a
// worse agent.
func differentStatus(agents []ComparedAgent) (d Difference, found bool) {
	groups := groupBy(agents, func(a ComparedAgent) string { return a.Status })
	if len(groups) < 2 {
		return d, false
	}
	d = Difference{What: "status", Sentence: tell(groups, "is", "are")}
	if slices.ContainsFunc(groups, func(g group) bool { return g.value == string(repute.Unrated) }) {
		d.Sentence += "; the score of an unrated agent means nothing"
	}
	return d, true
}

// differentScore compares the best and the worst score of those that are rated, with their bounds. An unrated agent is
// left out, since its score is 0 for want of evidence. The best is named only where the bounds of the first and of the
// last do not overlap; there may still be others in between whose bounds overlap with the first.
func differentScore(agents []ComparedAgent) (d Difference, found bool) {
	scored := slices.DeleteFunc(slices.Clone(agents),
		func(a ComparedAgent) bool { return a.Status == string(repute.Unrated) })
	if len(scored) < 2 {
		return d, false
	}
	slices.SortStableFunc(scored, func(a, b ComparedAgent) int { return cmp.Compare(b.Score, a.Score) })
	first, last := scored[0], scored[len(scored)-1]
	if first.Score == last.Score {
		return d, false
	}
	bounds := func(a ComparedAgent) string {
		return fmt.Sprintf("%.1f (%.1f to %.1f)", a.Score, a.Low, a.High)
	}
	d = Difference{What: "score", Sentence: fmt.Sprintf("%s has the highest score, %s, and %s the lowest, %s",
		first.ShortID,
		bounds(first), last.ShortID, bounds(last))}
	if first.Low <= last.High {
		d.Sentence += "; their bounds overlap, so that the evidence does not tell them apart"
		return d, true
	}
	d.Best = leader(scored, func(a ComparedAgent) float64 { return a.Score })
	d.Sentence += "; their bounds do not overlap"
	return d, true
}

// differentTier compares tiers.
func differentTier(agents []ComparedAgent) (d Difference, found bool) {
	groups := groupBy(agents, func(a ComparedAgent) string { return fmt.Sprintf("tier %d", a.Tier) })
	return Difference{What: "tier", Best: leader(agents, func(a ComparedAgent) int32 { return a.Tier }),
		Sentence: tell(groups, "has", "have")}, len(groups) > 1
}

// differentRatings compares how many rated how often. More reviewers are better evidence, while more ratings may come
// from one reviewer.
func differentRatings(agents []ComparedAgent) (d Difference, found bool) {
	groups := groupBy(agents, func(a ComparedAgent) string {
		return counted(int64(a.Ratings), "rating") + " from " + counted(int64(a.Reviewers), "reviewer")
	})
	return Difference{What: "ratings", Best: leader(agents, func(a ComparedAgent) wire.Long { return a.Reviewers }),
		Sentence: tell(groups, "has", "have")}, len(groups) > 1
}

// counted writes a number of things.
func counted(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// differentGates compares which gates are not passed, and which keep agents out. A gate that keeps an agent out weighs
// more than any number of gates that it does not pass: there are far less than 100.
func differentGates(agents []ComparedAgent) (d Difference, found bool) {
	groups := groupBy(agents, func(a ComparedAgent) string {
		var lacks []string
		for _, g := range a.Lacks {
			lacks = append(lacks, g.ID)
		}
		said := "every gate that admits"
		if len(lacks) > 0 {
			said = "all gates that admit but " + listed(lacks)
		}
		if len(a.KeptOut) > 0 {
			said += ", and also " + listed(a.KeptOut) + ", which keeps it out"
		}
		return said
	})
	return Difference{What: "gates", Sentence: tell(groups, "passes", "pass"),
		Best: leader(agents, func(a ComparedAgent) int { return -len(a.Lacks) - 100*len(a.KeptOut) })}, len(groups) > 1
}

// differentTags compares the medians of tags that two or more agents have, those with most ratings first. Whether more
// is better depends on the tag, so that none is best. Medians are compared as they are written. At most
// maxTagDifferences are listed.
func differentTags(agents []ComparedAgent) (out []Difference) {
	type shared struct {
		tag     string
		ratings wire.Long
		parts   []string
		values  map[string]bool
	}
	var tags []*shared
	for _, a := range agents {
		for _, t := range a.Tags {
			i := slices.IndexFunc(tags, func(s *shared) bool { return s.tag == t.Tag })
			if i < 0 {
				i, tags = len(tags), append(tags, &shared{tag: t.Tag, values: map[string]bool{}})
			}
			tags[i].ratings += t.Count
			tags[i].parts = append(tags[i].parts, fmt.Sprintf("%s for %s", t.Median.Decimal, a.ShortID))
			tags[i].values[string(t.Median.Decimal)] = true
		}
	}
	slices.SortStableFunc(tags, func(a, b *shared) int {
		return cmp.Or(cmp.Compare(b.ratings, a.ratings), strings.Compare(a.tag, b.tag))
	})
	for _, s := range tags {
		if len(s.values) < 2 || len(out) == maxTagDifferences {
			continue
		}
		name := fmt.Sprintf("tag %.60q", s.tag)
		if s.tag == "" {
			name = "ratings without a tag"
		}
		out = append(out, Difference{What: "tag", Sentence: name + ": the median is " + listed(s.parts)})
	}
	return out
}

// differentServices compares the names of the services that agents offer. Names are compared after they are cut to 30
// characters, as they are shown. No agent is best by offering more.
func differentServices(agents []ComparedAgent) (d Difference, found bool) {
	groups := groupBy(agents, func(a ComparedAgent) string {
		var names []string
		for _, s := range a.Services {
			names = append(names, fmt.Sprintf("%.30s", s.Name))
		}
		slices.Sort(names)
		if names = slices.Compact(names); len(names) == 0 {
			return "no service"
		}
		return listed(names)
	})
	return Difference{What: "services", Sentence: tell(groups, "offers", "offer")}, len(groups) > 1
}

// differentPrices compares the cheapest intent of each agent whose manifest states a price. The cheapest intents need
// not be for the same work, so that the sentence names them. Prices are compared as fractions: 0.5 and 0.50 are equal.
// A price that is no number is ignored.
func differentPrices(agents []ComparedAgent) (d Difference, found bool) {
	type offer struct {
		agent ComparedAgent
		cost  IntentCost
		price *big.Rat
	}
	var cheapest []offer
	for _, a := range agents {
		best := offer{agent: a}
		for _, p := range a.Prices {
			if p.Price == nil {
				continue
			}
			price, valid := new(big.Rat).SetString(string(*p.Price))
			if valid && (best.price == nil || price.Cmp(best.price) < 0) {
				best.cost, best.price = p, price
			}
		}
		if best.price != nil {
			cheapest = append(cheapest, best)
		}
	}
	if len(cheapest) == 0 {
		return d, false
	}
	parts := make([]string, len(cheapest))
	for i, o := range cheapest {
		parts[i] = fmt.Sprintf("%s asks %s USD for its cheapest intent, %.60q", o.agent.ShortID, *o.cost.Price,
			o.cost.Intent)
	}
	d = Difference{What: "price", Sentence: strings.Join(parts, "; ")}
	if len(cheapest) < len(agents) {
		d.Sentence += "; no price is known of the others"
		return d, true
	}
	slices.SortStableFunc(cheapest, func(a, b offer) int { return a.price.Cmp(b.price) })
	same := cheapest[0].price.Cmp(cheapest[1].price) == 0
	if !same {
		d.Best = &cheapest[0].agent.Agent
	}
	return d, cheapest[0].price.Cmp(cheapest[len(cheapest)-1].price) != 0
}
