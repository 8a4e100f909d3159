package store_test

import (
	"testing"
	"time"

	"repute"
	"repute/store"
	"repute/store/docdb"
	"repute/store/query"
)

func TestDomainProofs(t *testing.T) {
	t.Parallel()
	const own = "https://own.example/.well-known/agent-registration.json"
	db, w := queue(t, own, "data:,x")
	u := claim(t, db, "")
	sqlExec(t, db, "update uris set host = 'own.example' where kind = 'https'") // as the loop classifies
	const proof = "https://b.example/.well-known/agent-registration.json"
	read(t, db, u[own], "0", linked("zero", w.id(0)), docdb.Domain{Name: "own.example", Proof: own},
		docdb.Domain{Name: "b.example", Proof: proof})
	verdicts := func() (out []repute.DomainResult) {
		t.Helper()
		proofs, err := query.DomainProofs(ctxOf(t), db, w.id(0), w.id(1))
		ok(t, err)
		for _, p := range proofs[w.id(0)] {
			out = append(out, p.Result)
		}
		if len(proofs) != 1 || len(out) != 2 {
			t.Fatalf("proofs %+v", proofs)
		}
		return out
	}
	if got := verdicts(); got[0] != repute.DomainUnavailable || got[1] != repute.DomainProven {
		t.Errorf("before the first look: %v", got)
	}
	p := claim(t, db, "")[proof]
	if p.Rank != docdb.RankProof || !p.Used {
		t.Fatalf("the proof is not due: %+v", p)
	}
	before := len(readChanges(t, ctxOf(t), db, ""))
	read(t, db, p, "p1", linked("", w.id(1)))
	if got := verdicts(); got[0] != repute.DomainRefused {
		t.Errorf("a file that names another: %v", got)
	}
	read(t, db, p, "p2", linked("", w.id(1), w.id(0)))
	if got := verdicts(); got[0] != repute.DomainProven {
		t.Errorf("a file that names the agent: %v", got)
	}
	changes := readChanges(t, ctxOf(t), db, "")[before:]
	if len(changes) != 2 || changes[0].Kind != "proof.updated" || changes[0].TokenID.Dec() != "0" {
		t.Errorf("changes %+v", changes)
	}
	save(t, db, docdb.FetchResult{URIID: p.ID, FetchedAt: time.Now(), Reason: "timeout"})
	if got := verdicts(); got[0] != repute.DomainProven {
		t.Errorf("while the host is away: %v", got)
	}
}

// proofOf is the only domain of an agent.
func proofOf(t *testing.T, db *store.DB, id repute.AgentID) repute.DomainProof {
	t.Helper()
	proofs, err := query.DomainProofs(ctxOf(t), db, id)
	if err != nil || len(proofs[id]) != 1 {
		t.Fatalf("proofs %+v, %v", proofs, err)
	}
	return proofs[id][0]
}

// atHost moves the https URIs to a host's queue, as the loop classifies them.
func atHost(t *testing.T, db *store.DB, host string) {
	t.Helper()
	sqlExec(t, db, "update uris set host = $1 where kind = 'https'", host)
	sqlExec(t, db, "insert into hosts (host, due_at) values ($1, now()) on conflict do nothing", host)
}

// Only a site's operator writes below /.well-known/; any other path of a domain may be a
// bucket, a raw-file host, or this service's own page of an agent's document.
func TestOnlyTheWellKnownFileProves(t *testing.T) {
	t.Parallel()
	const wellKnown = "https://site.example/.well-known/agent-registration.json"
	for _, c := range []struct {
		uri, servedBy string
		names         int
		shared        []string
		want          repute.DomainResult
	}{
		{wellKnown, "site.example", 0, nil, repute.DomainProven}, // the agent's URI is the proof
		{wellKnown, "www.site.example", 0, nil, repute.DomainProven},
		{wellKnown, "site.example", 1, nil, repute.DomainRefused},
		{wellKnown, "evil.example", 0, nil, repute.DomainRefused},
		{wellKnown, "site.example", 0, []string{"site.example"}, repute.DomainRefused},
		{"https://site.example/anybody/main/agent.json", "site.example", 0, nil, repute.DomainUnavailable},
		{"https://site.example/documents/0xabc", "site.example", 0, nil, repute.DomainUnavailable},
		{"https://site.example/.well-known/../bucket/agent.json", "site.example", 0, nil, repute.DomainUnavailable},
	} {
		db, w := queueWith(t, store.Options{SharedHosts: c.shared}, c.uri, "data:,x")
		atHost(t, db, "site.example")
		save(t, db, docdb.FetchResult{URIID: claim(t, db, "site.example")[c.uri].ID, Body: []byte("0"), Source: "https",
			ServedBy:  c.servedBy,
			FetchedAt: time.Now(), ParserVersion: 1, Registration: linked("site", w.id(c.names)),
			Domains: []docdb.Domain{{Name: "site.example", Proof: wellKnown}}})
		if p := proofOf(t, db, w.id(0)); p.Result != c.want {
			t.Errorf("%s served by %q, names agent %d: %+v, want %s", c.uri, c.servedBy, c.names, p, c.want)
		}
	}
}

