package api_test

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"repute"
	"repute/api"
	"repute/api/wire"
	"repute/store"
	"repute/store/denydb"
	"repute/store/docdb"
)

func TestDocuments(t *testing.T) {
	t.Parallel()
	s, _ := documented(t, api.Options{})
	for _, path := range []string{"/agents/8453:7/documents", "/agents/8453/7/documents",
		"/chains/8453/agents/7/documents"} {
		list := as[wire.DocumentList](t, get(t, s, path))
		if len(list.Items) != 2 || len(list.AsOf) != 1 || list.Items[0].ToBlock != nil ||
			list.Items[1].ToBlock == nil ||
			list.Items[0].URIHex == nil {
			t.Errorf("%s: %+v", path, list)
		}
	}
	first := as[wire.DocumentList](t, get(t, s, "/agents/8453:7/documents?limit=1"))
	second := as[wire.DocumentList](t, get(t, s, "/agents/8453:7/documents?limit=1&cursor="+*first.Next))
	if len(second.Items) != 1 || second.Items[0].URI != "https://agent.example/7.json" || second.Next != nil {
		t.Errorf("%+v", second)
	}
	read := as[wire.DocumentList](t, get(t, s, "/agents/8453:1/documents")).Items[0]
	if sum := fmt.Sprintf("0x%x", sha256.Sum256([]byte(`{"name":"Weather Oracle"}`))); string(*read.SHA256) != sum ||
		!read.Kept || *read.Source != "https" || read.Reason != nil {
		t.Errorf("%+v", read)
	}
	if b := problemOf(t, get(t, s, "/agents/8453:99/documents")); b.Status != http.StatusNotFound {
		t.Errorf("%+v", b)
	}
	if b := problemOf(t, get(t, s, "/agents/8453:7/documents?limit=x")); b.Errors[0].Field != "limit" {
		t.Errorf("%+v", b)
	}
}

// Bytes are served as what they are by themselves, and never so that a browser runs
// them.
func TestDocumentBytes(t *testing.T) {
	t.Parallel()
	s, db := documented(t, api.Options{})
	bodies := map[string]string{
		`{"name":"Weather Oracle"}`:              "application/json",
		`<html><script>alert(1)</script></html>`: "text/plain; charset=utf-8",
	}
	for body, kind := range bodies {
		sum := sha256.Sum256([]byte(body))
		r := get(t, s, fmt.Sprintf("/documents/%x", sum))
		if r.status != http.StatusOK || string(r.body) != body || r.header.Get("Content-Type") != kind {
			t.Errorf("%d %s %v", r.status, r.body, r.header)
		}
		for name, want := range map[string]string{"X-Content-Type-Options": "nosniff",
			"Content-Security-Policy": "sandbox",
			"Content-Disposition":     "attachment;", "Cache-Control": "immutable"} {
			if got := r.header.Get(name); !strings.Contains(got, want) {
				t.Errorf("%s: %s", name, got)
			}
		}
		r = get(t, s, fmt.Sprintf("/documents/0x%x", sum), "If-None-Match", r.header.Get("ETag"))
		if r.status != http.StatusNotModified || len(r.body) > 0 {
			t.Errorf("again: %d %s", r.status, r.body)
		}
	}
	for _, bad := range []string{"abc", strings.Repeat("z", 64), strings.Repeat("a", 66), "0x"} {
		if b := problemOf(t, get(t, s, "/documents/"+bad)); b.Status != http.StatusBadRequest ||
			b.Errors[0].Field != "sha256" {
			t.Errorf("%s: %+v", bad, b)
		}
	}
	if b := problemOf(t, get(t, s, "/documents/"+strings.Repeat("a", 64))); b.Status != http.StatusNotFound {
		t.Errorf("%+v", b)
	}
	sum := sha256.Sum256([]byte(`{"name":"Weather Oracle"}`))
	deny(t, db, repute.Denial{Kind: repute.DenySHA256, Value: fmt.Sprintf("%x", sum), Reason: "malware"})
	if b := problemOf(t, get(t, s, fmt.Sprintf("/documents/%x", sum))); b.Status != http.StatusGone ||
		!strings.Contains(b.Detail, "malware") {
		t.Errorf("denied: %+v", b)
	}
	if d := as[wire.AgentAnswer](t, get(t, s, "/agents/8453:1")).Document; d.Status != "denied" ||
		d.Registration != nil {
		t.Errorf("denied: %+v", d)
	}
}

func deny(t testing.TB, db *store.DB, d repute.Denial) {
	t.Helper()
	if err := denydb.Deny(t.Context(), db, d, false); err != nil {
		t.Fatal(err)
	}
}

