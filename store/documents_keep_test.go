package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
	"repute/store"
	"repute/store/docdb"
	"repute/store/docstats"
	"repute/store/query"
	"repute/store/searchdb"
)

// linked is a registration that names agents by their full ids.
func linked(name string, ids ...repute.AgentID) *repute.Registration {
	r := &repute.Registration{Name: name}
	for _, id := range ids {
		token := id.TokenID
		r.Registrations = append(r.Registrations, repute.RegistrationLink{TokenID: &token,
			Registry: fmt.Sprintf("eip155:%d:%s", id.ChainID, id.Registry.Hex())})
	}
	return r
}

// read saves a document that was fetched now, from where its URI says.
func read(t *testing.T, db *store.DB, u docdb.URI, body string, r *repute.Registration, domains ...docdb.Domain) {
	t.Helper()
	at, err := url.Parse(u.URI)
	ok(t, err)
	save(t, db, docdb.FetchResult{URIID: u.ID, Claimed: u.Claimed, Body: []byte(body), Source: "https",
		ServedBy: at.Host, FetchedAt: time.Now(), ParserVersion: 1,
		Registration: r, Domains: domains, NextDue: time.Now().Add(time.Hour)})
}

func TestLinkedAgents(t *testing.T) {
	t.Parallel()
	db, w := queue(t, "https://a/0", "https://a/1", "https://a/2", "https://a/3")
	u := claim(t, db, "")
	read(t, db, u["https://a/0"], "0", linked("zero", w.id(0), w.id(1), w.id(2), w.id(2)))
	read(t, db, u["https://a/1"], "1", linked("one", w.id(0)))
	read(t, db, u["https://a/2"], "2", linked("two", w.id(3))) // names another
	read(t, db, u["https://a/3"], "3", linked("three", w.id(0)))
	got, err := docdb.LinkedAgents(ctxOf(t), db, w.id(0))
	if err != nil || len(got) != 1 || got[0].ID != w.id(1) || got[0].Name != "one" || got[0].SameFile {
		t.Errorf("linked with agent 0: %+v, %v", got, err)
	}
	// A file that changes its mind takes the link back.
	read(t, db, u["https://a/1"], "1b", linked("one"))
	if got, err := docdb.LinkedAgents(ctxOf(t), db, w.id(0)); err != nil || len(got) != 0 {
		t.Errorf("after the link was taken back: %+v, %v", got, err)
	}
	if _, err := docdb.LinkedAgents(ctxOf(t), db, w.id(9)); !errors.Is(err, repute.ErrNotFound) {
		t.Errorf("of no agent: %v", err)
	}
}

func TestFilesAreQueuedBehindAgents(t *testing.T) {
	t.Parallel()
	const file = "https://x/feedback"
	db, w := queue(t, "https://x/agent")
	w.mine(repute.NewFeedback{TokenID: tokenID(0), Client: person(9), Index: 1, Value: big.NewInt(1), URI: file})
	w.store(t, db, w.tip().Number)
	for _, want := range []int{1, 0} {
		if n, err := docdb.PlanFiles(ctxOf(t), db, 10); err != nil || n != want {
			t.Fatalf("planned %d, %v, want %d", n, err, want)
		}
	}
	due, err := docdb.DueURIs(ctxOf(t), db, "", 1)
	if err != nil || len(due) != 1 || due[0].URI != "https://x/agent" || due[0].Rank != docdb.RankNew {
		t.Fatalf("first %+v, %v", due, err)
	}
	if got := claim(t, db, "")[file]; got.Rank != docdb.RankFile || !got.Used {
		t.Errorf("then %+v", got)
	}
}

