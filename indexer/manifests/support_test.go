package manifests

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/contracts"
	"repute/indexer"
	"repute/indexer/documents"
	"repute/indexer/node"
	"repute/internal/pgtest"
	"repute/internal/rpctest"
	"repute/internal/sitetest"
	"repute/resolver"
	"repute/resolver/wellknown"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/manifestdb"
)

// openStore opens an empty database.
func openStore(t *testing.T) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), pgtest.New(t),
		store.Options{Classify: documents.Classify, Decode: contracts.Read, MaxConns: 8})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

// index stores what the chain has, and reads the files of its agents.
func index(t *testing.T, db *store.DB, c *rpctest.Chain, client *resolver.Client) {
	t.Helper()
	chain := repute.Chain{ID: 31337, Name: "scripted", Identity: c.Identity, Reputation: c.Reputation,
		Validations: []common.Address{c.Validation}, StartBlock: 1}
	if err := chaindb.AddChain(t.Context(), db, chain); err != nil {
		t.Fatal(err)
	}
	n, err := node.New(c.URL(), node.Options{Timeout: 20 * time.Second, OpenMin: 1, OpenMax: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	f := indexer.NewFollower(db, chain, n, indexer.Options{Poll: 10 * time.Millisecond})
	for err == nil {
		err = f.Step(t.Context(), store.Lease{})
	}
	if !errors.Is(err, indexer.ErrNothingNew) {
		t.Fatal(err)
	}
	loop := documents.New(db, client, documents.Options{Sweep: 20 * time.Millisecond, Upkeep: 20 * time.Millisecond})
	t.Cleanup(running(t, loop.Run))
}

// running runs a loop until stop, which waits for its end.
func running(t *testing.T, run func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	return sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("never: %s", what)
}

// site answers https for domains on port 443 of an address of the loopback network, so that hosts have no port. Each
// test has its own address.
func site(t *testing.T, address string, answer http.HandlerFunc, domains ...string) *resolver.Client {
	t.Helper()
	client, err := resolver.New(resolver.Options{Timeout: 2 * time.Second,
		GuardOptions: sitetest.New(t, address, answer, domains...)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// read returns what is stored of a domain; the zero value before it is known.
func read(t *testing.T, db *store.DB, domain string) (manifestdb.Manifest, []manifestdb.Link) {
	t.Helper()
	m, links, err := manifestdb.Read(t.Context(), db, domain)
	if err != nil && !errors.Is(err, repute.ErrNotFound) {
		t.Fatal(err)
	}
	return m, links
}

// quick are options with which nothing waits long.
func quick() Options {
	return Options{Sweep: 10 * time.Millisecond, PlanWait: 20 * time.Millisecond, Refetch: 50 * time.Millisecond,
		Absent: 50 * time.Millisecond, RetryMin: 20 * time.Millisecond, RetryMax: 100 * time.Millisecond}
}

// crawl runs a loop of listed domains.
func crawl(t *testing.T, db *store.DB, client *resolver.Client, o Options, domains ...string) (stop func()) {
	t.Helper()
	if _, err := manifestdb.Import(t.Context(), db, domains); err != nil {
		t.Fatal(err)
	}
	stop = running(t, New(db, wellknown.New(client), o).Run)
	t.Cleanup(stop)
	return stop
}
