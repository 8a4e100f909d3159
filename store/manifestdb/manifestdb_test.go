package manifestdb_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"repute"
	"repute/internal/pgtest"
	"repute/store"
	"repute/store/manifestdb"
)

func open(t *testing.T, o store.Options) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), pgtest.New(t), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

func exec(t *testing.T, db *store.DB, sql string) {
	t.Helper()
	if _, err := db.Pool().Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

// save claims one listed domain and stores an outcome for it.
func save(t *testing.T, db *store.DB, domain string, r manifestdb.Result) {
	t.Helper()
	if _, err := manifestdb.Import(t.Context(), db, []string{domain}); err != nil {
		t.Fatal(err)
	}
	exec(t, db, fmt.Sprintf(`update manifests set due_at = now() where domain = '%s'`, domain))
	claims, err := manifestdb.ClaimDue(t.Context(), db, 1)
	if err != nil || len(claims) != 1 || claims[0].Domain != domain {
		t.Fatalf("%+v, %v", claims, err)
	}
	r.Wait = time.Hour
	if err := manifestdb.Save(t.Context(), db, claims[0], r); err != nil {
		t.Fatal(err)
	}
}

// content is a usable manifest with intents of some names.
func content(verified int, names ...string) *manifestdb.Content {
	c := &manifestdb.Content{State: manifestdb.StateOK, Body: fmt.Append(nil, names), Parser: 1, Format: "agent-json",
		Verified: verified, Declared: verified, Verdict: json.RawMessage("{}"), Complete: true}
	for _, name := range names {
		c.Intents = append(c.Intents, manifestdb.Intent{Name: name, Description: "Does " + name + ".",
			Terms: json.RawMessage("{}")})
	}
	return c
}

// names are those of found intents.
func names(t *testing.T, db *store.DB, f manifestdb.IntentFilter) (out []string) {
	t.Helper()
	found, err := manifestdb.Intents(t.Context(), db, f)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range found.Items {
		out = append(out, i.Domain+" "+i.Name)
	}
	return out
}

// Only domains of files that an agent shows are planned, and no addresses, ports or shared hosts.
func TestPlan(t *testing.T) {
	t.Parallel()
	db := open(t, store.Options{SharedHosts: []string{"shared.example"}})
	exec(t, db, `
		insert into documents (sha256, media_type, first_seen) values (sha256('a'), '', now()), (sha256('b'), '', now());
		insert into uris (hash, uri, kind, host, sha256) values (sha256('1'), '1', 'https', 'x', sha256('a')),
			(sha256('2'), '2', 'https', 'x', sha256('b'));
		insert into agents (chain_id, token_id, owner, claimed, wallet, approved, uri_id, registered_block, registered_log,
			updated_block, updated_log)
		select 1, 0, '', false, '', '', id, 1, 1, 1, 1 from uris where uri = '1';
		insert into domains (sha256, domain) select sha256('a'), d from unnest(array['shop.example', 'b.example',
			'shared.example', 'port.example:8443', '[::1]', 'localhost', 'Upper.example', '127.0.0.1:80']) d;
		insert into domains (sha256, domain) values (sha256('b'), 'unused.example')`)
	if more, err := manifestdb.Plan(t.Context(), db, 1); err != nil || !more {
		t.Fatalf("more %t, %v", more, err)
	}
	for range 2 {
		if more, err := manifestdb.Plan(t.Context(), db, 10); err != nil || more {
			t.Fatalf("more %t, %v", more, err)
		}
	}
	claims, err := manifestdb.ClaimDue(t.Context(), db, 10)
	if err != nil {
		t.Fatal(err)
	}
	var domains []string
	for _, c := range claims {
		domains = append(domains, c.Domain)
		if !c.Used || c.Known.Body != nil {
			t.Errorf("%+v", c)
		}
	}
	slices.Sort(domains)
	if want := []string{"b.example", "shop.example"}; !slices.Equal(domains, want) {
		t.Errorf("%q, want %q", domains, want)
	}
	exec(t, db, `delete from agents`)
	for _, c := range claims {
		if err := manifestdb.Release(t.Context(), db, c); err != nil {
			t.Fatal(err)
		}
	}
	if again, err := manifestdb.ClaimDue(t.Context(), db, 10); err != nil || len(again) != 2 || again[0].Used {
		t.Errorf("after a release, without agents: %+v, %v", again, err)
	}
}

// Intents follow their manifest: they change with it, and go with it.
func TestIntentsFollowTheManifest(t *testing.T) {
	t.Parallel()
	db := open(t, store.Options{})
	all := manifestdb.IntentFilter{Limit: 10}
	save(t, db, "a.example", manifestdb.Result{Content: content(1, "old", "kept")})
	save(t, db, "b.example", manifestdb.Result{Content: content(3, "other")})
	if got := names(t, db, all); !slices.Equal(got, []string{"b.example other", "a.example old", "a.example kept"}) {
		t.Errorf("the highest tier is not first: %q", got)
	}
	save(t, db, "a.example", manifestdb.Result{Content: content(1, "kept", "new")})
	if got := names(t, db, all); !slices.Equal(got, []string{"b.example other", "a.example kept", "a.example new"}) {
		t.Errorf("after a change: %q", got)
	}
	broken := content(0, "kept", "new")
	broken.State = manifestdb.StateInvalid
	save(t, db, "a.example", manifestdb.Result{Content: broken})
	save(t, db, "b.example", manifestdb.Result{Reason: "timeout"})
	if got := names(t, db, all); !slices.Equal(got, []string{"b.example other"}) {
		t.Errorf("an invalid manifest has intents, or a failing host lost them: %q", got)
	}
	save(t, db, "b.example", manifestdb.Result{Gone: manifestdb.StateRefused, Reason: manifestdb.ReasonRobots})
	if got := names(t, db, all); len(got) != 0 {
		t.Errorf("of a host that refuses: %q", got)
	}
	save(t, db, "a.example", manifestdb.Result{Content: content(1, "kept", "new")})
	if got := names(t, db, all); len(got) != 2 {
		t.Errorf("the same bytes, valid again: %q", got)
	}
}

// Any text is a search, whatever signs of the query language it has.
func TestAnyTextIsASearch(t *testing.T) {
	t.Parallel()
	db := open(t, store.Options{})
	save(t, db, "a.example", manifestdb.Result{Content: content(1, "book_flight")})
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`['"\\|&!():*<>a-z0-9/.@ -]{0,40}`)).Draw(t, "text")
		for _, q := range []string{text, text + " flight"} {
			found, err := manifestdb.Intents(context.Background(), db, manifestdb.IntentFilter{Text: q, Limit: 5})
			if err != nil {
				t.Fatalf("%q: %v", q, err)
			}
			if q != text && len(found.Items) != 1 {
				t.Fatalf("%q does not find the flight", q)
			}
		}
	})
}

