package wellknown

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"repute/internal/sitetest"
	"repute/manifest/agentjson"
	"repute/manifest/agentjson/identity"
	"repute/resolver"
)

// site serves example.com on port 443 of an address of the loopback network, so that its host has no port.
func site(t *testing.T, address string, h http.HandlerFunc) *Fetcher {
	t.Helper()
	client, err := resolver.New(resolver.Options{GuardOptions: sitetest.New(t, address, h)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return New(client)
}

func reasonOf(err error) resolver.Reason {
	var e *resolver.Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return ""
}

// The second place is asked only where the first answers 404, and no redirect leaves the origin.
func TestManifest(t *testing.T) {
	for name, c := range map[string]struct {
		wellKnown func(w http.ResponseWriter, r *http.Request)
		path      string          // that answered
		reason    resolver.Reason // of the failure
	}{
		"first place": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") },
			"/.well-known/agent.json", ""},
		"404": {http.NotFound, "/agent.json", ""},
		"410": {status(410), "", resolver.ReasonNotFound},
		"500": {status(500), "", resolver.ReasonHTTPStatus},
		"403": {status(403), "", resolver.ReasonHTTPStatus},
		"redirect within the origin": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/moved", http.StatusFound) },
			"/.well-known/agent.json", ""},
		"redirect to its own port": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://EXAMPLE.com:443/moved", http.StatusMovedPermanently)
		}, "/.well-known/agent.json", ""},
		"redirect to http":         {to("http://example.com/moved"), "", resolver.ReasonRedirects},
		"redirect to a subdomain":  {to("https://www.example.com/moved"), "", resolver.ReasonRedirects},
		"redirect to another port": {to("https://example.com:8443/moved"), "", resolver.ReasonRedirects},
		"redirect to another host": {to("//evil.example/moved"), "", resolver.ReasonRedirects},
		"redirect with a user":     {to("https://u:p@example.com/moved"), "", resolver.ReasonBlockedHost},
		"four redirects":           {to("/.well-known/agent.json"), "", resolver.ReasonRedirects},
		"too large": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat(" ", maxManifest+1)) }, "",
			resolver.ReasonTooLarge},
		"10 MB": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat(" ", 10<<20)) }, "",
			resolver.ReasonTooLarge},
	} {
		t.Run(name, func(t *testing.T) { // each with the port of the one before
			f := site(t, "127.80.1.1", func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case "/.well-known/agent.json":
					c.wellKnown(w, r)
				default:
					w.Header().Set("Content-Type", "text/html") // the bytes decide
					fmt.Fprint(w, "{}")
				}
			})
			found, err := f.Manifest(t.Context(), "example.com", Known{})
			if reasonOf(err) != c.reason || (err == nil) != (c.reason == "") {
				t.Errorf("%s: %v, want %q", name, err, c.reason)
			}
			if err == nil && (found.URL != "https://example.com"+c.path || found.Host != "example.com" ||
				string(found.Bytes) != "{}") {
				t.Errorf("%s: %+v", name, found)
			}
		})
	}
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

func to(target string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, target, http.StatusFound) }
}

