package api_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"repute"
	"repute/api"
	"repute/api/wire"
	"repute/internal/pgtest"
	"repute/store/scoredb"
)

// TestOneAgentIsBounded: neither keys, values and tags nor their number make the
// answers of one agent long, and what was cut says so.
func TestOneAgentIsBounded(t *testing.T) {
	t.Parallel()
	db := open(t, pgtest.New(t))
	l := newLedger(t, db, 1)
	l.add(mint(7, addr(1), "https://a.example")...)
	events := []repute.Event{
		repute.MetadataSet{TokenID: token(7), Key: "0 long value", Value: []byte(strings.Repeat("é", 50_000))},
		repute.MetadataSet{TokenID: token(7), Key: "1 long key " + strings.Repeat("k", 50_000), Value: []byte("v")},
		repute.MetadataSet{TokenID: token(7), Key: "2 short", Value: []byte("v")},
	}
	for i := range 300 {
		events = append(events, repute.MetadataSet{TokenID: token(7), Key: fmt.Sprintf("k%03d", i), Value: []byte{1}})
	}
	long := strings.Repeat("t", 100_000)
	for i := range 150 {
		events = append(events, ratingOf(7, i, 1, 80, 0, fmt.Sprintf("tag%03d%s", i%120, long[:i%2*50_000]), long))
	}
	events = append(events, ratingOf(7, 150, 1, 90, 0, "tag001"+long[:50_000], "short"))
	l.add(events...)
	s := serve(t, api.Options{DB: db})

	r := get(t, s, "/agents/1:7")
	a := as[wire.AgentAnswer](t, r)
	if a.MetadataCount != 303 || len(a.Metadata) != 200 || len(r.body) > 120_000 {
		t.Fatalf("%d of %d keys in %d bytes", len(a.Metadata), a.MetadataCount, len(r.body))
	}
	value, key, short := a.Metadata[0], a.Metadata[1], a.Metadata[2]
	if !value.Partial || value.Size != 100_000 || len(value.Value) != 2+2*2048 || value.Text == nil {
		t.Errorf("long value: %d digits of %d bytes, partial %v, text %v", len(value.Value), value.Size, value.Partial,
			value.Text != nil)
	}
	if !key.Partial || len(key.Key) != 2048 || key.Size != 1 || short.Partial || short.Size != 1 || *short.Text != "v" {
		t.Errorf("long key of %d bytes: %v; short: %+v", len(key.Key), key.Partial, short)
	}
	if len(a.Cut) != 2 || a.Cut[0].Field != "metadata/0/value" || a.Cut[1].Field != "metadata/1/key" {
		t.Errorf("cut: %+v", a.Cut)
	}

	rep := as[wire.ReputationAnswer](t, get(t, s, "/agents/1:7/reputation"))
	if len(rep.Tags) != 100 || rep.TagsTotal != 120 || rep.Summary.Count != 151 {
		t.Fatalf("%d of %d tags, %d ratings", len(rep.Tags), rep.TagsTotal, rep.Summary.Count)
	}
	if first := rep.Tags[0]; first.Count != 3 || len(first.Tag) != 2048 || !first.Partial ||
		!strings.HasPrefix(first.Tag, "tag001t") || rep.Tags[1].Count != 2 {
		t.Errorf("first tag of %d bytes: %d ratings, partial %v", len(first.Tag), first.Count, first.Partial)
	}

	list := get(t, s, "/agents/1:7/feedback?limit=200")
	page := as[wire.FeedbackList](t, list)
	if len(page.Items) != 151 || len(list.body) > 151*6_000 {
		t.Fatalf("%d ratings in %d bytes", len(page.Items), len(list.body))
	}
	if newest := page.Items[0]; !newest.Partial || newest.Tag2 != "short" || len(newest.Tag1) != 2048 {
		t.Errorf("newest rating: partial %v, tags of %d and %d bytes", newest.Partial, len(newest.Tag1),
			len(newest.Tag2))
	}
}

// TestNotFoundSaysWhatAndNoMore: what there is not is named without the inside, and
// a route that there is not does not blame the id.
func TestNotFoundSaysWhatAndNoMore(t *testing.T) {
	t.Parallel()
	s, _ := populated(t, api.Options{})
	for path, want := range map[string]string{
		"/agents/8453:999999":                 "agent 8453:999999 is not indexed",
		"/agents/8453:999999/reputation":      "agent 8453:999999 is not indexed",
		"/agents/77:1":                        "chain 77 is not indexed",
		"/chains/77":                          "chain 77 is not indexed",
		"/agents/8453:7/nope":                 "no such route",
		"/agents/7/nope":                      "no such route",
		"/agents/8453:7/22":                   "no such route",
		"/agents/8453/7/nope":                 "no such route",
		"/chains/8453/agents/7/validationses": "no such route",
	} {
		if b := problemOf(t, get(t, s, path)); b.Status != 404 || b.Detail != want {
			t.Errorf("%s: %d %q, want 404 %q", path, b.Status, b.Detail, want)
		}
	}
	zero := "/agents?wallet=0x" + strings.Repeat("0", 40)
	if b := problemOf(t, get(t, s, zero)); b.Status != 400 || len(b.Errors) != 1 || b.Errors[0].Field != "wallet" {
		t.Errorf("zero wallet: %+v", b)
	}
}

