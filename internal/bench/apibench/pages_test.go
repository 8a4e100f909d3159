package apibench

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"repute/internal/bench/harness"
	"repute/internal/pgtest"
	"repute/store"
)

// TestViewsAreAnswered: every page of the benchmark is answered over what fill writes, with no more statements than a
// page may have.
func TestViewsAreAnswered(t *testing.T) {
	t.Parallel()
	url, ctx := pgtest.New(t), t.Context()
	db, err := store.Open(ctx, url, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(ctx)) })
	s := smallSize()
	if err := fill(ctx, &harness.Database{Conn: conn, URL: url}, db, s); err != nil {
		t.Fatal(err)
	}
	counted, err := countingServer(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = counted.close() })
	b := &bench{o: Options{Agents: s.agents, Ratings: s.ratings, Heavy: s.heavy}}
	most := 0
	for _, v := range b.views() {
		for n := range 3 {
			statements, err := counted.view(ctx, v.path(n))
			if err != nil || statements > mostStatements {
				t.Errorf("%s: %d statements, %v", v.path(n), statements, err)
			}
			most = max(most, statements)
		}
	}
	if most < 3 {
		t.Errorf("at most %d statements: they are not counted", most)
	}
}

// TestPageTargets: the worst page of each kind decides, and a page with a graph has a limit of its own.
func TestPageTargets(t *testing.T) {
	t.Parallel()
	graph := "/ui/reviewer/{address}/graph"
	m := PagesMeasurements{
		Small: []Page{{Page: "/", Times: Times{P99: 150}, Statements: 3, KB: 50}},
		Full: []Page{{Page: "/", Times: Times{P99: 600}, Statements: 13, KB: 40},
			{Page: graph, Times: Times{P99: 10}, KB: 140}},
	}
	want := map[string]float64{"slowest page of an index like the demo's, p99": 150,
		"slowest page of the full index, p99": 600,
		"most statements of a page":           13, "largest page without a graph, compressed": 50,
		"largest page with a graph, compressed": 140}
	for _, target := range m.targets() {
		if target.Value != want[target.Name] || target.OK != (target.Value != 600 && target.Value != 13) {
			t.Errorf("%s", target)
		}
		delete(want, target.Name)
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
}