func TestRefresh(t *testing.T) {
	t.Parallel()
	db, w := queue(t, "https://x/0", "")
	read(t, db, claim(t, db, "")["https://x/0"], "0", linked("zero"))
	ok(t, docdb.FinishHost(ctxOf(t), db, docdb.HostClaim{Host: ""}))
	first, err := query.RequestRefresh(ctxOf(t), db, w.id(0))
	if err != nil || !first.Queued || time.Until(first.NextAllowed) < 50*time.Second {
		t.Fatalf("refresh: %+v, %v", first, err)
	}
	if hosts := dueHosts(t, db); len(hosts) != 1 {
		t.Errorf("hosts %q", hosts)
	}
	if u := claim(t, db, "")["https://x/0"]; u.Rank != docdb.RankAgent { // never read ones come before
		t.Errorf("claimed %+v", u)
	}
	second, err := query.RequestRefresh(ctxOf(t), db, w.id(0))
	if err != nil || second.Queued || !second.NextAllowed.Equal(first.NextAllowed) {
		t.Errorf("too early: %+v, %v", second, err)
	}
	for _, none := range []int{1, 7} {
		if _, err := query.RequestRefresh(ctxOf(t), db, w.id(none)); !errors.Is(err, repute.ErrNotFound) {
			t.Errorf("agent %d: %v", none, err)
		}
	}
}

// What a host gave is listed where the agent had the URI then, or got it while that was
// the last known: what its host gave later is not the agent's.
func TestVersionsFollowTheURI(t *testing.T) {
	t.Parallel()
	const onChain = "data:,x"
	db, w := queue(t, "https://x/0")
	w.mine(repute.Transfer{From: person(0), To: person(1), TokenID: tokenID(0)})
	for _, uri := range []string{"https://x/1", onChain, "https://x/2", "https://x/0"} {
		w.mine(repute.URIUpdated{TokenID: tokenID(0), URI: uri, UpdatedBy: person(1)})
	}
	w.store(t, db, w.tip().Number)
	times := make([]time.Time, 0, 6)
	for _, b := range w.blocks[len(w.blocks)-6:] {
		times = append(times, b.Time)
	}
	u := claim(t, db, "")
	give := func(uri, body string, at time.Time) {
		t.Helper()
		r := docdb.FetchResult{URIID: u[uri].ID, Body: []byte(body), Source: "https", FetchedAt: at, ParserVersion: 1}
		if uri == onChain {
			r.Source = "data"
		}
		save(t, db, r)
	}
	const later = time.Millisecond
	give("https://x/0", "first", times[0].Add(later))
	give("https://x/0", "second", times[2].Add(later))
	give("https://x/1", "other", times[1].Add(later))
	give("https://x/0", "third", times[4].Add(later))
	give("https://x/0", "fourth", times[5].Add(later))
	give("https://x/1", "sold", times[5].Add(later))
	give(onChain, "x", times[5].Add(later))
	give("https://x/2", "never its own", times[5].Add(later))
	page, err := docdb.Versions(ctxOf(t), db, w.id(0), "", 10)
	ok(t, err)
	var got []string
	for _, v := range page.Items {
		body := ""
		if c, err := docdb.Body(ctxOf(t), db, v.SHA256); err == nil && v.Kept {
			body = string(c.Body)
		}
		got = append(got, v.URI+" "+body)
	}
	want := []string{"https://x/0 fourth", "https://x/0 third", "https://x/2 ", "data:,x x", "https://x/1 other",
		"https://x/0 first"}
	if !slices.Equal(got, want) {
		t.Errorf("versions\n%q, want\n%q", got, want)
	}
	if old := page.Items[len(page.Items)-1]; old.ToBlock != page.Items[len(page.Items)-2].FromBlock ||
		page.Items[0].ToBlock != 0 || !page.Items[2].FetchedAt.IsZero() {
		t.Errorf("versions %+v", page.Items)
	}
}

