package manifests

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"repute"
	"repute/manifest/agentjson"
	"repute/resolver/wellknown"
	"repute/store/manifestdb"
)

// An endpoint is probed only where an operator says so and robots.txt allows it, by HEAD alone, and never one with a
// price or another method. Its time replaces that of the manifest, and failures one after the other are downtime.
func TestProbe(t *testing.T) {
	t.Parallel()
	const domain, shy, plain = "probed.example.com", "shy.example.com", "plain.example.com"
	const pause = 30 * time.Millisecond
	var broken atomic.Bool
	var probes, others atomic.Int64
	client := site(t, "127.0.81.22", func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case wellKnown:
			fmt.Fprint(w, strings.Replace(priced(r.Host, payee), `"intents":[`, `"commitments":{"schema_version":"1.0",
				"entries":[{"type":"latency_bound","constraint":"max < 10ms","verifiable":true}]},"intents":[
				{"name":"buy","description":"Buys a thing for some money.","endpoint":"/buy","method":"GET","price":{"amount":1,"currency":"USD"}},
				{"name":"change","description":"Changes a thing that is there.","endpoint":"/change","method":"POST"},
				{"name":"search","description":"Finds things that are there.","endpoint":"/search?q=1","method":"GET"},`, 1))
		case "/robots.txt":
			if r.Host == shy {
				fmt.Fprint(w, "User-agent: *\nDisallow: /search?\n")
				return
			}
			http.NotFound(w, r)
		case "/search":
			if r.Method != http.MethodHead || r.Host != domain {
				others.Add(1)
			}
			probes.Add(1)
			if broken.Load() {
				w.WriteHeader(http.StatusInternalServerError)
				return
			}
			time.Sleep(pause)
		case "/buy", "/change", "/book":
			others.Add(1)
		default:
			http.NotFound(w, r)
		}
	}, domain, shy, plain)
	db := openStore(t)
	crawl(t, db, client, quick(), domain, shy, plain)
	watched := func(domain string) func() bool {
		return func() bool { m, _ := read(t, db, domain); return len(m.Watch.Latencies) > 1 }
	}
	eventually(t, "the manifest is measured", watched(domain))
	if m, _ := read(t, db, domain); probes.Load() > 0 || m.Watch.Probed {
		t.Fatalf("%d probes unasked, %+v", probes.Load(), m.Watch)
	}
	for _, d := range []string{domain, shy} {
		if err := manifestdb.SetProbed(t.Context(), db, d, true); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the endpoint is measured", func() bool {
		m, _ := read(t, db, domain)
		return m.Watch.Probed && len(m.Watch.Latencies) > 3
	})
	m, _ := read(t, db, domain)
	for _, micros := range m.Watch.Latencies {
		if took := time.Duration(micros) * time.Microsecond; took < pause/2 {
			t.Errorf("a probe took %s", took)
		}
	}
	broken.Store(true)
	eventually(t, "the endpoint is down", func() bool { m, _ := read(t, db, domain); return m.Watch.Down > 0 })
	m, _ = read(t, db, domain)
	for _, micros := range m.Watch.Latencies {
		if took := time.Duration(micros) * time.Microsecond; took < pause/2 {
			t.Errorf("an error counts as an answer after %s", took)
		}
	}
	if m.Failures != 0 || m.State != manifestdb.StateOK || m.Watch.Down > m.CheckedAt.Sub(m.Watch.Since) {
		t.Errorf("%+v", m)
	}
	broken.Store(false)
	before, _ := read(t, db, shy)
	eventually(t, "the shy host is checked again",
		func() bool { m, _ := read(t, db, shy); return m.CheckedAt.After(before.CheckedAt) })
	if m, _ := read(t, db, shy); len(m.Watch.Latencies) > 0 {
		t.Errorf("measured against robots.txt: %+v", m.Watch)
	}
	if m, _ := read(t, db, plain); m.Watch.Probed || others.Load() != 0 {
		t.Errorf("%d requests that are no probes, %+v", others.Load(), m.Watch)
	}
	if err := manifestdb.SetProbed(t.Context(), db, domain, false); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the manifest is measured again", watched(domain))
	if err := manifestdb.SetProbed(t.Context(), db, "unknown.example.com", true); !errors.Is(err, repute.ErrNotFound) {
		t.Errorf("a domain that is not known: %v", err)
	}
}

// What a caller gives up is no failure of the host, whether it left or its time was up, and neither ends nor starts an
// outage. A host that takes longer than the probe waits fails.
func TestProbeCutShort(t *testing.T) {
	t.Parallel()
	const domain = "slow.example.com"
	asked := make(chan struct{}, 10)
	client := site(t, "127.0.81.24", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/slow" {
			http.NotFound(w, r)
			return
		}
		asked <- struct{}{}
		<-r.Context().Done()
	}, domain)
	l := New(openStore(t), wellknown.New(client), quick())
	target := "https://" + domain + "/slow"
	ctx, leave := context.WithCancel(t.Context())
	go func() { <-asked; leave() }()
	if m := l.measure(ctx, domain, target); m != (measured{none: true}) {
		t.Errorf("the caller left: %+v", m)
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	if m := l.measure(ctx, domain, target); m != (measured{none: true}) {
		t.Errorf("the time of the caller was up: %+v", m)
	}
	if m := l.measure(ctx, domain, target); m != (measured{none: true}) {
		t.Errorf("no time was left: %+v", m)
	}
	if m := l.measure(t.Context(), domain, target); !m.failed || m.took == 0 || m.none {
		t.Errorf("the host was too slow: %+v", m)
	}
}

// The endpoint that is probed is the first that nothing can happen at.
func TestProbeable(t *testing.T) {
	t.Parallel()
	for intents, want := range map[string]string{
		``: "",
		`{"name":"a","description":"A description.","endpoint":"/a","method":"GET"}`:                                             "https://example.com/a",
		`{"name":"a","description":"A description.","endpoint":"/a","method":"POST"}`:                                            "",
		`{"name":"a","description":"A description.","endpoint":"/a"}`:                                                            "",
		`{"name":"a","description":"A description.","endpoint":"/a","method":"DELETE"}`:                                          "",
		`{"name":"a","description":"A description."}`:                                                                            "",
		`{"name":"a","description":"A description.","endpoint":"//evil.com/a","method":"GET"}`:                                   "",
		`{"name":"a","description":"A description.","endpoint":"/a","method":"GET","price":{"amount":0,"currency":"USD"}}`:       "",
		`{"name":"a","description":"A description."},{"name":"b","description":"A description.","endpoint":"/b","method":"GET"}`: "https://example.com/b",
		`{"name":"a","description":"A description.","endpoint":"https://sub.example.com/a","method":"GET"}`:                      "",
	} {
		m, _ := agentjson.Parse([]byte(`{"version":"1.4","origin":"example.com","payout_address":"p","intents":[`+
			intents+`]}`), agentjson.Options{})
		if got := probeable(&m); got != want {
			t.Errorf("%s: %q, want %q", intents, got, want)
		}
	}
}