// TestIndexMetrics: what /status says is a metric too.
func TestIndexMetrics(t *testing.T) {
	t.Parallel()
	s, l := populated(t, api.Options{})
	l.finalize()
	answer := get(t, s, "/metrics")
	page := string(answer.body)
	for _, want := range []string{"repute_index_readable 1", `repute_index_block{chain="8453"}`,
		`repute_index_complete{chain="8453"} 1`, `repute_index_unproven{chain="8453"} 0`,
		`repute_index_proven_block{chain="8453"}`,
		`repute_index_halted{chain="8453"} 0`, `repute_index_agents{chain="8453"}`,
		`repute_index_open_gaps{chain="8453",kind="NewFeedback"} 0`,
		`repute_index_lag_seconds{chain="8453"}`, `repute_index_uris_due{chain="8453"}`} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s: %d %.600s", want, answer.status, page)
		}
	}
	if strings.Contains(page, "repute_index_lift_dollars{") {
		t.Error("a price without sources")
	}
	away := serve(t, api.Options{DB: open(t, nowhere)})
	if page := string(get(t, away, "/metrics").body); !strings.Contains(page, "repute_index_readable 0") ||
		strings.Contains(page, "repute_index_block{") {
		t.Errorf("a database that is away is not told: %.400s", page)
	}
}

// TestCoverageMetrics: why records do not count, what sources give, what it costs to lift an agent, and how far blocks
// are verified, are metrics, in /chains and in GraphQL.
func TestCoverageMetrics(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	db := open(t, url)
	populate(t, db)
	run := scoredb.Run{ChainID: 8453, Run: 1, Epoch: 1, Boundary: 2, Scorer: "test", VerifiedTo: 3,
		Readings: `[{"source":"club","chain":8453,"status":"ok","block":2,"time":9,"complete":9},
			{"source":"bab","chain":56,"status":"off","reason":"another implementation","block":7,"time":9}]`,
		Coverage: repute.Coverage{Raters: repute.Counted{All: 9, Counted: 4}, Left: map[string]int64{"unknown-tag": 7},
			BySource: map[string]int64{"club": 3},
			ToFifty:  &repute.LiftPrice{Cents: 47_000, Units: 5000, Priced: []string{"club"}}}}
	if err := scoredb.AddRun(t.Context(), db, run); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Pool().Exec(t.Context(), "update trust_runs set closed_at = now()"); err != nil {
		t.Fatal(err)
	}
	s := serve(t, api.Options{DB: db})
	page := string(get(t, s, "/metrics").body)
	for _, want := range []string{`repute_index_records_left{chain="8453",reason="unknown-tag"} 7`,
		`repute_index_records_by_source{chain="8453",source="club"} 3`,
		`repute_index_source_read{chain="8453",source="bab"} 0`,
		`repute_index_source_read{chain="8453",source="club"} 1`, `repute_index_raters{chain="8453"} 9`,
		`repute_index_raters_counted{chain="8453"} 4`, `repute_index_lift_dollars{chain="8453"} 470`,
		`repute_index_scores_verified{chain="8453"} 1`, `repute_index_scores_verified_block{chain="8453"} 3`} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s", want)
		}
	}
	rest := as[wire.Chain](t, get(t, s, "/chains/8453")).Scores
	all := data[struct {
		Chains []struct {
			ChainID wire.Long
			Scores  wire.ChainScores
		}
	}](t,
		ask(t, s,
			`{ chains { chainId scores { verified verifiedTo sources { source status reason chain block readAt completeAt kept }
		coverage { bySource { source count } toFifty { dollars units priced unpriced } } } } }`, nil)).Chains
	var graph wire.ChainScores
	for _, c := range all {
		if c.ChainID == 8453 {
			graph = c.Scores
		}
	}
	if *rest.Coverage.ToFifty.Dollars != 470 || rest.Sources[1].Status != "off" || !rest.Verified ||
		*rest.VerifiedTo != 3 {
		t.Errorf("REST %+v", rest)
	}
	if !graph.Verified || !reflect.DeepEqual(graph.Sources, rest.Sources) ||
		!reflect.DeepEqual(graph.Coverage.ToFifty, rest.Coverage.ToFifty) ||
		!reflect.DeepEqual(graph.Coverage.BySource, rest.Coverage.BySource) || *graph.VerifiedTo != 3 {
		t.Errorf("GraphQL %+v, REST %+v", graph, rest)
	}
}