func TestRetryAndStats(t *testing.T) {
	t.Parallel()
	db, w := queue(t, "https://x/0", "https://x/1", "https://x/2")
	u := claim(t, db, "")
	for n, reason := range []string{"timeout", "not_found", "timeout"} {
		save(t, db, docdb.FetchResult{URIID: u[fmt.Sprint("https://x/", n)].ID, FetchedAt: fetched, Reason: reason,
			Dead: n == 0})
	}
	if d := documentOf(t, db, w.id(0)); d.Status != repute.DocumentDead {
		t.Errorf("dead: %+v", d)
	}
	queue, err := docstats.ReadQueue(ctxOf(t), db)
	if err != nil || len(queue) != 4 || queue[docdb.RankAgent].Dead != 1 || queue[docdb.RankAgent].Due != 0 {
		t.Errorf("queue %+v, %v", queue, err)
	}
	hosts, err := docstats.WorstHosts(ctxOf(t), db)
	if err != nil || len(hosts) != 1 || hosts[0].Failed != 3 || hosts[0].Dead != 1 {
		t.Errorf("hosts %+v, %v", hosts, err)
	}
	for _, step := range []struct {
		f    docdb.RetryFilter
		want int64
	}{{docdb.RetryFilter{Host: "other"}, 0}, {docdb.RetryFilter{Reason: "timeout", Agents: []repute.AgentID{w.id(0)}},
		1}, {docdb.RetryFilter{}, 3}} {
		if n, err := docdb.RetryDocuments(ctxOf(t), db, step.f); err != nil || n != step.want {
			t.Errorf("%+v: %d, %v", step.f, n, err)
		}
	}
	if due := claim(t, db, ""); len(due) != 3 {
		t.Errorf("%d due", len(due))
	}
	ok(t, docdb.BackOffHost(ctxOf(t), db, docdb.HostClaim{Host: ""}, time.Hour, time.Second, time.Minute))
	if hosts := dueHosts(t, db); len(hosts) != 0 {
		t.Errorf("hosts %q", hosts)
	}
}

// A newer parser's view of kept bytes replaces the older one, and is announced.
func TestParsedAgain(t *testing.T) {
	t.Parallel()
	db, w := queue(t, "https://x/0")
	read(t, db, claim(t, db, "")["https://x/0"], "{}", linked("old"))
	before := len(documentChanges(t, db))
	again, err := docdb.ListUnparsed(ctxOf(t), db, 2, 10)
	if err != nil || len(again) != 1 || string(again[0].Body) != "{}" || !again[0].Agents || !again[0].Registration {
		t.Fatalf("to parse again: %+v, %v", again, err)
	}
	ok(t, docdb.SaveParsed(ctxOf(t), db, again[0],
		docdb.Parsed{ParserVersion: 2, Registration: linked("new", w.id(0))}))
	if again, err := docdb.ListUnparsed(ctxOf(t), db, 2, 10); err != nil || len(again) != 0 {
		t.Errorf("still to parse: %+v, %v", again, err)
	}
	if d := documentOf(t, db, w.id(0)); d.Registration.Name != "new" || len(documentChanges(t, db)) != before+1 {
		t.Errorf("document %+v", d)
	}
}

func TestBatchIsWhole(t *testing.T) {
	t.Parallel()
	db, w := queue(t, "https://x/0", "https://x/1")
	u := claim(t, db, "")
	good := docdb.FetchResult{URIID: u["https://x/1"].ID, Body: []byte("{}"), Source: "https", FetchedAt: fetched,
		ParserVersion: 1}
	if err := docdb.SaveDocuments(context.Background(), db, good,
		docdb.FetchResult{URIID: 1 << 40, FetchedAt: fetched}); !errors.Is(err, repute.ErrNotFound) {
		t.Errorf("an unknown uri gave %v", err)
	}
	if err := docdb.SaveDocuments(context.Background(), db, good, good); !errors.Is(err, repute.ErrInvalid) {
		t.Errorf("one uri twice gave %v", err)
	}
	if d := documentOf(t, db, w.id(1)); d.Status != repute.DocumentPending {
		t.Errorf("half a batch was stored: %+v", d)
	}
	same := good
	same.URIID = u["https://x/0"].ID
	ok(t, docdb.SaveDocuments(context.Background(), db, good, same))
	for n := range 2 {
		if d := documentOf(t, db, w.id(n)); d.Status != repute.DocumentOK {
			t.Errorf("agent %d: %+v", n, d)
		}
	}
}

