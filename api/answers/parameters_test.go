package answers

import (
	"errors"
	"math/big"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"repute"
	"repute/api/wire"
	"repute/internal/httpapi"
	"repute/policy"
	"repute/store/docstats"
	"repute/store/searchdb"
	"repute/store/statsdb"
	"repute/trust/explain"
)

// TestPrices: a price is passed on as it is written, and only what Postgres reads as the same number is one.
func TestPrices(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"0", "0.25", "1000000000000", "1e12", "1E-350", ".5", "5.", "+1",
		strings.Repeat("0", 40)} {
		if got, err := parsePrice("maxPrice", httpapi.Real(good)); err != nil || got == nil || *got != good {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{"-1", "-0.0001", "1000000000000.1", "NaN", "Inf", "infinity", "0x1p-2", "1_000", "1e-351",
		"1e99999", "1e", "e5", "1,5", " 1", "", strings.Repeat("0", 41)} {
		got, err := parsePrice("maxPrice", httpapi.Real(bad))
		if bad == "" {
			if got != nil || err != nil {
				t.Errorf("without a price: %v, %v", got, err)
			}
			continue
		}
		checkField(t, bad, err, "maxPrice")
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[0-9]{0,3}[.]?[0-9]{0,3}([eE][+-]?[0-9]{1,4})?`).Draw(t, "text")
		got, err := parsePrice("p", httpapi.Real(text))
		if err != nil || got == nil {
			return
		}
		exact, is := new(big.Rat).SetString(*got)
		if !is || exact.Sign() < 0 || exact.Cmp(new(big.Rat).SetInt64(1e12)) > 0 {
			t.Fatalf("%q is a price", text)
		}
	})
}

// TestSince: what consists of digits is a block, which needs one chain, and everything else a time or a date in UTC.
func TestSince(t *testing.T) {
	t.Parallel()
	one := []uint64{8453}
	for text, want := range map[string]searchdb.Since{"": {}, "2026": {Block: 2026}, "007": {Block: 7},
		"9223372036854775807":       {Block: 1<<63 - 1},
		"2026-01-31":                {Time: time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC)},
		"2026-01-31T12:00:00.5Z":    {Time: time.Date(2026, 1, 31, 12, 0, 0, 5e8, time.UTC)},
		"1960-01-01":                {Time: time.Unix(0, 0).UTC()},
		"1970-01-01T00:30:00+01:00": {Time: time.Unix(0, 0).UTC()},
	} {
		got, err := parseSince("registeredSince", text, one)
		if err != nil || got.Block != want.Block || !got.Time.Equal(want.Time) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, bad := range []string{"9223372036854775808", "-1", "+1", "1.5", "2026-02-30", "2026-1-1", "31.01.2026", "now",
		"2026-01-31 12:00:00", "2026-01-31T12:00:00", "2026-01-31T25:00:00Z"} {
		_, err := parseSince("registeredSince", bad, one)
		checkField(t, bad, err, "registeredSince")
	}
	for _, chains := range [][]uint64{nil, {1, 8453}} {
		_, err := parseSince("updatedSince", "5", chains)
		if checkField(t, "5", err, "updatedSince"); err == nil || !strings.Contains(err.Error(), "give chainId") {
			t.Errorf("a block on the chains %v: %v", chains, err)
		}
	}
}

// TestMoments: the ends of a series are between the first block of any chain and the last year of RFC 3339.
func TestMoments(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"1970-01-01", "9999-12-31", "2026-01-31T23:00:00-05:00"} {
		if got, err := parseMoment("from", good); err != nil || got.Location() != time.UTC {
			t.Errorf("%s: %v, %v", good, got, err)
		}
	}
	for _, bad := range []string{"1969-12-31", "0000-01-01", "5", "yesterday"} {
		_, err := parseMoment("from", bad)
		checkField(t, bad, err, "from")
	}
}

// TestHosts: a host is compared as it is stored, and a path or an address is none.
func TestHosts(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"": "", "shop.example": "shop.example", "SHOP.example": "shop.example",
		"127.0.0.1": "127.0.0.1"} {
		if got, err := parseHost(text); err != nil || got != want {
			t.Errorf("%q is %q, %v", text, got, err)
		}
	}
	for _, bad := range []string{"shop.example/path", "https://shop.example/path", registry, strings.Repeat("a", 254),
		"\xff.example"} {
		_, err := parseHost(bad)
		checkField(t, bad, err, "host")
	}
}

// TestOrders: ids ascend and everything else descends unless the caller says otherwise, and a search orders by
// relevance.
func TestOrders(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		sort, order string
		search      bool
		by          string
		desc        bool
	}{{"", "", false, "id", false}, {"", "", true, "relevance", true}, {"", "asc", true, "relevance", false},
		{"id", "", true, "id", false}, {"id", "desc", false, "id", true}, {"score", "", false, "score", true},
		{"updated", "asc", false, "updated", false}, {"feedback", "desc", true, "feedback", true}} {
		by, desc, err := ParseSort(c.sort, c.order, c.search)
		if err != nil || by != c.by || desc != c.desc {
			t.Errorf("%+v: %s, %t, %v", c, by, desc, err)
		}
	}
	var r Request
	if r.isSearch() {
		t.Error("a request without parameters is a search")
	}
	for _, name := range searchNames() {
		if r.SetGiven(url.Values{name: {""}}); !r.isSearch() {
			t.Errorf("an empty %s is no search", name)
		}
	}
	if r.SetGiven(url.Values{"owner": {registry}, "cursor": {"x"}}); r.isSearch() {
		t.Error("an owner makes a search")
	}
}

// TestOwnRoots: a caller that gives roots of its own cannot get what is only true of the chain's own roots.
func TestOwnRoots(t *testing.T) {
	t.Parallel()
	own := OwnRoots{Roots: registry}
	for name, c := range map[string]struct {
		by     OwnRoots
		signed bool
		at     repute.At
		field  string
	}{
		"none":              {by: OwnRoots{}, signed: true, at: repute.At{Block: 5}},
		"own":               {by: own, at: Latest()},
		"with sources":      {by: OwnRoots{Roots: "auditors", Sources: "default"}, at: Latest()},
		"signed":            {by: own, signed: true, at: Latest(), field: "signed"},
		"final":             {by: own, at: repute.At{Finality: repute.Finalized}, field: "at"},
		"at a block":        {by: own, at: repute.At{Block: 5}, field: "at"},
		"sources alone":     {by: OwnRoots{Sources: "none"}, at: Latest(), field: "sources"},
		"unknown sources":   {by: OwnRoots{Roots: registry, Sources: "all"}, at: Latest(), field: "sources"},
		"capital":           {by: OwnRoots{Roots: registry, Sources: "None"}, at: Latest(), field: "sources"},
		"sources of no-one": {by: OwnRoots{Sources: "other"}, at: Latest(), field: "sources"},
	} {
		err := c.by.Check(c.signed, c.at)
		if c.field == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		checkField(t, name, err, c.field)
	}
	checkField(t, "", NoRoots(), "roots")
}

// TestSignedViews: only the newest final score is signed, whatever view is asked for.
func TestSignedViews(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ flag, at, want, field string }{{"", "", "", ""}, {"0", "17", "17", ""},
		{"1", "", "finalized", ""}, {"true", "finalized", "finalized", ""}, {"1", "latest", "", "at"},
		{"1", "17", "", "at"}, {"yes", "", "", "signed"}} {
		signed, view, err := SignedAt(httpapi.Flag(c.flag), c.at)
		if c.field != "" {
			checkField(t, c.flag+" "+c.at, err, c.field)
			continue
		}
		if err != nil || view != c.want || signed != (c.flag == "1" || c.flag == "true") {
			t.Errorf("%+v: %t, %q, %v", c, signed, view, err)
		}
	}
}

// TestPeriods: only a ranking by growth has a period, of thirty days when none is given.
func TestPeriods(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for _, c := range []struct {
		period string
		by     statsdb.Ranking
		want   time.Duration
	}{{"", statsdb.ByScore, 0}, {"", statsdb.ByGrowth, 30 * day}, {"7d", statsdb.ByGrowth, 7 * day},
		{"90d", statsdb.ByGrowth, 90 * day}, {"7d", statsdb.ByScore, -1}, {"30d", statsdb.ByReviewers, -1},
		{"1d", statsdb.ByGrowth, -1}, {"30", statsdb.ByGrowth, -1}} {
		got, err := parsePeriod(c.period, c.by)
		if c.want < 0 {
			checkField(t, c.period, err, "period")
		} else if err != nil || got != c.want {
			t.Errorf("%+v: %s, %v", c, got, err)
		}
	}
	for _, bad := range []string{"-1", "+1", "x", "9223372036854775808", "1.0"} {
		_, err := (&LeadersQuery{MinReviewers: httpapi.Number(bad)}).Filter()
		checkField(t, bad, err, "minReviewers")
	}
}

// TestChanges: kinds and views of the feed that do not exist are refused by the name of their parameter.
func TestChanges(t *testing.T) {
	t.Parallel()
	x := &Index{}
	q := ChangesQuery{Kinds: " score.changed, operator", Finality: "finalized", ChainID: "8453"}
	f, err := q.Filter(t.Context(), x)
	if err != nil || len(f.Kinds) != 2 || !f.Final || f.ChainID != 8453 || f.TokenID != nil {
		t.Errorf("%+v, %v", f, err)
	}
	for field, q := range map[string]ChangesQuery{"kinds": {Kinds: "operator,,operator"}, "finality": {Finality: "safe"},
		"chainId": {ChainID: "0"}, "id": {Agent: "x"}} {
		_, err := q.Filter(t.Context(), x)
		checkField(t, field, err, field)
	}
	if _, err := (&ChangesQuery{Kinds: "operator,x"}).Filter(t.Context(), x); err == nil ||
		!strings.Contains(err.Error(), "feedback.given") {
		t.Errorf("the error does not list the kinds: %v", err)
	}
	if _, err := (&ChangesQuery{Since: "not a cursor"}).Filter(t.Context(), x); !errors.Is(err, repute.ErrInvalid) {
		t.Errorf("a cursor that is none: %v", err)
	}
}

// TestIntents: a search of intents and a list of them take different parameters, and each mistake names its own.
func TestIntents(t *testing.T) {
	t.Parallel()
	for field, q := range map[string]IntentsQuery{"kind": {Kind: "thing"}, "q": {Kind: "tool", Q: "  "},
		"cursor": {Q: "a", PageQuery: PageQuery{Cursor: "x"}}, "tier": {Tier: "5"}, "minScore": {MinScore: "101"},
		"maxPrice": {MaxPrice: "-1"}, "limit": {PageQuery: PageQuery{Limit: "201"}}} {
		_, err := q.Filter()
		checkField(t, field, err, field)
	}
	for name, q := range map[string]IntentsQuery{"text": {Q: strings.Repeat("a", 1001)},
		"protocol": {Protocol: strings.Repeat("a", 1001)}, "network": {Network: strings.Repeat("a", 1001)}} {
		_, err := q.Filter()
		checkField(t, name, err, "q")
	}
	f, err := (&IntentsQuery{Q: "translate", Kind: "tool", Tier: "4", MinScore: "-0.5"}).Filter()
	if err != nil || f.Tier == nil || *f.Tier != 4 || f.MinScore == nil || *f.MinScore != -500 || f.Limit != 50 {
		t.Errorf("%+v, %v", f, err)
	}
	for _, bad := range []string{"5", "-1", "+1", "3+", "x"} {
		_, err := (&ManifestsQuery{VerifiedTier: httpapi.Number(bad)}).Filter()
		checkField(t, bad, err, "verifiedTier")
	}
}

// indexOf returns an index that decides without a database.
func indexOf(t *testing.T) *Index {
	t.Helper()
	x := &Index{}
	var err error
	if x.trust, err = explain.NewReader(nil, explain.Options{}); err != nil {
		t.Fatal(err)
	}
	if x.payments, err = policy.ForPayments(); err != nil {
		t.Fatal(err)
	}
	if x.bare, err = policy.Parse([]byte(`version: "1"`)); err != nil {
		t.Fatal(err)
	}
	return x
}

// TestDemands: thresholds of the caller replace the steps by value unless it names a value, which adds them again.
func TestDemands(t *testing.T) {
	t.Parallel()
	x := indexOf(t)
	for name, c := range map[string]struct {
		q      DecisionQuery
		points float64 // -1: no score is demanded
		tier   int64
		gates  int
	}{
		"nothing": {points: 0},
		"a tier":  {q: DecisionQuery{Tier: "1"}, points: -1, tier: 1},
		"a gate":  {q: DecisionQuery{Gates: "service"}, points: -1, gates: 1},
		"a score": {q: DecisionQuery{MinScore: "-20"}, points: -20},
		"a value": {q: DecisionQuery{ValueAtRisk: "10000000000000000"}, points: 0, tier: 2},
		"a tier and a value": {q: DecisionQuery{Tier: "3", ValueAtRisk: "1000000000000000000"}, points: 25, tier: 3,
			gates: 1},
		"a low score and a value": {q: DecisionQuery{MinScore: "-20", ValueAtRisk: "0"}, points: 0},
		"verified alone":          {q: DecisionQuery{Verified: "1"}, points: 0},
	} {
		d, err := c.q.ReadDemand()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		_, all, err := x.demanded(d)
		points := -1.0
		if all.MinReputation != nil {
			points = *all.MinReputation
		}
		if err != nil || points != c.points || all.MinTier != c.tier || len(all.Gates) != c.gates ||
			all.Verified != (c.q.Verified == "1") {
			t.Errorf("%s: %+v, %g points, %v", name, all, points, err)
		}
	}
	for field, q := range map[string]DecisionQuery{"gates": {Gates: "service,servcie"},
		"valueAtRisk": {ValueAtRisk: "1e18"}, "minScore": {MinScore: "x"}, "tier": {Tier: "5"},
		"verified": {Verified: "maybe"}} {
		d, err := q.ReadDemand()
		if err == nil {
			err = x.CheckDemand(d)
		}
		checkField(t, field, err, field)
	}
}

// TestMissing: what an agent lacks is told with both numbers, gate by gate, and nothing that it has.
func TestMissing(t *testing.T) {
	t.Parallel()
	var s wire.Scored
	s.Low, s.Tier = 20, 2
	s.Gates = []wire.Gate{{ID: "service", Lacks: []wire.Lacking{{What: "low", Have: 20, Must: "atLeast", Need: 50}}},
		{ID: "other", Lacks: []wire.Lacking{{What: "raters"}}}}
	got := missingOf(s, policy.Threshold{MinReputation: new(20.0), MinTier: 2})
	if got == nil || len(got) != 0 {
		t.Errorf("nothing is missing: %+v", got)
	}
	got = missingOf(s, policy.Threshold{MinReputation: new(20.5), MinTier: 3, Gates: []string{"service"}})
	if len(got) != 3 || got[0].What != "low" || got[0].Need != 20.5 || got[1].What != "tier" || got[1].Have != 2 ||
		got[2].Gate == nil || *got[2].Gate != "service" || got[2].Need != 50 {
		t.Errorf("%+v", got)
	}
	reason := "too few"
	s.Reason, s.Status, s.Gates[0].Passed = &reason, "thin", true
	if a := agentOf(s); a.WhyUnrated != reason || a.Status != policy.StatusThin || !a.Gates["service"] ||
		a.Gates["other"] || a.Low != 20 || !a.IdentityExists {
		t.Errorf("%+v", a)
	}
}

// TestFetchState: documents that wait are a matter of minutes without a process that fetches, and of more with one.
func TestFetchState(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		waits   time.Duration // 0: nothing waits
		workers bool
		want    string
	}{{0, false, ""}, {59 * time.Second, false, ""}, {time.Minute, false, "unfetched"}, {time.Minute, true, ""},
		{15 * time.Minute, true, ""}, {15*time.Minute + 1, true, "late"}, {time.Hour, false, "unfetched"},
		{-time.Hour, true, ""}} {
		f := docstats.Fetching{Workers: c.workers}
		if c.waits != 0 {
			f.Since = now.Add(-c.waits)
		}
		if got := FetchState(f, now); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

// TestScores: scores of parameters are thousandths, rounded, and nothing but a number in range is one.
func TestScores(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(-100_000, 100_000).Draw(t, "thousandths")
		text := strconv.FormatFloat(float64(n)/1000, 'f', -1, 64)
		if got, err := parseScore("minScore", text); err != nil || int64(*got) != n {
			t.Fatalf("%s is %v, %v", text, got, err)
		}
	})
	for _, bad := range []string{"100.0001", "-101", "NaN", "Inf", "x", "1e3", " 1"} {
		_, err := parseScore("minScore", bad)
		checkField(t, bad, err, "minScore")
	}
	for _, bad := range []string{"5", "-1", "+2", "2.0"} {
		_, err := parseScoreFilter("", "", bad, "")
		checkField(t, bad, err, "tier")
	}
	_, err := parseScoreFilter("", "", "", "good")
	checkField(t, "good", err, "rating")
}