// Any bytes that a caller sends are a filter, which finds nothing, and no failure of the database.
func TestAnyBytesAreAFilter(t *testing.T) {
	t.Parallel()
	db := open(t, store.Options{})
	save(t, db, "a.example", manifestdb.Result{Content: content(1, "book")})
	for _, text := range []string{"\x00", "a\x00", "\xff\xfe", "'; --", "%", "\\"} {
		for _, f := range []manifestdb.Filter{{Prefix: text}, {Network: text}, {State: manifestdb.State(text)}} {
			f.Limit = 10
			if page, err := manifestdb.List(t.Context(), db, f); err != nil || len(page.Items) != 0 {
				t.Errorf("%+v: %+v, %v", f, page.Items, err)
			}
		}
		for _, f := range []manifestdb.IntentFilter{{Protocol: text}, {Network: text}, {Network: text, Text: "book"}} {
			f.Limit = 10
			if found := names(t, db, f); found != nil {
				t.Errorf("%+v: %q", f, found)
			}
		}
		if _, _, err := manifestdb.Read(t.Context(), db, text); !errors.Is(err, repute.ErrNotFound) {
			t.Errorf("manifest of %q: %v", text, err)
		}
	}
}

// A domain without a manifest is listed, and a page boundary neither skips nor repeats a domain.
func TestPages(t *testing.T) {
	t.Parallel()
	db := open(t, store.Options{})
	var want, got []string
	for i := range 7 {
		want = append(want, fmt.Sprintf("d%d.example", i))
	}
	if n, err := manifestdb.Import(t.Context(), db, want); n != 7 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	f := manifestdb.Filter{Limit: 3, Prefix: "D"}
	for {
		page, err := manifestdb.List(t.Context(), db, f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range page.Items {
			got = append(got, m.Domain)
		}
		if f.After = page.Next; f.After == "" {
			break
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A probe that learned nothing leaves an outage as it is; an answer ends it.
func TestUnmeasuredKeepsOutage(t *testing.T) {
	t.Parallel()
	const cut, answered = "cut.example.com", "answered.example.com"
	db := open(t, store.Options{})
	for _, domain := range []string{cut, answered} {
		if _, err := manifestdb.Import(t.Context(), db, []string{domain}); err != nil {
			t.Fatal(err)
		}
		if err := manifestdb.SetProbed(t.Context(), db, domain, true); err != nil {
			t.Fatal(err)
		}
		probed := func(failed, unmeasured bool) {
			c := content(1, "a")
			c.Watched, c.ProbeFailed, c.Unmeasured = true, failed, unmeasured
			save(t, db, domain, manifestdb.Result{Content: c})
			exec(t, db, `update manifests set probe_failed_at = probe_failed_at - interval '1 minute'`)
		}
		probed(true, false)
		probed(false, domain == cut)
		probed(true, false)
		m, _, err := manifestdb.Read(t.Context(), db, domain)
		if err != nil || (m.Watch.Down >= time.Minute) != (domain == cut) {
			t.Errorf("%s: %+v, %v", domain, m.Watch, err)
		}
	}
}
