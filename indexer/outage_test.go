package indexer

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"repute/indexer/node"
	"repute/internal/pgtest"
	"repute/internal/rpctest"
	"repute/store/chaindb"
)

// outage closes a database to everybody and opens it again.
type outage struct {
	admin *pgx.Conn
	name  string
}

func newOutage(t *testing.T, dbURL string) *outage {
	t.Helper()
	u, err := url.Parse(dbURL)
	if err != nil {
		t.Fatal(err)
	}
	o := &outage{name: strings.TrimPrefix(u.Path, "/")}
	u.Path = "/postgres"
	if o.admin, err = pgx.Connect(t.Context(), u.String()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.admin.Close(context.Background()) })
	return o
}

func (o *outage) set(t *testing.T, open string) {
	t.Helper()
	for _, sql := range []string{"alter database " + o.name + " allow_connections " + open,
		"select pg_terminate_backend(pid) from pg_stat_activity where datname = '" + o.name + "'"} {
		if _, err := o.admin.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRunSurvivesDatabaseOutage(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	w := newWorld(c, 31)
	w.grow(30)
	dbURL := pgtest.New(t)
	db, pg := openStoreAt(t, dbURL), newOutage(t, dbURL)
	f := follow(t, db, c, Options{TTL: 400 * time.Millisecond})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	eventually(t, "indexed", func() bool { return cursorOf(t, db).Number == 30 })
	for round := range 3 {
		pg.set(t, "false")
		w.grow(10)
		eventually(t, "not ready while the database is away", func() bool { return f.Ready() != nil })
		pg.set(t, "true")
		eventually(t, "goes on where it was", func() bool {
			b, err := chaindb.Cursor(t.Context(), db, 31337)
			return err == nil && b.Number == uint64(40+10*round)
		})
		eventually(t, "ready again", func() bool { return f.Ready() == nil })
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run: %v", err)
	}
	wantFresh(t, db, c)
}

// A process that died keeps its lease until it expires.
func TestTakesOverFromTheDead(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	newWorld(c, 32).grow(10)
	db := openStore(t)
	f := follow(t, db, c, Options{TTL: 100 * time.Millisecond})
	dead, err := db.Acquire(t.Context(), "chain:31337", "dead", 600*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	eventually(t, "stands by", func() bool { return f.Ready() == nil })
	if err := db.Renew(t.Context(), dead, 300*time.Millisecond); err != nil {
		t.Errorf("the lease was taken before it expired: %v", err)
	}
	eventually(t, "takes over", func() bool { return cursorOf(t, db).Number == 10 })
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	m := NewMetrics(reg)
	c := rpctest.New(t, rpctest.Options{})
	c.Mine(c.Register(0, rpctest.Account(1), ""))
	c.MineEmpty(9)
	c.Finalize(8, 7)
	db := openStore(t)
	if err := chaindb.AddChain(t.Context(), db, chainOf(c)); err != nil {
		t.Fatal(err)
	}
	pool := node.NewPool([]*node.Node{newNode(t, c, node.Options{})},
		node.PoolOptions{ChainID: 31337, Metrics: node.NewMetrics(reg)})
	f := NewFollower(db, chainOf(c), pool, Options{Metrics: m})
	catchUp(t, f)
	c.Fork(9)
	c.MineEmpty(2)
	catchUp(t, f)
	for name, want := range map[string]float64{"repute_chain_head_block": 11, "repute_chain_indexed_block": 11,
		"repute_chain_finalized_block": 7, "repute_events_total": 4, "repute_reorgs_total": 1,
		"repute_rpc_errors_total": 0} {
		if got := metric(t, reg, name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if metric(t, reg, "repute_rpc_calls_total") < 10 {
		t.Error("calls are not counted")
	}
	age := time.Since(time.Unix(int64(c.Head().Header.Time), 0)).Seconds()
	if lag := metric(t, reg, "repute_chain_lag_seconds"); lag < age-60 || lag > age+60 {
		t.Errorf("lag is %v s, want about %v", lag, age)
	}
}
