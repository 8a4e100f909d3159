package documents

import (
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"
	"time"

	"repute"
	"repute/internal/rpctest"
	"repute/resolver"
	"repute/store/docdb"
	"repute/store/docstats"
	"repute/store/query"
)

// Hosts that hang hold two requests each and nobody else: all others are read while
// they still do, though more documents are due at them.
func TestHangingHostsHoldNobody(t *testing.T) {
	t.Parallel()
	const hosts, dead, each = 200, 10, 5
	var mu sync.Mutex
	hung := map[string]int{}
	end := make(chan struct{})
	var uris []string
	for i := range hosts {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if i < dead {
				mu.Lock()
				hung[r.Host]++
				mu.Unlock()
				<-end
				return
			}
			fmt.Fprint(w, goodFile)
		}))
		t.Cleanup(s.Close)
		n := 1
		if i < dead {
			n = each
		}
		for j := range n {
			uris = append(uris, fmt.Sprintf("%s/%d", s.URL, j))
		}
	}
	t.Cleanup(func() { close(end) })
	db := openStore(t)
	c := register(t, db, uris...)
	client, err := resolver.New(resolver.Options{Timeout: 20 * time.Second,
		GuardOptions: resolver.GuardOptions{AllowPrefixes: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	defer running(t, New(db, client, Options{Sweep: 20 * time.Millisecond, Hosts: dead + 6}))()
	eventually(t, "the others are read", func() bool {
		stats, err := docstats.ReadURIStats(t.Context(), db)
		return err == nil && stats.ByStatus[repute.DocumentOK] == hosts-dead
	})
	eventually(t, "all dead hosts are asked", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(hung) == dead
	})
	mu.Lock()
	defer mu.Unlock()
	for host, n := range hung {
		if n > 2 {
			t.Errorf("%d requests to %s, which hangs", n, host)
		}
	}
	if d := document(t, db, c, 0); d.Status != repute.DocumentPending {
		t.Errorf("of a host that hangs: %+v", d)
	}
}

// A host that does not answer is left alone with all its documents.
func TestSilentHostIsPostponed(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close() // refuses from now on
	var uris []string
	for i := range 20 {
		uris = append(uris, fmt.Sprintf("%s/%d", s.URL, i))
	}
	db := openStore(t)
	register(t, db, uris...)
	defer running(t, newLoop(t, db, Options{RetryMin: time.Hour}))()
	eventually(t, "the host waits", func() bool {
		hosts, err := docstats.WorstHosts(t.Context(), db)
		return err == nil && len(hosts) == 1 && hosts[0].Silent == 1
	})
	hosts, err := docstats.WorstHosts(t.Context(), db)
	if err != nil || hosts[0].Failed < maxSilent || hosts[0].Failed > maxSilent+1 || hosts[0].Due < 17 {
		t.Errorf("hosts %+v, %v", hosts, err)
	}
}

// Files of feedback come after agents, unless they are not wanted.
func TestFilesAreRead(t *testing.T) {
	t.Parallel()
	for _, off := range []bool{false, true} {
		t.Run(fmt.Sprintf("off=%t", off), func(t *testing.T) {
			t.Parallel()
			const file = `data:application/json,{"clientAddress":"0x","value":1,"agentId":0,"text":"fine"}`
			db := openFiles(t, off)
			c := rpctest.New(t, rpctest.Options{})
			c.Mine(c.Register(0, rpctest.Account(1), "data:application/json,"+goodFile))
			c.Mine(c.Tx(repute.NewFeedback{TokenID: rpctest.Token(0), Client: rpctest.Account(2), Index: 1,
				Value: big.NewInt(1), URI: file}))
			index(t, db, c)
			defer running(t, newLoop(t, db, Options{}))()
			eventually(t, "the agent is read", func() bool { return document(t, db, c, 0).Status == repute.DocumentOK })
			rated := func() *repute.File {
				id := repute.AgentID{ChainID: 31337, Registry: c.Identity}
				page, err := query.Feedback(t.Context(), db, id,
					query.FeedbackFilter{Limit: 1, At: repute.At{Finality: repute.Latest}})
				if err != nil || len(page.Items) != 1 || page.Items[0].File == nil {
					t.Fatalf("feedback %+v, %v", page.Items, err)
				}
				return page.Items[0].File
			}
			if off {
				if f := rated(); f.Status != repute.DocumentPending {
					t.Errorf("a file nobody wants: %+v", f)
				}
				return
			}
			eventually(t, "the file is read", func() bool { return rated().Status != repute.DocumentPending })
			if f := rated(); f.Feedback == nil || f.Feedback.Text != "fine" {
				t.Errorf("file %+v", f)
			}
			c.Mine(c.Tx(repute.NewFeedback{TokenID: rpctest.Token(0), Client: rpctest.Account(2), Index: 2,
				Value: big.NewInt(1), URI: "data:,<html>"}))
			index(t, db, c)
			eventually(t, "junk is read", func() bool { return rated().Status == repute.DocumentInvalid })
			if f := rated(); len(f.Problems) == 0 {
				t.Errorf("junk without a reason: %+v", f)
			}
		})
	}
}

// A host that redirects to one which is busy, or silent, is not given up for that.
func TestRedirectParksNobody(t *testing.T) {
	t.Parallel()
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "86400")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	t.Cleanup(busy.Close)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close() // refuses from now on
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/busy":
			http.Redirect(w, r, busy.URL, http.StatusFound)
		case "/silent":
			http.Redirect(w, r, gone.URL, http.StatusFound)
		default:
			fmt.Fprint(w, goodFile)
		}
	}))
	t.Cleanup(s.Close)
	db := openStore(t)
	uris := []string{s.URL + "/good"} // the last to be read: the newest come first
	for range 3 {
		for _, path := range []string{"/busy", "/silent"} {
			uris = append(uris, fmt.Sprintf("%s%s?%d", s.URL, path, len(uris)))
		}
	}
	c := register(t, db, uris...)
	defer running(t, newLoop(t, db, Options{RetryMin: time.Hour}))()
	eventually(t, "the good one is read", func() bool { return document(t, db, c, 0).Status == repute.DocumentOK })
}

// A turn that others may wait for is short, one that nobody waits for goes on for as long
// as its workers have something to do.
func TestTurnsGoOnWhileNobodyWaits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		host  string
		taken int32
		short bool
		since time.Duration
		want  bool
	}{
		{"begun", "a", 2, false, 0, true},
		{"others may wait", "a", 2, false, jobBudget, false},
		{"nobody waits", "a", 1, false, jobBudget, true},
		{"a worker is idle", "a", 1, true, jobBudget, false},
		{"ours", "ipfs", 1, false, jobBudget, false},
		{"nobody waited for long", "a", 1, false, freeBudget, false},
	} {
		place := &slots{most: 2}
		place.taken.Store(c.taken)
		claim := hostClaim{place: place, claim: docdb.HostClaim{Host: c.host}, begun: time.Now().Add(-c.since)}
		claim.short.Store(c.short)
		if got := claim.mayFetch(); got != c.want {
			t.Errorf("%s: goes on = %t", c.name, got)
		}
	}
}
