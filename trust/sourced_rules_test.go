package trust

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"repute/trust/fixed"
	"repute/trust/graph"
	"repute/trust/rating"
)

// mixture is a random agent: compromised roots that vouch for its owner and for wallets, honest raters, strangers, and
// facts about some of all these.
type mixture struct {
	edges [][2]int
	rows  []rating.Row
	held  []graph.RaterCredit
}

func drawMixture(t *rapid.T) (m mixture) {
	praises := func(what string) int64 {
		return int64(rapid.SampledFrom([]int{0, 20, 45, 60, 90, 100}).Draw(t, what))
	}
	for root := range rapid.IntRange(0, 3).Draw(t, "compromised roots") {
		m.edges = append(m.edges, [2]int{root, 900})
		m.rows = append(m.rows, row(root, praises("root"), 0))
		for wallet := range rapid.IntRange(0, 20).Draw(t, "wallets") {
			m.edges = append(m.edges, [2]int{root, 2000 + 20*root + wallet})
			m.rows = append(m.rows, row(2000+20*root+wallet, 100, 0))
		}
	}
	like := praises("members")
	for i := range rapid.IntRange(0, 24).Draw(t, "members") {
		value := like
		if i%4 == 3 {
			value = praises("member")
		}
		m.rows = append(m.rows, row(20+4*i, value, int64(rapid.IntRange(0, 200).Draw(t, "age"))*testDay))
	}
	sources := rapid.SliceOfNDistinct(rapid.IntRange(0, 3), 0, 3, rapid.ID[int])
	say := praises("holders")
	for i := range rapid.IntRange(1, 40).Draw(t, "holders") {
		rater := 1000 + i
		if i < 5 && rapid.Bool().Draw(t, "also vouched for") {
			rater = 20 + 4*i
		} else {
			m.rows = append(m.rows, row(rater, say, 0))
		}
		for _, s := range sources.Draw(t, "sources") {
			m.held = append(m.held, credential(rater, s))
		}
	}
	return m
}

// score is that of the mixture with what sources say, and without.
func (m *mixture) score() (with, without Result) {
	return newWorld(m.edges...).credited(m.held...).score(m.rows...), newWorld(m.edges...).credited().score(m.rows...)
}

// Whatever is mixed: sources neither open a gate of value nor help to, they lift nobody above tier 2, and they neither
// make an agent surely bad nor help one that is.
func TestSourcesOpenNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawMixture(t)
		with, without := m.score()
		for _, gate := range []string{"service", "validator"} {
			if with.passes(gate) && !without.passes(gate) {
				t.Fatalf("sources open %s: low %s, without them %s", gate, with.Low, without.Low)
			}
		}
		for _, gate := range []string{"reject", "shutdown"} {
			if with.passes(gate) != without.passes(gate) {
				t.Fatalf("%s is %v with sources, %v without", gate, with.passes(gate), without.passes(gate))
			}
		}
		if with.Tier > max(mostBySources, without.Tier) || without.passes("reject") && with.Tier > 0 {
			t.Fatalf("tier %d, without sources %d", with.Tier, without.Tier)
		}
		if (with.High < -10_000) != (without.High < -10_000) {
			t.Fatalf("surely bad: up to %s with sources, %s without", with.High, without.High)
		}
		if s := with.Sourced; s != nil && (s.Low != without.Low || s.High != without.High ||
			s.PathsFor != without.PathsFor ||
			s.PathsAgainst != without.PathsAgainst) {
			t.Fatalf("without sources %+v, want %s to %s by %d and %d paths", s, without.Low, without.High,
				without.PathsFor,
				without.PathsAgainst)
		}
	})
}

// A compromised root and all that sources give do not open full service, which they did.
func TestSourcesDoNotHelpRoots(t *testing.T) {
	held := append(credentials(1000, 1010, kyc), credentials(1010, 1020, passport)...)
	for roots := range 3 {
		m := mixture{held: held, rows: rows(1000, 1020, 100)}
		for root := range roots {
			m.edges = append(m.edges, [2]int{root, 900})
			m.rows = append(m.rows, row(root, 100, 0))
		}
		with, without := m.score()
		if with.passes("service") || with.Tier > 2 || without.Tier > with.Tier {
			t.Errorf("%d roots and six units of sources: low %s, tier %d, without sources tier %d", roots, with.Low,
				with.Tier, without.Tier)
		}
		if roots > 0 && with.Low < 50_000 {
			t.Errorf("%d roots and six units of sources: low is %s, so the test shows nothing", roots, with.Low)
		}
	}
}

// All blame that sources allow takes no more than three raters may (T7), whatever else is said.
func TestSourcedBlameIsBounded(t *testing.T) {
	held := slices.Concat(credentials(1000, 1050, kyc), credentials(1050, 1100, passport),
		credentials(1100, 1150, paid))
	drop := func(t interface{ Fatalf(string, ...any) }, in []rating.Row, paid fixed.Fixed) Points {
		blame := rows(1000, 1150, 0)
		for i := range blame {
			blame[i].Paid = paid
		}
		before := newWorld().credited(held...).score(in...)
		strangers := newWorld().score(append(in, blame...)...) // who weigh a little together even without sources
		after := newWorld().credited(held...).score(append(in, blame...)...)
		if after.passes("reject") && !strangers.passes("reject") {
			t.Fatalf("sources reject an agent of %s", strangers.Mean)
		}
		return before.Mean - after.Mean
	}
	// Blame by eight became eleven paths and counted double.
	if got := drop(t, append(rows(20, 60, 100), rows(60, 68, 0)...), 0); got > 12_000 {
		t.Fatalf("blame by sources beside that by eight takes %s points", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		var in []rating.Row
		praise, blame := rapid.IntRange(0, 60).Draw(t, "praise"), rapid.IntRange(0, 30).Draw(t, "blame")
		for i := range praise + blame {
			value := int64(rapid.IntRange(80, 100).Draw(t, "value"))
			if i >= praise {
				value = 0
			}
			in = append(in, row(20+i, value, int64(rapid.IntRange(0, 100).Draw(t, "age"))*testDay))
		}
		if got := drop(t, in, fixed.Int(rapid.SampledFrom([]int{0, 1000}).Draw(t, "paid"))); got > 26_000 {
			t.Fatalf("blame by sources takes %s points", got)
		}
	})
}