func TestJudgeHashOfStoredKeccak(t *testing.T) {
	t.Parallel()
	sum := crypto.Keccak256Hash([]byte("x"))
	for _, c := range []struct {
		given, keccak common.Hash
		source        string
		want          repute.HashProof
	}{
		{common.Hash{}, common.Hash{}, "", repute.HashProof{Result: repute.HashAbsent}},
		{sum, common.Hash{}, "", repute.HashProof{Result: repute.HashUnavailable}},
		{sum, sum, "https", repute.HashProof{Result: repute.HashVerified, By: repute.ProvedByHash}},
		{sum, common.Hash{1}, "ipfs", repute.HashProof{Result: repute.HashMismatch}},
		{common.Hash{}, sum, "ipfs", repute.HashProof{Result: repute.HashVerified, By: repute.ProvedByCID}},
		{common.Hash{}, sum, "data", repute.HashProof{Result: repute.HashVerified, By: repute.ProvedOnURI}},
		{common.Hash{}, sum, "https", repute.HashProof{Result: repute.HashAbsent}},
	} {
		if got := repute.JudgeHash(c.given, c.keccak, c.source); got != c.want {
			t.Errorf("%+v: %+v", c, got)
		}
	}
}

// The files of a rating, its response and a validation come with them, judged.
func TestFilesAreJudged(t *testing.T) {
	t.Parallel()
	const good, wrong, gone = "https://x/good", "ipfs://wrong", "https://x/gone"
	body := []byte(`{"clientAddress":"0x"}`)
	hash := crypto.Keccak256Hash(body)
	db, w := queue(t, "https://x/agent")
	w.mine(repute.NewFeedback{TokenID: tokenID(0), Client: person(9), Index: 1, Value: big.NewInt(1), URI: good,
		FeedbackHash: hash},
		repute.ResponseAppended{TokenID: tokenID(0), Client: person(9), Index: 1, Responder: person(8), URI: wrong,
			ResponseHash: hash},
		repute.ValidationRequest{TokenID: tokenID(0), Validator: person(7), URI: gone, RequestHash: hash})
	w.store(t, db, w.tip().Number)
	_, err := docdb.PlanFiles(ctxOf(t), db, 10)
	ok(t, err)
	u := claim(t, db, "")
	file := &repute.FeedbackFile{Text: "fine\x00", Extra: map[string]json.RawMessage{"n": json.RawMessage("1e1000000")}}
	save(t, db, docdb.FetchResult{URIID: u[good].ID, Body: body, Source: "https", FetchedAt: fetched, ParserVersion: 1,
		FileOnly: true,
		Files: []docdb.FileParse{{Kind: repute.FeedbackDocument, Feedback: file,
			Problems: []repute.Problem{{Code: "WF001", Severity: repute.SeverityWarning}}}}})
	save(t, db, docdb.FetchResult{URIID: u[wrong].ID, Body: []byte("other"), Source: "ipfs", FetchedAt: fetched,
		ParserVersion: 1, FileOnly: true,
		Files: []docdb.FileParse{{Kind: repute.FeedbackDocument, Feedback: file,
			Problems: []repute.Problem{{Code: "WF001", Severity: repute.SeverityWarning}}}}})
	save(t, db, docdb.FetchResult{URIID: u[gone].ID, FetchedAt: fetched, Reason: "not_found"})
	page, err := query.Feedback(ctxOf(t), db, w.id(0), query.FeedbackFilter{Limit: 1, At: latest})
	if err != nil || len(page.Items) != 1 {
		t.Fatalf("feedback %+v, %v", page, err)
	}
	rated, answered := page.Items[0].File, page.Items[0].Responses[0].File
	if rated == nil || rated.Status != repute.DocumentOK || rated.Proof.Result != repute.HashVerified ||
		rated.Keccak != hash ||
		rated.Feedback == nil || rated.Feedback.Text != "fine\ufffd" || rated.ProblemCount != 1 ||
		rated.Size != int64(len(body)) {
		t.Errorf("the rating's file: %+v", rated)
	}
	if answered == nil || answered.Proof.Result != repute.HashMismatch ||
		// anybody may append thousands of them
		answered.Feedback != nil || len(answered.Problems) > 0 || answered.Status != repute.DocumentOK {
		t.Errorf("the response's file: %+v", answered)
	}
	validations, err := query.Validations(ctxOf(t), db, w.id(0), query.ValidationFilter{Limit: 1, At: latest})
	if err != nil || len(validations.Items) != 1 {
		t.Fatalf("validations %+v, %v", validations, err)
	}
	if f := validations.Items[0].RequestFile; f == nil || f.Status != repute.DocumentFailed ||
		f.Proof.Result != repute.HashUnavailable || f.Reason != "not_found" {
		t.Errorf("the request's file: %+v", f)
	}
}

