package manifests

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os/exec"
	"sync"
	"testing"
	"time"

	"repute/contracts"
	"repute/indexer/documents"
	"repute/internal/killtest"
	"repute/internal/pgtest"
	"repute/internal/sitetest"
	"repute/resolver"
	"repute/resolver/wellknown"
	"repute/store"
)

// crawling is the crawl that a process runs until it is killed.
type crawling struct{ Database, Site, DNS string }

// TestMain runs the tests, or what a test wants a process to do.
func TestMain(m *testing.M) { killtest.Main(m, runCrawl) }

// openAt opens a database as the program does.
func openAt(ctx context.Context, url string) (*store.DB, error) {
	return store.Open(ctx, url, store.Options{Classify: documents.Classify, Decode: contracts.Read, MaxConns: 4})
}

func runCrawl(ctx context.Context, w crawling) error {
	db, err := openAt(ctx, w.Database)
	if err != nil {
		return err
	}
	defer db.Close()
	client, err := resolver.New(resolver.Options{Timeout: 5 * time.Second, GuardOptions: resolver.GuardOptions{
		AllowPrefixes: []netip.Prefix{netip.MustParsePrefix(w.Site + "/32")},
		Resolver: &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "udp4", w.DNS)
		}}}})
	if err != nil {
		return err
	}
	defer client.Close()
	o := quick()
	o.Refetch, o.Absent = time.Hour, time.Hour // each domain is due once
	return New(db, wellknown.New(client), o).Run(ctx)
}

// killer kills a process at one of its messages to the database, before the database has it or after. It counts from
// the first message that claims domains.
type killer struct {
	mu        sync.Mutex
	child     *exec.Cmd // nil: nobody is killed
	at, count int
}

func (k *killer) strike([]byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.child == nil {
		return
	}
	if k.count++; k.count >= k.at {
		_ = k.child.Process.Kill()
		k.child = nil
	}
}

// visits counts the requests of hosts, and the most of one host at the same time.
type visits struct {
	mu      sync.Mutex
	running map[string]int
	asked   map[string]int
	most    int
}

// ServeHTTP serves the manifest of a host.
func (v *visits) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v.add(r.Host, 1)
	defer v.add(r.Host, -1)
	time.Sleep(2 * time.Millisecond) // so that requests of one host would meet
	if r.URL.Path != wellKnown {
		http.NotFound(w, r)
		return
	}
	fmt.Fprint(w, priced(r.Host, payee))
}

func (v *visits) add(host string, n int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.running[host] += n
	v.most = max(v.most, v.running[host])
	if n > 0 {
		v.asked[host]++
	}
}

// Kills at each message to the database lose no domain and tell of none twice; no host is asked twice at a time, and at
// most once more for each kill.
func TestKillDuringCrawl(t *testing.T) {
	const address, domains, every = "127.81.4.1", 5, 4
	v := &visits{running: map[string]int{}, asked: map[string]int{}}
	sitetest.ForProcess(t, address, v)
	dns, err := sitetest.Names(t, address).Dial(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	defer dns.Close()
	database := pgtest.New(t)
	db, err := openAt(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := db.Pool().Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	exec(`insert into documents (sha256, media_type, first_seen) values (sha256('a'), '', now())`)
	exec(`insert into uris (hash, uri, kind, host, sha256) values (sha256('1'), '1', 'https', 'x', sha256('a'))`)
	exec(`insert into agents (chain_id, token_id, owner, claimed, wallet, approved, uri_id, registered_block, registered_log,
		updated_block, updated_log) select 1, 0, '', false, '', '', id, 1, 1, 1, 1 from uris`)
	for i := range domains {
		exec(`insert into domains (sha256, domain) values (sha256('a'), $1)`, fmt.Sprintf("d%d.example.com", i))
	}
	count := func(sql string) (n int) {
		t.Helper()
		if err := db.Pool().QueryRow(t.Context(), sql).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	k := &killer{}
	w := crawling{Database: killtest.Relay(t, database, k.strike), Site: address, DNS: dns.RemoteAddr().String()}
	done := func() bool { return count(`select count(*) from manifests where state = 'ok'`) == domains }
	kills := 0
	for at := 1; !done(); at += every {
		child, err := killtest.Command(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		k.mu.Lock()
		k.child, k.at, k.count = child, at, 0
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		k.mu.Unlock()
		_ = child.Wait()
		kills++
		exec(`update manifests set claimed_until = now() where claimed_until is not null`) // an hour later
		exec(`update hosts set claimed_until = now() where claimed_until is not null`)
	}
	t.Logf("%d kills, %v requests", kills, v.asked)
	if kills < 5 {
		t.Errorf("only %d kills", kills)
	}
	for what, sql := range map[string]string{
		"changes":                     `select count(*) from changes where kind = 'manifest.updated'`,
		"domains told of":             `select count(distinct data->>'domain') from changes where kind = 'manifest.updated'`,
		"intents":                     `select count(*) from manifest_intents`,
		"domains that nobody has now": `select count(*) from manifests where due_at > now()`,
	} {
		if got := count(sql); got != domains {
			t.Errorf("%d %s, want %d", got, what, domains)
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.most != 1 {
		t.Errorf("%d requests of one host at a time", v.most)
	}
	for host, n := range v.asked {
		if n > 2*(kills+1) { // robots.txt and the manifest
			t.Errorf("%s was asked %d times in %d kills", host, n, kills)
		}
	}
}
