package manifests

import (
	"crypto/ed25519"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/internal/rpctest"
	"repute/manifest/agentjson"
	"repute/manifest/agentjson/identity"
	"repute/resolver/wellknown"
	"repute/store"
	"repute/store/docdb"
	"repute/store/manifestdb"
)

const wellKnown = "/.well-known/agent.json"

// payee is the payout address of the manifests here.
const payee = "0x1111111111111111111111111111111111111111"

// priced is a manifest of tier 2.
func priced(domain, payout string) string {
	return fmt.Sprintf(`{"version":"1.4","origin":%q,"payout_address":%q,"display_name":"Shop","intents":[
		{"name":"book_flight","description":"Books a flight between two airports.","endpoint":"/book","method":"POST",
		 "parameters":{"departure":{"type":"string","required":true}},
		 "price":{"amount":0.25,"currency":"USDC","model":"per_call","network":["base"]}}]}`, domain, payout)
}

// What hosts answer decides the state of their domains, and no host can make the loop leave its origin.
func TestStates(t *testing.T) {
	t.Parallel()
	var robotsAsked, refusedAsked atomic.Int64
	answers := map[string]struct {
		answer func(http.ResponseWriter, *http.Request)
		state  manifestdb.State
		reason string
	}{
		"ok.example.com": {func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, priced(r.Host, payee)) },
			"ok", ""},
		"foreign.example.com": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, priced("github.io", payee)) },
			"invalid", ""},
		"card.example.com": {func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"name":"A","url":"https://card.example.com/","skills":[],"capabilities":{},"version":"1"}`)
		}, "other", ""},
		"none.example.com": {http.NotFound, "missing", "not_found"},
		"http.example.com": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://"+r.Host+"/x", http.StatusFound)
		}, "failed", "redirects"},
		"moved.example.com": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://ok.example.com"+wellKnown, http.StatusFound)
		}, "failed", "redirects"},
		"large.example.com": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat(" ", 10<<20)) },
			"failed", "too_large"},
		"slow.example.com": {func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-r.Context().Done():
			case <-time.After(20 * time.Second):
			}
		}, "failed", "timeout"},
		"busy.example.com": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) },
			"failed", "http_status"},
		"refused.example.com": {func(http.ResponseWriter, *http.Request) { refusedAsked.Add(1) }, "refused", "robots"},
		"mute.example.com":    {func(http.ResponseWriter, *http.Request) { refusedAsked.Add(1) }, "failed", "robots"},
	}
	var domains []string
	for domain := range answers {
		domains = append(domains, domain)
	}
	client := site(t, "127.0.81.1", func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/robots.txt" && r.Host == "refused.example.com":
			fmt.Fprint(w, "User-agent: repute\nDisallow: /agent.json\n")
		case r.URL.Path == "/robots.txt" && r.Host == "mute.example.com":
			robotsAsked.Add(1)
			w.WriteHeader(http.StatusInternalServerError)
		case r.URL.Path == "/robots.txt":
			http.NotFound(w, r)
		default:
			answers[r.Host].answer(w, r)
		}
	}, domains...)
	db := openStore(t)
	crawl(t, db, client, quick(), append(domains, "uncertified.example.com")...)
	for domain, want := range answers {
		eventually(t, domain+" was asked", func() bool {
			m, _ := read(t, db, domain)
			return m.State != manifestdb.StatePending
		})
		if m, _ := read(t, db, domain); m.State != want.state || m.Reason != want.reason {
			t.Errorf("%s: %s, %q %s; want %s, %q", domain, m.State, m.Reason, m.Detail, want.state, want.reason)
		}
	}
	eventually(t, "a host with a bad certificate fails", func() bool {
		m, _ := read(t, db, "uncertified.example.com")
		return m.State == manifestdb.StateFailed
	})
	eventually(t, "robots.txt is asked again", func() bool { return robotsAsked.Load() > 1 })
	if refusedAsked.Load() != 0 {
		t.Errorf("asked %d times against robots.txt", refusedAsked.Load())
	}
	if m, _ := read(t, db, "card.example.com"); m.Format != string(agentjson.FormatA2ACard) {
		t.Errorf("a card was read as %q", m.Format)
	}
	found, err := manifestdb.Intents(t.Context(), db, manifestdb.IntentFilter{Text: "flights", Limit: 10})
	if err != nil || len(found.Items) != 1 || found.Items[0].URL != "https://ok.example.com/book" ||
		*found.Items[0].Price != "0.25" {
		t.Errorf("found %+v, %v", found, err)
	}
}

// hostileMembers are JSON that a parser keeps as written and that Postgres refuses as jsonb.
var hostileMembers = []string{`"\u0000"`, `"\ud800"`, `{"a\u0000":1}`, `1e999999`, `[1, -2.5E+200000]`,
	"0." + strings.Repeat("1", 20_000), strings.Repeat("9", 140_000)}

// A manifest with members that Postgres refuses is stored as others are, without these.
func TestHostileMembers(t *testing.T) {
	t.Parallel()
	bodies := map[string]string{}
	var domains []string
	for i, member := range append(hostileMembers, `{"fine": 1e30}`) {
		domain := fmt.Sprintf("hostile%d.example.com", i)
		domains = append(domains, domain)
		bodies[domain] = strings.Replace(priced(domain, payee), `"intents"`,
			`"payments":{"unheard-of":{"x":`+member+`}},"intents"`, 1)
	}
	client := site(t, "127.0.81.5", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != wellKnown {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, bodies[r.Host])
	}, domains...)
	db := openStore(t)
	crawl(t, db, client, quick(), domains...)
	for i, domain := range domains {
		eventually(t, domain+" is stored", func() bool {
			m, _ := read(t, db, domain)
			return m.State == manifestdb.StateOK && m.Intents == 1
		})
		found, err := manifestdb.IntentsByKey(t.Context(), db, []manifestdb.IntentKey{{Domain: domain, Name: "book_flight"}})
		if err != nil || len(found) != 1 {
			t.Fatalf("%+v, %v", found, err)
		}
		for _, intent := range found {
			kept := strings.Contains(string(intent.Terms), "fine")
			if want := i == len(hostileMembers); kept != want || !strings.Contains(string(intent.Terms), "unheard-of") {
				t.Errorf("terms of %s: %s", bodies[domain], intent.Terms)
			}
		}
	}
}

// A manifest is of a higher tier only while the DID document of its origin has its key.
func TestVerifiedTierFollowsTheDIDDocument(t *testing.T) {
	t.Parallel()
	const domain = "signed.example.com"
	key, other := ed25519.NewKeyFromSeed(make([]byte, 32)), ed25519.NewKeyFromSeed([]byte(strings.Repeat("x", 32)))
	document := func(k ed25519.PrivateKey) []byte {
		b, err := identity.NewDIDDocument(domain, k.Public().(ed25519.PublicKey))
		if err != nil {
			t.Error(err)
		}
		return b
	}
	body := strings.Replace(priced(domain, payee), `"intents"`,
		fmt.Sprintf(`"identity":{"did":"did:web:%s","public_key":%q},"intents"`,
			domain, identity.EncodeKey(key.Public().(ed25519.PublicKey))), 1)
	var did atomic.Pointer[[]byte]
	right, wrong := document(key), document(other)
	did.Store(&right)
	var failing, conditional atomic.Bool
	client := site(t, "127.0.81.2", func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case wellKnown:
			w.Header().Set("ETag", `"1"`)
			if r.Header.Get("If-None-Match") == `"1"` {
				conditional.Store(true)
				w.WriteHeader(http.StatusNotModified)
				return
			}
			fmt.Fprint(w, body)
		case "/.well-known/did.json":
			if failing.Load() {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			_, _ = w.Write(*did.Load())
		default:
			http.NotFound(w, r)
		}
	}, domain)
	db := openStore(t)
	crawl(t, db, client, quick(), domain)
	is := func(tier agentjson.Tier) func() bool {
		return func() bool { m, _ := read(t, db, domain); return m.Verified == int(tier) }
	}
	eventually(t, "the key is proven", is(agentjson.TierIdentified))
	eventually(t, "the server is asked whether it changed", conditional.Load)
	failing.Store(true)
	before, _ := read(t, db, domain)
	eventually(t, "it is checked while the DID document fails", func() bool {
		m, _ := read(t, db, domain)
		return m.CheckedAt.After(before.CheckedAt.Add(200 * time.Millisecond))
	})
	if !is(agentjson.TierIdentified)() {
		t.Error("a host that fails for a moment takes the tier away")
	}
	failing.Store(false)
	did.Store(&wrong)
	eventually(t, "another key takes the tier away", is(agentjson.TierStructured))
	if m, _ := read(t, db, domain); m.Declared != int(agentjson.TierIdentified) || m.State != manifestdb.StateOK {
		t.Errorf("%+v", m)
	}
}

// The crawl measures hosts that promise something measurable, by the requests that it makes anyway, and no others. A
// host is down from one failed check to the next one.
func TestWatch(t *testing.T) {
	t.Parallel()
	const promising, silent = "promising.example.com", "silent.example.com"
	const pause = 20 * time.Millisecond
	var down atomic.Bool
	client := site(t, "127.0.81.21", func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != wellKnown:
			http.NotFound(w, r)
		case down.Load():
			w.WriteHeader(http.StatusServiceUnavailable)
		case r.Host == silent:
			fmt.Fprint(w, priced(silent, payee))
		default:
			time.Sleep(pause)
			fmt.Fprint(w, strings.Replace(priced(promising, payee), `"intents"`, `"commitments":{"schema_version":"1.0",
				"entries":[{"type":"uptime_sla","constraint":"99.9% uptime","verifiable":true}]},"intents"`, 1))
		}
	}, promising, silent)
	db := openStore(t)
	crawl(t, db, client, quick(), promising, silent)
	eventually(t, "the host is measured", func() bool {
		m, _ := read(t, db, promising)
		return len(m.Watch.Latencies) > 1
	})
	m, _ := read(t, db, promising)
	for _, micros := range m.Watch.Latencies {
		if took := time.Duration(micros) * time.Microsecond; took < pause/2 {
			t.Errorf("an answer took %s", took)
		}
	}
	if m.Watch.Since.IsZero() || m.Watch.Down != 0 {
		t.Errorf("%+v", m.Watch)
	}
	if m, _ := read(t, db, silent); m.State != manifestdb.StateOK || !m.Watch.Since.IsZero() ||
		len(m.Watch.Latencies) > 0 {
		t.Errorf("a host without commitments is watched: %+v", m.Watch)
	}
	down.Store(true)
	eventually(t, "the host is down", func() bool { m, _ := read(t, db, promising); return m.Watch.Down > 0 })
	down.Store(false)
	eventually(t, "the host is back",
		func() bool { m, _ := read(t, db, promising); return m.Failures == 0 && m.Reason == "" })
	if again, _ := read(t, db, promising); again.Watch.Down == 0 || !again.Watch.Since.Equal(m.Watch.Since) ||
		again.Watch.Down > again.CheckedAt.Sub(again.Watch.Since) {
		t.Errorf("%+v, watched before %+v", again.Watch, m.Watch)
	}
}

// A manifest whose host stops answering is served with its age. What a host says is gone is not.
func TestStaleAndGone(t *testing.T) {
	t.Parallel()
	const domain = "stale.example.com"
	var status atomic.Int64
	status.Store(http.StatusOK)
	client := site(t, "127.0.81.3", func(w http.ResponseWriter, r *http.Request) {
		code := int(status.Load())
		if r.URL.Path == "/robots.txt" {
			code = http.StatusNotFound
		}
		w.WriteHeader(code)
		if code == http.StatusOK {
			fmt.Fprint(w, priced(domain, payee))
		}
	}, domain)
	db := openStore(t)
	crawl(t, db, client, quick(), domain)
	eventually(t, "it is read", func() bool { m, _ := read(t, db, domain); return m.State == manifestdb.StateOK })
	status.Store(http.StatusBadGateway)
	eventually(t, "it fails", func() bool { m, _ := read(t, db, domain); return m.Failures > 1 })
	m, _ := read(t, db, domain)
	if m.State != manifestdb.StateOK || m.Body == nil || m.Intents != 1 || !m.FetchedAt.Before(m.CheckedAt) {
		t.Errorf("a failing host lost its manifest: %+v", m)
	}
	if _, err := db.Pool().Exec(t.Context(),
		`update manifests set fetched_at = now() - interval '8 days'`); err != nil {
		t.Fatal(err)
	}
	eventually(t, "after a week it proves nothing", func() bool {
		m, _ := read(t, db, domain)
		return m.State == manifestdb.StateFailed && m.Verified == 0 && m.Intents == 0
	})
	status.Store(http.StatusOK)
	eventually(t, "it is back",
		func() bool { m, _ := read(t, db, domain); return m.State == manifestdb.StateOK && m.Intents == 1 })
	status.Store(http.StatusGone)
	eventually(t, "it is gone", func() bool { m, _ := read(t, db, domain); return m.State == manifestdb.StateMissing })
	if m, _ = read(t, db, domain); m.Body != nil || m.Intents != 0 || m.Verified != 0 {
		t.Errorf("what is gone is still served: %+v", m)
	}
}

// Domains of agents' files are asked, and each link says what it rests on and whether that proves anything.
func TestLinks(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	owner := rpctest.Account(1)
	file := func(agent int, domain string) string {
		return fmt.Sprintf(`{"type":"https://eips.ethereum.org/EIPS/eip-8004#registration-v1","name":"Ada","description":"d",
			"image":"https://x.example/i.png","services":[{"name":"web","endpoint":"https://%s/"}],
			"registrations":[{"agentId":%d,"agentRegistry":"eip155:31337:%s"}]}`, domain, agent, c.Identity)
	}
	client := site(t, "127.0.81.4", func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == wellKnown && r.Host == "paid.example.com":
			fmt.Fprint(w, priced(r.Host, owner.Hex()))
		case r.URL.Path == wellKnown:
			fmt.Fprint(w, priced(r.Host, payee))
		case r.URL.Path == "/.well-known/agent-registration.json" && r.Host == "proven.example.com":
			fmt.Fprint(w, file(0, r.Host))
		default:
			http.NotFound(w, r)
		}
	}, "proven.example.com", "paid.example.com", "named.example.com")
	var txs [][]types.Log
	for i, domain := range []string{"proven.example.com", "paid.example.com", "named.example.com"} {
		txs = append(txs, c.Register(uint64(i), owner, "data:application/json,"+file(i, domain)))
	}
	c.Mine(txs...)
	db := openStore(t)
	index(t, db, c, client)
	t.Cleanup(running(t, New(db, wellknown.New(client), quick()).Run))
	linked := func(domain string, agent uint64) (how []string) {
		_, links := read(t, db, domain)
		for _, l := range links {
			if l.Agent.TokenID == rpctest.Token(agent) {
				how = append(how, fmt.Sprint(l.How, " ", l.Proven))
			}
		}
		return how
	}
	for i, want := range map[string][]string{
		"proven.example.com": {"domain true", "registration false"},
		"paid.example.com":   {"wallet true", "registration false"},
		"named.example.com":  {"registration false"},
	} {
		agent := uint64(slices.Index([]string{"proven.example.com", "paid.example.com", "named.example.com"}, i))
		eventually(t, i+" is linked", func() bool { return slices.Equal(linked(i, agent), want) })
	}
	if how := linked("paid.example.com", 0); !slices.Equal(how, []string{"wallet false"}) {
		t.Errorf("an agent of the same owner that does not name the domain: %v", how)
	}
	ids := make([]repute.AgentID, 3)
	for i := range ids {
		ids[i] = repute.AgentID{ChainID: 31337, Registry: c.Identity, TokenID: rpctest.Token(uint64(i))}
	}
	of, err := manifestdb.OfAgents(t.Context(), db, ids...)
	if err != nil || len(of) != 3 || !of[ids[0]].Proven || of[ids[0]].Domain != "proven.example.com" ||
		of[ids[2]].Proven || of[ids[2]].Intents != 1 {
		t.Errorf("%+v, %v", of, err)
	}
	eventually(t, "the change is told", func() bool { // once no older transaction of the server is open
		changes, _, err := db.Changes(t.Context(), "", 1000, store.ChangeFilter{})
		return err == nil && slices.ContainsFunc(changes,
			func(c store.Change) bool { return c.Kind == "manifest.updated" })
	})
}

// A process that dies in the middle of a check loses nothing: its claims expire, and what it saves late is discarded.
func TestClaims(t *testing.T) {
	t.Parallel()
	const domain = "claimed.example.com"
	db := openStore(t)
	if n, err := manifestdb.Import(t.Context(), db, []string{domain, domain}); n != 1 || err != nil {
		t.Fatalf("%d new, %v", n, err)
	}
	exec := func(sql string) {
		t.Helper()
		if _, err := db.Pool().Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	claim := func() []manifestdb.Claim {
		t.Helper()
		claims, err := manifestdb.ClaimDue(t.Context(), db, 10)
		if err != nil {
			t.Fatal(err)
		}
		return claims
	}
	exec(`insert into hosts (host, due_at) values ('claimed.example.com', now())`)
	documents, err := docdb.ClaimHosts(t.Context(), db, []docdb.Rank{docdb.RankNew}, 10)
	if err != nil || len(documents) != 1 {
		t.Fatalf("%v, %v", documents, err)
	}
	if got := claim(); len(got) != 0 {
		t.Errorf("claimed while the documents' loop has the host: %+v", got)
	}
	if err := docdb.ReleaseHost(t.Context(), db, documents[0]); err != nil {
		t.Fatal(err)
	}
	first := claim()
	if len(first) != 1 || first[0].Host.Host != domain {
		t.Fatalf("%+v", first)
	}
	if again := claim(); len(again) != 0 {
		t.Errorf("claimed twice: %+v", again)
	}
	if hosts, err := docdb.ClaimHosts(t.Context(), db, []docdb.Rank{docdb.RankNew}, 10); err != nil || len(hosts) != 0 {
		t.Errorf("the documents' loop got the host as well: %v, %v", hosts, err)
	}
	exec(`update manifests set claimed_until = now()`)
	exec(`update hosts set claimed_until = now()`)
	second := claim()
	if len(second) != 1 {
		t.Fatal("the claim did not expire")
	}
	gone := manifestdb.Result{Gone: manifestdb.StateMissing, Reason: "not_found", Wait: time.Hour}
	if err := manifestdb.Save(t.Context(), db, first[0], gone); err != nil {
		t.Fatal(err)
	}
	if m, _ := read(t, db, domain); m.State != manifestdb.StatePending {
		t.Errorf("an expired claim saved %s", m.State)
	}
	if err := manifestdb.Save(t.Context(), db, second[0], gone); err != nil {
		t.Fatal(err)
	}
	if m, _ := read(t, db, domain); m.State != manifestdb.StateMissing || len(claim()) != 0 {
		t.Errorf("the outcome was not saved: %+v", m)
	}
	if hosts, err := docdb.ClaimHosts(t.Context(), db, []docdb.Rank{docdb.RankNew}, 10); err != nil || len(hosts) != 1 {
		t.Errorf("the host was not returned: %v, %v", hosts, err)
	}
}