// A proof that is taken away, redirected elsewhere or out of reach for long proves
// nothing any more.
func TestProofsEnd(t *testing.T) {
	t.Parallel()
	const proof = "https://b.example/.well-known/agent-registration.json"
	day := 24 * time.Hour
	for name, c := range map[string]struct {
		readAgo time.Duration
		after   docdb.FetchResult
		want    repute.DomainResult
	}{
		"taken away":     {day, docdb.FetchResult{Reason: "not_found"}, repute.DomainRefused},
		"short silence":  {day, docdb.FetchResult{Reason: "timeout"}, repute.DomainProven},
		"long silence":   {8 * day, docdb.FetchResult{Reason: "dns", Dead: true}, repute.DomainUnavailable},
		"unchanged":      {8 * day, docdb.FetchResult{Source: "https", ServedBy: "b.example"}, repute.DomainProven},
		"moved to other": {day, docdb.FetchResult{Source: "https", ServedBy: "c.example"}, repute.DomainRefused},
	} {
		db, w := queue(t, "data:,x")
		read(t, db, claim(t, db, "")["data:,x"], "0", linked("zero"), docdb.Domain{Name: "b.example", Proof: proof})
		p := claim(t, db, "")[proof]
		save(t, db, docdb.FetchResult{URIID: p.ID, Body: []byte("p"), Source: "https", ServedBy: "b.example",
			FetchedAt:     time.Now().Add(-c.readAgo),
			ParserVersion: 1, Registration: linked("", w.id(0))})
		if got := proofOf(t, db, w.id(0)); got.Result != repute.DomainProven {
			t.Errorf("%s: at first %+v", name, got)
		}
		c.after.URIID, c.after.FetchedAt = p.ID, time.Now()
		save(t, db, c.after)
		if got := proofOf(t, db, w.id(0)); got.Result != c.want {
			t.Errorf("%s: %+v, want %s", name, got, c.want)
		}
	}
}

// A proof that nobody wanted to know of is read again for an agent that names its domain.
func TestIdleProofIsRead(t *testing.T) {
	t.Parallel()
	const proof = "https://b.example/.well-known/agent-registration.json"
	day := 24 * time.Hour
	for name, c := range map[string]struct {
		ago, due time.Duration
		dead     bool
		want     bool
	}{
		"idle":       {10 * day, 20 * day, false, true},
		"just read":  {time.Hour, 30 * day, false, false},
		"wanted":     {25 * time.Hour, time.Hour, false, false},
		"known dead": {3 * day, 4 * day, true, false},
	} {
		db, w := queue(t, "data:,x", "data:,y")
		u := claim(t, db, "")
		read(t, db, u["data:,x"], "0", linked("zero", w.id(0)), docdb.Domain{Name: "b.example", Proof: proof})
		p := claim(t, db, "")[proof]
		r := docdb.FetchResult{URIID: p.ID, FetchedAt: time.Now().Add(-c.ago), NextDue: time.Now().Add(c.due),
			Dead: c.dead}
		if r.Reason = "not_found"; !c.dead {
			r.Reason, r.Body, r.Source, r.ParserVersion, r.Registration = "", []byte("p"), "https", 1, linked("",
				w.id(0))
		}
		save(t, db, r)
		read(t, db, u["data:,y"], "1", linked("one", w.id(1)), docdb.Domain{Name: "b.example", Proof: proof})
		if again, due := claim(t, db, "")[proof]; due != c.want || due && again.Rank != docdb.RankProof {
			t.Errorf("%s: due = %t, %+v", name, due, again)
		}
	}
}

// What a host took away stays away through whatever happens to it later, until it gives
// it again; each turn is told of once.
func TestProofTakenAwayStaysAway(t *testing.T) {
	t.Parallel()
	const proof = "https://b.example/.well-known/agent-registration.json"
	db, w := queue(t, "data:,x")
	read(t, db, claim(t, db, "")["data:,x"], "0", linked("zero"), docdb.Domain{Name: "b.example", Proof: proof})
	p := claim(t, db, "")[proof]
	given := docdb.FetchResult{URIID: p.ID, Body: []byte("p"), Source: "https", ServedBy: "b.example", ParserVersion: 1,
		Registration: linked("", w.id(0))}
	for _, step := range []struct {
		reason string
		want   repute.DomainResult
		told   int
	}{
		{"", repute.DomainProven, 1},
		{"timeout", repute.DomainProven, 0},
		{"not_found", repute.DomainRefused, 1},
		{"timeout", repute.DomainRefused, 0},
		{"http_status", repute.DomainRefused, 0},
		{"not_found", repute.DomainRefused, 0},
		{"", repute.DomainProven, 1},
		{"timeout", repute.DomainProven, 0},
	} {
		r := given
		if step.reason != "" {
			r = docdb.FetchResult{URIID: p.ID, Reason: step.reason}
		}
		r.FetchedAt = time.Now()
		before := len(readChanges(t, ctxOf(t), db, ""))
		save(t, db, r)
		told := len(readChanges(t, ctxOf(t), db, "")) - before
		if got := proofOf(t, db, w.id(0)); got.Result != step.want || told != step.told {
			t.Errorf("after %q: %s, told %d times, want %s and %d", step.reason, got.Result, told, step.want, step.told)
		}
	}
}