func TestBinaryDocument(t *testing.T) {
	t.Parallel()
	s, db := documented(t, api.Options{})
	l := newLedger(t, db, 99)
	l.add(mint(0, addr(1), "https://agent.example/blob")...)
	blob := "\x00\xffGIF89a<script>"
	saveFiles(t, db, map[string]docdb.FetchResult{"https://agent.example/blob": {Body: []byte(blob),
		MediaType: "text/html"}})
	r := get(t, s, fmt.Sprintf("/documents/%x", sha256.Sum256([]byte(blob))))
	if r.header.Get("Content-Type") != "application/octet-stream" || string(r.body) != blob {
		t.Errorf("%d %v", r.status, r.header)
	}
}

func TestRefresh(t *testing.T) {
	t.Parallel()
	s, _ := documented(t, api.Options{})
	post := func(path string) reply { return do(t, s, http.MethodPost, path, nil) }
	for _, path := range []string{"/agents/8453:4/documents:refresh", "/agents/8453/5/documents:refresh",
		"/chains/8453/agents/6/documents:refresh"} {
		r := post(path)
		if r.status != http.StatusAccepted || !strings.Contains(string(r.body), `"queued":true`) ||
			!strings.Contains(string(r.body), `"nextAllowedAt":"`) {
			t.Errorf("%s: %d %s", path, r.status, r.body)
		}
	}
	again := post("/agents/8453:4/documents:refresh")
	if b := problemOf(t, again); b.Status != http.StatusTooManyRequests || again.header.Get("Retry-After") == "" ||
		b.Hint == "" {
		t.Errorf("too soon: %+v %v", b, again.header)
	}
	if d := as[wire.AgentAnswer](t, get(t, s, "/agents/8453:4")).Document; d.NextTry == nil {
		t.Errorf("not queued: %+v", d)
	}
	for path, status := range map[string]int{
		"/agents/8453:99/documents:refresh":        http.StatusNotFound,
		"/agents/8453:4/documents:burn":            http.StatusNotFound,
		"/agents/x/documents:refresh":              http.StatusBadRequest,
		"/agents/8453:8/documents:refresh?force=1": http.StatusBadRequest,
	} {
		if b := problemOf(t, post(path)); b.Status != status {
			t.Errorf("%s: %+v", path, b)
		}
	}
}

// One caller cannot make us fetch for ever.
func TestRefreshIsLimitedPerCaller(t *testing.T) {
	t.Parallel()
	s, _ := documented(t, api.Options{})
	start, granted := time.Now(), 0
	for n := range 30 {
		if do(t, s, http.MethodPost, fmt.Sprintf("/agents/8453:%d/documents:refresh", 10+n),
			nil).status == http.StatusAccepted {
			granted++
		}
	}
	if most := 10 + int(time.Since(start)/(6*time.Second)) + 1; granted > most || granted < 10 {
		t.Errorf("%d refreshes granted, want 10 to %d", granted, most)
	}
}

// What a document says is beside what is known of the agent, in lists too.
func TestTypedFields(t *testing.T) {
	t.Parallel()
	s, _ := documented(t, api.Options{})
	want := "Weather Oracle [{MCP https://weather.example/mcp 1} {A2A  }] [forecast chat] [weather] true true [reputation] linked absent"
	show := func(a wire.Agent) string {
		return fmt.Sprint(*a.Name, " ", a.Services, " ", a.Skills, " ", a.Domains, " ", *a.X402Support, " ",
			*a.Active, " ",
			a.SupportedTrust, " ", *a.Link, " ", a.Document.Proof.Verdict)
	}
	if got := show(as[wire.AgentAnswer](t, get(t, s, "/agents/8453:1")).Agent); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := show(as[wire.AgentList](t, get(t, s, "/agents?q=oracle")).Items[0]); got != want {
		t.Errorf("in a list: %s, want %s", got, want)
	}
	if a := as[wire.AgentAnswer](t, get(t, s, "/agents/8453:3")); *a.Link != "other" {
		t.Errorf("a document of another agent: %s", *a.Link)
	}
	empty := as[wire.AgentAnswer](t, get(t, s, "/agents/1:0"))
	if empty.Link == nil || *empty.Link != "unlinked" || empty.Document.Proof.Verdict != "verified" ||
		*empty.Document.Proof.By != "uri" || empty.X402Support != nil {
		t.Errorf("%+v", empty)
	}
	if a := as[wire.AgentAnswer](t, get(t, s, "/agents/8453:9")); a.Name != nil || a.Link != nil || a.Services == nil {
		t.Errorf("without a document: %+v", a)
	}
}

