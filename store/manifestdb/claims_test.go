package manifestdb_test

import (
	"slices"
	"testing"
	"time"

	"repute/store"
	"repute/store/manifestdb"
)

// What a worker learned after another one got its domain is not stored, and does not end the other's claim.
func TestLateResultIsDiscarded(t *testing.T) {
	t.Parallel()
	db := open(t, store.Options{})
	claim := func() manifestdb.Claim {
		t.Helper()
		claims, err := manifestdb.ClaimDue(t.Context(), db, 5)
		if err != nil || len(claims) != 1 {
			t.Fatalf("%+v, %v", claims, err)
		}
		return claims[0]
	}
	read := func() manifestdb.Manifest {
		t.Helper()
		m, _, err := manifestdb.Read(t.Context(), db, "a.example")
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	if _, err := manifestdb.Import(t.Context(), db, []string{"a.example"}); err != nil {
		t.Fatal(err)
	}
	late := claim()
	exec(t, db, "update manifests set claimed_until = now() - interval '1 second'")
	now := claim()
	for name, r := range map[string]manifestdb.Result{"content": {Content: content(3, "late")},
		"gone": {Gone: manifestdb.StateMissing, Reason: "not_found"}, "failure": {Reason: "timeout", Down: true}} {
		r.Wait = time.Hour
		if err := manifestdb.Save(t.Context(), db, late, r); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if m := read(); m.State != manifestdb.StatePending || m.Body != nil || m.Failures != 0 || m.Reason != "" {
			t.Errorf("%s of a lost claim is stored: %+v", name, m)
		}
	}
	if err := manifestdb.Release(t.Context(), db, late); err != nil {
		t.Fatal(err)
	}
	if claims, err := manifestdb.ClaimDue(t.Context(), db, 5); err != nil || len(claims) != 0 {
		t.Errorf("the domain is claimed: %+v, %v", claims, err)
	}
	r := manifestdb.Result{Content: content(2, "now"), Wait: time.Hour}
	if err := manifestdb.Save(t.Context(), db, now, r); err != nil {
		t.Fatal(err)
	}
	if m := read(); m.State != manifestdb.StateOK || m.Verified != 2 || m.Intents != 1 {
		t.Errorf("%+v", m)
	}
}

// A manifest counts for a week while its domain does not answer, and for nothing after that, until it answers again.
func TestSilenceOfADomain(t *testing.T) {
	t.Parallel()
	db := open(t, store.Options{})
	failed := manifestdb.Result{Reason: "timeout", Down: true}
	all := manifestdb.IntentFilter{Limit: 10}
	save(t, db, "never.example", failed)
	save(t, db, "a.example", manifestdb.Result{Content: content(3, "book")})
	state := func(domain string, want manifestdb.State, verified, failures int) {
		t.Helper()
		m, _, err := manifestdb.Read(t.Context(), db, domain)
		if err != nil || m.State != want || m.Verified != verified || m.Failures != failures {
			t.Errorf("%s: %s of tier %d after %d failures, %v", domain, m.State, m.Verified, m.Failures, err)
		}
	}
	state("never.example", manifestdb.StateFailed, 0, 1)
	save(t, db, "a.example", failed)
	exec(t, db, "update manifests set fetched_at = now() - interval '6 days 23 hours'")
	save(t, db, "a.example", failed)
	state("a.example", manifestdb.StateOK, 3, 2)
	if got := names(t, db, all); len(got) != 1 {
		t.Errorf("within a week: %q", got)
	}
	exec(t, db, "update manifests set fetched_at = now() - interval '7 days 1 hour'")
	save(t, db, "a.example", failed)
	state("a.example", manifestdb.StateFailed, 0, 3)
	if got := names(t, db, all); got != nil {
		t.Errorf("after a week: %q", got)
	}
	save(t, db, "a.example", manifestdb.Result{Content: content(3, "book")})
	state("a.example", manifestdb.StateOK, 3, 0)
	if got := names(t, db, all); len(got) != 1 {
		t.Errorf("when it answers again: %q", got)
	}
}

// A reader of changed intents misses none, also not those of a transaction that was under way when it looked, and gets
// the vectors of its model alone. A vector of a text that changed meanwhile is not kept.
func TestChangedIntentsAndTheirVectors(t *testing.T) {
	t.Parallel()
	db := open(t, store.Options{})
	save(t, db, "a.example", manifestdb.Result{Content: content(1, "book")})
	save(t, db, "b.example", manifestdb.Result{Content: content(1, "rent")})
	var at uint64
	// Others may be among them: the position is held back by transactions of all databases of the server.
	changed := func(want ...string) {
		t.Helper()
		domains, next, err := manifestdb.ChangedIntents(t.Context(), db, at)
		if err != nil || next < at {
			t.Fatalf("from %d to %d, %v", at, next, err)
		}
		for _, domain := range want {
			if !slices.Contains(domains, domain) {
				t.Errorf("changed from %d to %d: %q without %s", at, next, domains, domain)
			}
		}
		at = next
	}
	changed("a.example", "b.example")
	tx, err := db.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context())
	_, err = tx.Exec(t.Context(), "update manifests set intents_xid = pg_current_xact_id() where domain = 'b.example'")
	if err != nil {
		t.Fatal(err)
	}
	save(t, db, "a.example", manifestdb.Result{Content: content(1, "book", "cancel")})
	changed("a.example")
	changed()
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	changed("b.example") // although later changes were read before it committed
	intents := func(model string) []manifestdb.StoredIntent {
		t.Helper()
		list, err := manifestdb.IntentsOf(t.Context(), db, []string{"a.example"}, model)
		if err != nil || len(list) != 2 {
			t.Fatalf("%+v, %v", list, err)
		}
		return list
	}
	list := intents("m")
	list[0].Embedding, list[1].Embedding = []byte{1}, []byte{2}
	list[1].Description = "Another text."
	if err := manifestdb.SaveEmbeddings(t.Context(), db, "m", list); err != nil {
		t.Fatal(err)
	}
	if got := intents("m"); string(got[0].Embedding) != "\x01" || got[1].Embedding != nil {
		t.Errorf("%+v", got)
	}
	if got := intents("other"); got[0].Embedding != nil {
		t.Errorf("vectors of another model: %+v", got)
	}
}