// Copies of a trusted rater with facts of their own leave no room for strangers, and never less than none.
func TestNoNegativePool(t *testing.T) {
	w := newWorld()
	w.builder.Add(address(1000))
	in := []rating.Row{row(20, 90, 0)}
	for _, n := range []int{1000, 1001, 1002} { // the same words in one block
		copied := in[0]
		copied.Rater, copied.LogIndex = address(n), uint32(n)
		in = append(in, copied)
	}
	// Members of one burst: a rater whose opinion is strong by weight, and one whose opinion is strong by sources.
	o := []opinion{{vouched: fixed.One, sourced: fixed.Ratio(1, 2), strength: fixed.One, pooled: fixed.Ratio(1, 4)}}
	if boundRater(o); o[0].pooled < 0 {
		t.Errorf("a burst with more than its strongest member has %s units of pool", o[0].pooled.Decimal(3))
	}
	if r := w.credited(credential(1000, kyc)).score(in...); r.Pool < 0 {
		t.Errorf("the pool is %s", r.Pool.Decimal(3))
	}
}

// Raters lately against an agent count in units of vouched weight: ten of next to none, or by sources, shut nobody
// down.
func TestRecentRatersAreUnits(t *testing.T) {
	for what, c := range map[string]struct {
		recent []rating.Row
		held   []graph.RaterCredit
		want   bool
	}{
		"members":              {rows(80, 100, 0), nil, true},
		"nobody":               {nil, nil, false},
		"one member":           {rows(80, 81, 0), nil, false},
		"ten holders of names": {rows(1000, 1010, 0), credentials(1000, 1010, name), false},
		"ten persons":          {rows(1000, 1010, 0), credentials(1000, 1010, kyc), false},
	} {
		var in []rating.Row
		for n := 20; n < 80; n++ {
			in = append(in, row(n, 0, 40*testDay))
		}
		r := newWorld().credited(c.held...).score(append(in, c.recent...)...)
		if r.passes("shutdown") != c.want || !r.passes("reject") {
			t.Errorf("%s lately: shutdown %v, want %v; high %s", what, r.passes("shutdown"), c.want, r.High)
		}
	}
}

// Two independent raters of any kind rate an agent; one of them, with all its wallets, does not.
func TestTwoRatersRate(t *testing.T) {
	for what, c := range map[string]struct {
		edges [][2]int
		rows  []rating.Row
		held  []graph.RaterCredit
		want  Status
	}{
		"two roots":            {nil, rows(0, 2, 100), nil, Rated},
		"a root and a holder":  {nil, append(rows(0, 1, 100), row(1000, 100, 0)), credentials(1000, 1001, kyc), Rated},
		"the same, who differ": {nil, append(rows(0, 1, 100), row(1000, 0, 0)), credentials(1000, 1001, kyc), Rated},
		"two holders":          {nil, rows(1000, 1002, 100), credentials(1000, 1002, kyc), Rated},
		"two holders of names": {nil, rows(1000, 1002, 100), credentials(1000, 1002, name), Rated},
		"a root":               {nil, rows(0, 1, 100), nil, Thin},
		"a holder":             {nil, rows(1000, 1001, 100), credentials(1000, 1001, kyc), Thin},
		"a root and strangers": {nil, append(rows(0, 1, 100), rows(1000, 1100, 100)...), nil, Thin},
		"a root and its wallets": {[][2]int{{0, 2000}, {0, 2001}},
			append(rows(0, 1, 100), rows(2000, 2002, 100)...), nil, Thin},
		"two wallets of a root":       {[][2]int{{0, 2000}, {0, 2001}}, rows(2000, 2002, 100), nil, Thin},
		"a holder with two addresses": {nil, rows(1000, 1002, 100), onePerson(credentials(1000, 1002, kyc)), Thin},
		"a root that holds something": {nil, rows(0, 1, 100), credentials(0, 1, kyc), Thin},
		"two roots, one long ago":     {nil, []rating.Row{row(0, 100, 0), row(1, 100, 900*testDay)}, nil, Thin},
		"two roots long ago": {nil, []rating.Row{row(0, 100, 400*testDay), row(1, 100, 400*testDay)}, nil,
			Thin},
		"nobody": {nil, rows(1000, 1100, 100), nil, Unrated},
	} {
		if r := newWorld(c.edges...).credited(c.held...).score(c.rows...); r.Status != c.want {
			t.Errorf("%s: %s by %s units, want %s", what, r.Status, r.Evidence.Decimal(3), c.want)
		}
	}
}

func onePerson(held []graph.RaterCredit) []graph.RaterCredit {
	for i := range held {
		held[i].Subject = held[0].Subject
	}
	return held
}
