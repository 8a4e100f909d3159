package documents

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/internal/pgtest"
	"repute/internal/rpctest"
	"repute/resolver"
	"repute/store"
	"repute/store/docdb"
	"repute/store/query"
)

const goodFile = `{"type":"https://eips.ethereum.org/EIPS/eip-8004#registration-v1","name":"Ada","description":"d","image":"https://x/i.png","services":[]}`

// site answers paths and counts requests.
type site struct {
	*httptest.Server
	mu   sync.Mutex
	hits map[string]int
}

func newSite(t *testing.T, answer func(path string, hit int, w http.ResponseWriter)) *site {
	s := &site{hits: map[string]int{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.hits[r.URL.Path]++
		n := s.hits[r.URL.Path]
		s.mu.Unlock()
		answer(r.URL.Path, n, w)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *site) count(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hits[path]
}

func newLoop(t *testing.T, db *store.DB, o Options) *Loop {
	t.Helper()
	c, err := resolver.New(resolver.Options{Timeout: 2 * time.Second,
		GuardOptions: resolver.GuardOptions{AllowPrefixes: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	o.Sweep, o.Upkeep = 20*time.Millisecond, 20*time.Millisecond
	return New(db, c, o)
}

// running starts the loop and returns what stops it and waits.
func running(t *testing.T, d *Loop) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	return sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

// register indexes one agent per URI.
func register(t *testing.T, db *store.DB, uris ...string) *rpctest.Chain {
	t.Helper()
	c := rpctest.New(t, rpctest.Options{})
	var txs [][]types.Log
	for i, uri := range uris {
		txs = append(txs, c.Register(uint64(i), rpctest.Account(1), uri))
	}
	c.Mine(txs...)
	index(t, db, c)
	return c
}

func document(t *testing.T, db *store.DB, c *rpctest.Chain, id uint64) repute.Document {
	t.Helper()
	a, _, err := query.Agent(t.Context(), db, repute.AgentID{ChainID: 31337, Registry: c.Identity,
		TokenID: rpctest.Token(id)},
		repute.At{Finality: repute.Latest})
	if err != nil {
		t.Fatal(err)
	}
	return a.Document
}

func TestDocuments(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(path string, hit int, w http.ResponseWriter) {
		switch path {
		case "/gone":
			http.NotFound(w, nil)
		case "/page":
			fmt.Fprint(w, "<html>")
		default:
			fmt.Fprint(w, goodFile)
		}
	})
	db := openStore(t)
	c := register(t, db, s.URL+"/a", s.URL+"/a", "data:application/json,"+goodFile, goodFile,
		s.URL+"/page", s.URL+"/gone", "data:no comma", "tinybanana", "")
	defer running(t, newLoop(t, db, Options{}))()
	want := []struct {
		status repute.DocumentStatus
		source string
		again  bool // another try is planned
	}{
		{repute.DocumentOK, "https", true}, {repute.DocumentOK, "https", true}, {repute.DocumentOK, "data", false},
		{repute.DocumentOK, "inline", false}, {repute.DocumentInvalid, "https", true},
		{repute.DocumentFailed, "", true},
		{repute.DocumentDead, "", false}, {repute.DocumentDead, "", false}, {repute.DocumentNone, "", false},
	}
	for i, w := range want {
		var d repute.Document
		eventually(t, fmt.Sprintf("agent %d has a document that is %s", i, w.status), func() bool {
			d = document(t, db, c, uint64(i))
			return d.Status == w.status
		})
		if d.Source != w.source || d.NextTry.IsZero() == w.again ||
			(d.Status == repute.DocumentFailed || d.Status == repute.DocumentDead) != (d.Reason != "") {
			t.Errorf("agent %d: %+v", i, d)
		}
		if d.Status == repute.DocumentInvalid && (d.Registration != nil || len(d.Problems) == 0) {
			t.Errorf("agent %d: a web page gave %+v, problems %v", i, d.Registration, d.Problems)
		}
		if d.Status == repute.DocumentOK && (d.Registration == nil || d.Registration.Name != "Ada") {
			t.Errorf("agent %d: registration %+v", i, d.Registration)
		}
	}
	if n := s.count("/a"); n != 1 {
		t.Errorf("%d fetches of one URI that two agents share", n)
	}
}

func TestDocumentsRetry(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(path string, hit int, w http.ResponseWriter) {
		if hit < 4 {
			http.Error(w, "not now", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprint(w, goodFile)
	})
	db := openStore(t)
	c := register(t, db, s.URL+"/flaky")
	defer running(t, newLoop(t, db, Options{RetryMin: 10 * time.Millisecond}))()
	eventually(t, "the document is read at the fourth try",
		func() bool { return document(t, db, c, 0).Status == repute.DocumentOK })
	if n := s.count("/flaky"); n != 4 {
		t.Errorf("%d tries, want 4", n)
	}
}

func TestDocumentsRetryAfter(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(path string, hit int, w http.ResponseWriter) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	db := openStore(t)
	c := register(t, db, s.URL+"/limited")
	defer running(t, newLoop(t, db, Options{RetryMin: 10 * time.Millisecond}))()
	eventually(t, "the refusal is recorded", func() bool { return document(t, db, c, 0).Reason != "" })
	if d := document(t, db, c, 0); time.Until(d.NextTry) < 50*time.Minute {
		t.Errorf("next try in %s although the server asked for an hour", time.Until(d.NextTry))
	}
}

func TestDocumentsRefetch(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(path string, hit int, w http.ResponseWriter) {
		switch {
		case hit == 1:
			fmt.Fprint(w, goodFile)
		case hit == 2:
			http.Error(w, "down", http.StatusInternalServerError)
		default:
			fmt.Fprint(w, strings.Replace(goodFile, "Ada", "Bob", 1))
		}
	})
	db := openStore(t)
	c := register(t, db, s.URL+"/changes")
	defer running(t, newLoop(t, db, Options{Refetch: 50 * time.Millisecond, RetryMin: 10 * time.Millisecond}))()
	eventually(t, "the new document is read", func() bool {
		again := s.count("/changes") > 1 // before the look: what it counts was saved by then
		d := document(t, db, c, 0)
		if d.Registration == nil && again {
			t.Fatalf("the last good document is gone: %+v", d)
		}
		return d.Registration != nil && d.Registration.Name == "Bob"
	})
}

// Two processes must not fetch one host at the same time, nor leave any out.
func TestDocumentsTwoProcesses(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	open, most := 0, 0
	s := newSite(t, func(path string, hit int, w http.ResponseWriter) {
		mu.Lock()
		open++
		most = max(most, open)
		mu.Unlock()
		time.Sleep(2 * time.Millisecond) // long enough to overlap with others
		mu.Lock()
		open--
		mu.Unlock()
		fmt.Fprint(w, goodFile)
	})
	var uris []string
	for i := range 40 {
		uris = append(uris, fmt.Sprintf("%s/%d", s.URL, i))
	}
	db := openStore(t)
	c := register(t, db, uris...)
	defer running(t, newLoop(t, db, Options{}))()
	defer running(t, newLoop(t, db, Options{}))()
	for i := range uris {
		eventually(t, "read", func() bool { return document(t, db, c, uint64(i)).Status == repute.DocumentOK })
		if n := s.count(fmt.Sprintf("/%d", i)); n != 1 {
			t.Errorf("document %d fetched %d times", i, n)
		}
	}
	if _, parallel := portions("127.0.0.1"); most > parallel {
		t.Errorf("%d requests at once to one host, want at most %d", most, parallel)
	}
}

func TestDocumentsStop(t *testing.T) {
	t.Parallel()
	reached := make(chan struct{})
	s := newSite(t, func(path string, hit int, w http.ResponseWriter) {
		if hit == 1 {
			close(reached)
		}
		time.Sleep(300 * time.Millisecond)
		fmt.Fprint(w, goodFile)
	})
	db := openStore(t)
	c := register(t, db, s.URL+"/slow")
	stop := running(t, newLoop(t, db, Options{}))
	<-reached
	stop()
	if d := document(t, db, c, 0); d.Status != repute.DocumentOK {
		t.Errorf("a fetch that was running at the stop was thrown away: %+v", d)
	}
}

func TestClassify(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string][2]string{
		"":                                    {"empty", ""},
		"data:,x":                             {"data", ""},
		"https://Example.COM/a":               {"https", "example.com"},
		"https://" + strings.Repeat("a", 300): {"unsupported", ""},
		"https://%ff%00.com/":                 {"unsupported", ""},
	} {
		if kind, host := Classify(uri); kind != want[0] || host != want[1] {
			t.Errorf("Classify(%.40q) = %q, %q; want %q", uri, kind, host, want)
		}
	}
}

// breaking panics on one URI.
type breaking struct {
	fetcher
	on string
}

func (b breaking) FetchIfChanged(ctx context.Context, uri string, known resolver.Validators) (resolver.Document,
	error) {
	if uri == b.on {
		panic("hostile bytes")
	}
	return b.fetcher.FetchIfChanged(ctx, uri, known)
}

func TestDocumentsPanic(t *testing.T) {
	t.Parallel()
	db := openStore(t)
	c := register(t, db, "data:,bad", "data:application/json,"+goodFile)
	d := newLoop(t, db, Options{})
	d.fetch = breaking{d.fetch, "data:,bad"}
	defer running(t, d)()
	eventually(t, "the other is read", func() bool { return document(t, db, c, 1).Status == repute.DocumentOK })
	eventually(t, "the fault is recorded", func() bool { return document(t, db, c, 0).Reason == reasonInternal })
}

const someCID = "ipfs://QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWKPBdG"

// hanging is a loop whose three gateways never answer.
func hanging(t *testing.T, db *store.DB, timeout time.Duration) (d *Loop, reached chan struct{}) {
	t.Helper()
	reached = make(chan struct{}, 100)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		reached <- struct{}{}
		<-r.Context().Done()
	}))
	t.Cleanup(s.Close)
	c, err := resolver.New(resolver.Options{Timeout: timeout, Gateways: []string{s.URL, s.URL, s.URL},
		GuardOptions: resolver.GuardOptions{AllowPrefixes: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return New(db, c, Options{Sweep: 20 * time.Millisecond, Upkeep: 20 * time.Millisecond}), reached
}

// The defaults must leave a job the time to end what it starts.
func TestDocumentsJobsCanEnd(t *testing.T) {
	t.Parallel()
	longest := freeBudget + fetchLimit + 2*saveLimit + returnLimit // the claims that are given back
	after := jobTimeout + 3*returnLimit                            // what is stored, the claims, the host
	db := openStore(t)
	register(t, db, "https://x.example/0")
	claims, err := docdb.ClaimHosts(t.Context(), db, []docdb.Rank{docdb.RankNew}, 1)
	if err != nil || len(claims) != 1 {
		t.Fatalf("%+v, %v", claims, err)
	}
	if claim := time.Until(claims[0].Until) + time.Second; longest >= jobTimeout || after >= claim {
		t.Errorf("a job may take %s and ends after %s, then %s, its claim after %s", longest, jobTimeout, after, claim)
	}
}

func TestDocumentsHangingGateways(t *testing.T) {
	t.Parallel()
	db := openStore(t)
	c := register(t, db, someCID)
	d, _ := hanging(t, db, 600*time.Millisecond)
	defer running(t, d)()
	eventually(t, "the silence is recorded",
		func() bool { return document(t, db, c, 0).Reason == string(resolver.ReasonTimeout) })
}

func TestDocumentsStopReleases(t *testing.T) {
	t.Parallel()
	db := openStore(t)
	c := register(t, db, someCID)
	d, reached := hanging(t, db, time.Minute)
	stop := running(t, d)
	<-reached
	stop()
	if got := document(t, db, c, 0); got.Reason != "" || got.Status != repute.DocumentPending {
		t.Errorf("the stop was recorded: %+v", got)
	}
	due, err := docdb.DueURIs(t.Context(), db, "ipfs", 1)
	if err != nil || len(due) != 1 || due[0].Attempts != 1 {
		t.Errorf("after the stop %+v is due, %v", due, err)
	}
	if hosts, err := docdb.DueOf(t.Context(), db, "ipfs"); err != nil || len(hosts) != 1 {
		t.Errorf("due hosts %q, %v", hosts, err)
	}
}

func TestSurvivesDatabaseOutage(t *testing.T) {
	t.Parallel()
	dbURL := pgtest.New(t)
	db := openAt(t, dbURL, store.Options{})
	u, err := url.Parse(dbURL)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimPrefix(u.Path, "/")
	u.Path = "/postgres"
	admin, err := pgx.Connect(t.Context(), u.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { admin.Close(context.Background()) })
	open := func(yes string) {
		for _, sql := range []string{"alter database " + name + " allow_connections " + yes,
			"select pg_terminate_backend(pid) from pg_stat_activity where datname = '" + name + "'"} {
			if _, err := admin.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
		}
	}
	open("false")
	defer running(t, newLoop(t, db, Options{}))()
	open("true")
	c := register(t, db, "data:,"+goodFile)
	eventually(t, "the document is read", func() bool { return document(t, db, c, 0).Registration != nil })
}