// Agents whose documents name each other are shown beside each other, and so are the
// domains they use.
func TestBeside(t *testing.T) {
	t.Parallel()
	s, db := documented(t, api.Options{})
	l := newLedger(t, db, 99)
	l.add(append(mint(0, addr(1), "https://twin.example/0"), mint(1, addr(1), "https://twin.example/1")...)...)
	other := func(n uint64) *repute.Registration {
		id := token(n)
		return &repute.Registration{Name: "<b>twin",
			Services: []repute.Service{{Name: "web", Endpoint: "https://twin.example"}},
			Registrations: []repute.RegistrationLink{{TokenID: &id,
				Registry: "eip155:99:0x8004a169fb4a3325136eb29fa0ceb6d2e539a432"}}}
	}
	files := map[string]docdb.FetchResult{}
	for n := range uint64(2) {
		f := file(other(1-n), fmt.Sprint("twin", n))
		f.Domains = []docdb.Domain{{Name: "twin.example",
			Proof: "https://twin.example/.well-known/agent-registration.json"}}
		files[fmt.Sprintf("https://twin.example/%d", n)] = f
	}
	saveFiles(t, db, files)
	a := as[wire.AgentAnswer](t, get(t, s, "/agents/99:0"))
	if len(a.LinkedAgents) != 1 || a.LinkedAgents[0].ShortID != "99:1" || a.LinkedAgents[0].Name != "<b>twin" ||
		a.LinkedAgents[0].SameFile {
		t.Errorf("linked: %+v", a.LinkedAgents)
	}
	if len(a.DomainProofs) != 1 || a.DomainProofs[0].Domain != "twin.example" || a.DomainProofs[0].URL == nil {
		t.Errorf("domains: %+v", a.DomainProofs)
	}
	if a := as[wire.AgentAnswer](t, get(t, s, "/agents/99:0?at=1")); len(a.LinkedAgents)+len(a.DomainProofs) != 0 {
		t.Errorf("at a block: %+v", a.Beside)
	}
	type twins struct {
		Agent struct {
			LinkedAgents []wire.LinkedAgent
			DomainProofs []struct{ Domain, Verdict string }
		}
	}
	got := data[twins](t,
		ask(t, s, `{ agent(id: "99:0") { linkedAgents { id shortId name sameFile } domainProofs { domain verdict } } }`,
			nil)).Agent
	if len(got.LinkedAgents) != 1 || got.LinkedAgents[0] != a.LinkedAgents[0] || len(got.DomainProofs) != 1 {
		t.Errorf("GraphQL: %+v", got)
	}
	type listed struct {
		AgentsByID []struct{ LinkedAgents []wire.LinkedAgent }
	}
	list := data[listed](t, ask(t, s, `{ agentsById(ids: ["99:0"]) { linkedAgents { id shortId name sameFile } } }`,
		nil)).AgentsByID
	if len(list) != 1 || len(list[0].LinkedAgents) != 1 || list[0].LinkedAgents[0] != a.LinkedAgents[0] {
		t.Errorf("in a list: %+v", list)
	}
}

// The file behind a rating comes with the verdict on its hash, and with what it says
// else than the chain.
func TestFiles(t *testing.T) {
	t.Parallel()
	s, db := documented(t, api.Options{})
	if _, err := docdb.PlanFiles(t.Context(), db, 1000); err != nil {
		t.Fatal(err)
	}
	body := `{"value": 12, "text": "<script>"}`
	said := &repute.FeedbackFile{Value: "12", Tag1: "slow", Text: "<script>",
		Payment: &repute.PaymentClaim{TxHash: "0x1"}}
	saveFiles(t, db, map[string]docdb.FetchResult{
		"ipfs://feedback": {Body: []byte(body), Source: "ipfs", FileOnly: true,
			Files: []docdb.FileParse{{Kind: repute.FeedbackDocument, Feedback: said}}},
	})
	list := as[wire.FeedbackList](t, get(t, s, "/agents/8453:7/feedback?client="+addr(201).Hex()))
	f := list.Items[0].File
	if f == nil || f.Status != "ok" || f.Proof.Verdict != "mismatch" || f.Feedback == nil ||
		f.Feedback.Text != "<script>" || f.Feedback.Payment.TxHash != "0x1" || len(f.Contradictions) != 2 {
		t.Fatalf("%+v", f)
	}
	if r := get(t, s, "/documents/"+string(*f.SHA256)); string(r.body) != body {
		t.Errorf("%d %s", r.status, r.body)
	}
	if answer := list.Items[0].Responses[0].File; answer == nil || answer.Status != "failed" ||
		*answer.Reason != "timeout" || answer.Proof.Verdict != "unavailable" {
		t.Errorf("%+v", answer)
	}
	for _, v := range as[wire.ValidationList](t, get(t, s, "/agents/8453:7/validations")).Items {
		if (v.RequestURI == "") != (v.RequestFile == nil || v.RequestFile.Status == "none") {
			t.Errorf("%q: %+v", v.RequestURI, v.RequestFile)
		}
		if v.Answer != nil && v.Answer.File != nil {
			t.Errorf("a file without uri: %+v", v.Answer)
		}
	}
}