// A manifest that is known is not sent again, at whichever place it is.
func TestManifestNotModified(t *testing.T) {
	var asked []string
	f := site(t, "127.80.1.2", func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path+" "+r.Header.Get("If-None-Match"))
		if r.URL.Path != "/agent.json" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("ETag", `"v1"`)
		if r.Header.Get("If-None-Match") == `"v1"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		fmt.Fprint(w, "{}")
	})
	found, err := f.Manifest(t.Context(), "Example.com", Known{})
	if err != nil {
		t.Fatal(err)
	}
	again, err := f.Manifest(t.Context(), "example.com", Known{URL: found.URL,
		Validators: resolver.Validators{ETag: found.ETag}})
	if err != nil || !again.NotModified || again.URL != found.URL {
		t.Errorf("%+v, %v", again, err)
	}
	const want = `[/.well-known/agent.json  /agent.json  /.well-known/agent.json  /agent.json "v1"]`
	if got := fmt.Sprint(asked); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// A URL is asked as it is, and only over https.
func TestAt(t *testing.T) {
	f := site(t, "127.80.1.3", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.URL.Path) })
	found, err := f.At(t.Context(), "https://example.com/x/agent.json", Known{})
	if err != nil || found.Host != "example.com" || string(found.Bytes) != "/x/agent.json" {
		t.Errorf("%+v, %v", found, err)
	}
	if doc, err := f.Document(t.Context(), "https://example.com/.well-known/did.json"); err != nil ||
		string(doc) != "/.well-known/did.json" {
		t.Errorf("%s, %v", doc, err)
	}
	for _, target := range []string{"http://example.com/agent.json", "data:,{}", "ipfs://bafkqaaa", "{}", ""} {
		if _, err := f.At(t.Context(), target, Known{}); err == nil {
			t.Errorf("%q was read", target)
		}
	}
	for _, host := range []string{"", "a/b", "u@a.example", "a.example?x", "a b", "http://a.example"} {
		if _, err := f.Manifest(t.Context(), host, Known{}); reasonOf(err) != resolver.ReasonBadURL {
			t.Errorf("%q: %v", host, err)
		}
	}
	// Hosts that the guard refuses are refused here as well.
	strict, err := resolver.New(resolver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"localhost", "127.0.0.1", "169.254.169.254", "a.internal", "a.example:8443"} {
		if _, err := New(strict).Manifest(t.Context(), host, Known{}); err == nil {
			t.Errorf("%q was read", host)
		}
	}
}

func TestRobots(t *testing.T) {
	now := time.Date(2026, 4, 30, 0, 0, 0, 0, time.UTC)
	var code int
	var text string
	f := site(t, "127.80.1.4", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		fmt.Fprint(w, text)
	})
	for name, c := range map[string]struct {
		code    int
		text    string
		allowed bool
		delay   time.Duration
	}{
		"nothing":        {404, "", true, 0},
		"forbidden":      {403, "", true, 0}, // RFC 9309: unavailable, so no rules
		"broken":         {503, "", false, 0},
		"too many":       {429, "", false, 0},
		"empty":          {200, "", true, 0},
		"all":            {200, "User-agent: *\nDisallow: /", false, 0},
		"other crawler":  {200, "User-agent: other\nDisallow: /", true, 0},
		"this crawler":   {200, "User-agent: other\nAllow: /\nUser-agent: repute\nDisallow: /agent.json", false, 0},
		"well-known":     {200, "User-agent: *\nDisallow: /\nAllow: /.well-known/\nAllow: /agent.json", true, 0},
		"delay":          {200, "User-agent: *\nCrawl-delay: 7", true, 7 * time.Second},
		"delay for ever": {200, "User-agent: *\nCrawl-delay: 999999999", true, maxDelay},
		"a page":         {200, "<html>not found</html>", true, 0},
	} {
		code, text = c.code, c.text
		rules, err := f.Robots(t.Context(), "example.com", "repute/1 (+https://a.example)", now)
		isRefused := slices.ContainsFunc(ManifestPaths(), func(path string) bool { return !rules.Allows(path) })
		if err != nil || isRefused == c.allowed || rules.Delay != c.delay || rules.Until != now.Add(rulesFor) {
			t.Errorf("%s: %+v, %v", name, rules, err)
		}
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Robots(canceled, "example.com", "repute", now); reasonOf(err) != resolver.ReasonCanceled {
		t.Errorf("%v", err)
	}
}

// Any text can be asked for rules.
func FuzzRules(f *testing.F) {
	f.Add([]byte("User-agent: *\nDisallow: /a*b$\nCrawl-delay: 1e9\nSitemap: x"), "repute/1", "/.well-known/agent.json")
	f.Add([]byte("user-agent:\ndisallow: %zz*\x00"), "", "")
	f.Fuzz(func(t *testing.T, b []byte, agent, path string) {
		rules := rulesOf(b, agent, time.Time{})
		rules.Allows(path)
		if rules.Delay < 0 || rules.Delay > maxDelay {
			t.Fatal(rules.Delay)
		}
	})
}

// A signed manifest and the DID document of its host, fetched from there, are tier 3+. Neither the fallback place nor a
// redirect within the origin changes that.
func TestVerifiedTier(t *testing.T) {
	key := ed25519.NewKeyFromSeed([]byte(strings.Repeat("k", 32)))
	public := key.Public().(ed25519.PublicKey)
	doc, err := agentjson.SignCommitments(fmt.Appendf(nil,
		`{"version":"1.4","origin":"example.com","payout_address":"p",
		"identity":{"did":"did:web:example.com","public_key":%q},
		"commitments":{"schema_version":"1.0","entries":[{"type":"a","constraint":"p99 < 1s"}]}}`, identity.EncodeKey(public)), key)
	if err != nil {
		t.Fatal(err)
	}
	did, err := identity.NewDIDDocument("example.com", public)
	if err != nil {
		t.Fatal(err)
	}
	f := site(t, "127.80.1.5", func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/agent.json":
			http.Redirect(w, r, "/moved.json", http.StatusFound)
		case "/moved.json":
			_, _ = w.Write(doc)
		case "/.well-known/did.json":
			_, _ = w.Write(did)
		default:
			http.NotFound(w, r)
		}
	})
	found, err := f.Manifest(t.Context(), "example.com", Known{})
	if err != nil {
		t.Fatal(err)
	}
	m, problems := agentjson.Parse(found.Bytes, agentjson.Options{Host: found.Host})
	evidence := agentjson.Evidence{Host: found.Host, Now: time.Now()}
	for _, fetch := range agentjson.Fetches(m) {
		if evidence.DIDDocument, err = f.Document(t.Context(), fetch.URL); err != nil {
			t.Fatal(err)
		}
	}
	if v := agentjson.Verify(m, problems, evidence); v.Verified != agentjson.TierSigned {
		t.Errorf("%+v, %+v", v, problems)
	}
}