// What is no feedback file is not ok as a rating's, but as a response's it may be anything.
func TestRatingsNeedFeedbackFiles(t *testing.T) {
	t.Parallel()
	const junk = "https://x/junk"
	db, w := queue(t, "data:,a")
	w.mine(repute.NewFeedback{TokenID: tokenID(0), Client: person(9), Index: 1, Value: big.NewInt(1), URI: junk},
		repute.ResponseAppended{TokenID: tokenID(0), Client: person(9), Index: 1, Responder: person(8), URI: junk})
	w.store(t, db, w.tip().Number)
	_, err := docdb.PlanFiles(ctxOf(t), db, 10)
	ok(t, err)
	r := docdb.FetchResult{URIID: claim(t, db, "")[junk].ID, Body: []byte("<html>not found</html>"), Source: "https",
		FetchedAt:     fetched,
		ParserVersion: 1, FileOnly: true}
	for _, files := range [][]docdb.FileParse{nil, {{Kind: repute.FeedbackDocument, Feedback: &repute.FeedbackFile{},
		Problems: []repute.Problem{{Code: "EF501", Severity: repute.SeverityError}}}}} {
		r.Files = files
		save(t, db, r)
		page, err := query.Feedback(ctxOf(t), db, w.id(0), query.FeedbackFilter{Limit: 1, At: latest})
		if err != nil || len(page.Items) != 1 || page.Items[0].File == nil || len(page.Items[0].Responses) != 1 {
			t.Fatalf("feedback %+v, %v", page, err)
		}
		if f := page.Items[0].File; f.Status != repute.DocumentInvalid || len(f.Problems) != len(files) {
			t.Errorf("HTML as a feedback file, parsed %d times: %+v", len(files), f)
		}
		if f := page.Items[0].Responses[0].File; f.Status != repute.DocumentOK || f.Feedback != nil ||
			f.Problems != nil {
			t.Errorf("HTML as a response: %+v", f)
		}
	}
}

// Bytes that are somebody's file and an agent's in one batch are found and linked as the
// agent's, in whichever order they come.
func TestBatchOfEqualBytes(t *testing.T) {
	t.Parallel()
	const url, other = "https://x/agent", "https://x/file"
	for name, id := range map[string]int64{"file first": -5, "file last": 1e9} {
		db, w := queue(t, url)
		sqlExec(t, db, `insert into uris (id, hash, uri, kind, host, rank, next_due) overriding system value
			values ($1, sha256('f'), 'https://x/file', 'https', '', 3, now())`, id)
		due := claim(t, db, "")
		body := []byte("same bytes")
		ok(t, docdb.SaveDocuments(ctxOf(t), db,
			docdb.FetchResult{URIID: due[other].ID, Body: body, Source: "https", FetchedAt: time.Now(),
				ParserVersion: 1,
				FileOnly:      true},
			docdb.FetchResult{URIID: due[url].ID, Body: body, Source: "https", FetchedAt: time.Now(), ParserVersion: 1,
				Registration: linked("Weather Oracle", w.id(0))}))
		if _, got := search(t, db, searchdb.AgentFilter{Text: "weather"}); got != "7:0" {
			t.Errorf("%s: found %q", name, got)
		}
		if n := count(t, db, "links"); n != 1 {
			t.Errorf("%s: %d links", name, n)
		}
	}
}
