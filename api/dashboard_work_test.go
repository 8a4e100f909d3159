package api_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"repute"
	"repute/api"
	"repute/internal/pgtest"
	"repute/store/docdb"
)

// TestPagesOfWorkWithoutOrchestrator: where no orchestrator is served, pages and GraphQL say so, and what to do.
func TestPagesOfWorkWithoutOrchestrator(t *testing.T) {
	t.Parallel()
	s := serve(t, api.Options{DB: open(t, nowhere)}, unlimited())
	for _, path := range []string{"/ui/tasks", "/ui/runs", "/ui/runs/x", "/ui/treasury"} {
		r := get(t, s, path)
		if text := textOf(t, r.body); r.status != http.StatusOK ||
			!strings.Contains(text, "orchestrator is not served here") ||
			!strings.Contains(text, "repute serve") {
			t.Errorf("%s: %d %s", path, r.status, text)
		}
		checkPage(t, path, r)
	}
	for _, query := range []string{`{ tasks { nodes { id } } }`, `{ runs { nodes { id } } }`, `{ run(id: "x") { id } }`,
		`{ treasury { address } }`} {
		a := ask(t, s, query, nil)
		if len(a.Errors) != 1 || a.Errors[0].Extensions["code"] != "NOT_FOUND" ||
			!strings.Contains(string(a.Data), ":null") {
			t.Errorf("%s: %+v", query, a)
		}
	}
}

// postForm sends a form as a browser does.
func postForm(t *testing.T, s *httptest.Server, path string, fields map[string]string) reply {
	t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for name, value := range fields {
		if err := form.WriteField(name, value); err != nil {
			t.Fatal(err)
		}
	}
	if err := form.Close(); err != nil {
		t.Fatal(err)
	}
	return do(t, s, http.MethodPost, path, &body, "Content-Type", form.FormDataContentType())
}

// library is a Fetcher of known files.
type library map[string]string

// Files of a library that are not read.
const (
	notThere = "not there"
	broken   = "broken"
	tooLate  = "too late"
)

// Fetch implements graph.Fetcher.
func (l library) Fetch(_ context.Context, uri string) ([]byte, error) {
	switch text, known := l[uri]; {
	case text == notThere:
		return nil, fmt.Errorf("%w: %w", repute.Invalid("url", "the file cannot be read: not_found", "another URL"),
			repute.ErrNotFound)
	case text == broken:
		return nil, repute.ErrUnavailable
	case text == tooLate: // as after the time of one fetch
		return nil, context.DeadlineExceeded
	case known:
		return []byte(text), nil
	}
	return nil, repute.Invalid("url", "the file cannot be read: blocked_host", "public hosts alone are read")
}

// TestPageChecksFiles: a pasted file and one behind a URL are shown with their problems beside the lines, hostile text
// as text; a link reads nothing.
func TestPageChecksFiles(t *testing.T) {
	t.Parallel()
	hostile := "{\n  \"name\": 7,\n  \"services\": \"</td><script>alert(1)</script>\u202e\"\n}"
	s := serve(t, api.Options{DB: open(t, nowhere), Files: library{"https://agent.example/a": hostile}}, unlimited())
	for what, try := range map[string]struct {
		fields map[string]string
		status int
		says   []string
	}{
		"pasted": {map[string]string{"content": hostile}, 200,
			[]string{"4 warnings", "registration file", "\"name\": 7", "</td><script>alert(1)</script>⟨U+202E⟩"}},
		"by URL": {map[string]string{"url": "https://agent.example/a"}, 200,
			[]string{"registration file", "\"name\": 7"}},
		"agent.json": {map[string]string{"kind": "agentJson", "content": "{\n\"version\": 4}"}, 200,
			[]string{"agent.json", "\"version\": 4"}},
		"OAF": {map[string]string{"kind": "auto", "content": "---\nname: x\nversion: nothing\n---\n"}, 200,
			[]string{"AGENTS.md", "version: nothing"}},
		"no JSON": {map[string]string{"content": "{ oops"}, 200, []string{"error", "{ oops"}},
		"private host": {map[string]string{"url": "http://127.0.0.1/"}, 400,
			[]string{"cannot be read: blocked_host", "public hosts alone"}},
		"nothing":   {map[string]string{"content": " "}, 200, []string{"Nothing was checked yet."}},
		"too large": {map[string]string{"content": strings.Repeat("x", 300<<10)}, 400, []string{"256 KiB"}},
		"no kind":   {map[string]string{"kind": "luck", "content": "{}"}, 400, []string{"cannot be asked"}},
		"many lines": {map[string]string{"content": "{" + strings.Repeat("\n\"name\": 7,", 2000) + "\n\"a\":1}"}, 200,
			[]string{"Line by line"}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			r := postForm(t, s, "/ui/check", try.fields)
			text := textOf(t, r.body)
			for _, want := range try.says {
				if r.status != try.status || !strings.Contains(text, want) {
					t.Errorf("%d, no %q in %.2000s", r.status, want, text)
				}
			}
			if what != "too large" && what != "pasted" {
				checkPage(t, "/ui/check", r)
			}
			if strings.Contains(string(r.body), "<script>alert") {
				t.Error("foreign text is markup")
			}
		})
	}
	r := get(t, s, "/ui/check?url=https://agent.example/a&kind=registration")
	checkPage(t, "/ui/check", r)
	if text := textOf(t, r.body); !strings.Contains(text, "Nothing was checked yet.") {
		t.Errorf("a link reads a file: %s", text)
	}
	for _, query := range []string{`{ checkFile { kind } }`,
		`{ checkFile(content: "{}", url: "https://agent.example/a") { kind } }`} {
		if a := ask(t, s, query, nil); len(a.Errors) != 1 || a.Errors[0].Extensions["code"] != "INVALID" {
			t.Errorf("%s: %+v", query, a)
		}
	}
}

// TestPastedFilesKeepTheirHash: browsers send line ends of a pasted file as CR LF; the size and hash that are shown are
// those of the file.
func TestPastedFilesKeepTheirHash(t *testing.T) {
	t.Parallel()
	s := serve(t, api.Options{DB: open(t, nowhere)}, unlimited())
	file := "{\n  \"name\": \"a\\r\"\n}\n"
	r := postForm(t, s, "/ui/check", map[string]string{"content": strings.ReplaceAll(file, "\n", "\r\n")})
	sum := fmt.Sprintf("0x%x", sha256.Sum256([]byte(file)))
	if text := textOf(t, r.body); r.status != http.StatusOK || !strings.Contains(string(r.body), sum) ||
		!strings.Contains(text, fmt.Sprintf("%d bytes", len(file))) {
		t.Errorf("%d, no %s of %d bytes in %s", r.status, sum, len(file), text)
	}
}

// TestFormsThatCannotBeRead: a form that is cut or of another type is refused, and not taken for one without a file.
func TestFormsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	s := serve(t, api.Options{DB: open(t, nowhere)}, unlimited())
	for contentType, body := range map[string]string{
		"multipart/form-data; boundary=x":   "--x\r\nContent-Disposition: form-data; name=\"content\"\r\n\r\n{",
		"multipart/form-data":               "{}",
		"application/x-www-form-urlencoded": "content={}",
	} {
		r := do(t, s, http.MethodPost, "/ui/check", strings.NewReader(body), "Content-Type", contentType)
		if text := textOf(t, r.body); r.status != http.StatusBadRequest ||
			!strings.Contains(text, "form: cannot be read") {
			t.Errorf("%s: %d %s", contentType, r.status, text)
		}
	}
}

// TestChecksOfURLsAreLimited: a caller has only so many files read.
func TestChecksOfURLsAreLimited(t *testing.T) {
	t.Parallel()
	s := serve(t, api.Options{DB: open(t, nowhere), Files: library{"https://agent.example/a": "{}"}})
	refused := false
	for range 30 {
		a := ask(t, s, `{ checkFile(url: "https://agent.example/a") { kind } }`, nil)
		refused = refused || len(a.Errors) == 1 && a.Errors[0].Extensions["code"] == "LIMITED"
	}
	if !refused {
		t.Error("thirty files were read at once")
	}
}

// TestRuntimeOfAnAgent: the page asks the runtime of an agent at its own address where a form is posted, shows its
// words as text, and says what to do where nothing answers. A link asks nothing.
func TestRuntimeOfAnAgent(t *testing.T) {
	t.Parallel()
	db := open(t, pgtest.New(t))
	l := newLedger(t, db, 8453)
	saved := map[string]docdb.FetchResult{}
	for n, services := range [][]repute.Service{
		{{Name: "web", Endpoint: "https://agent.example/capability/x"}},
		{{Name: "web", Endpoint: "https://other.example/"}},
		{{Name: "web", Endpoint: "https://none.example/"}},
		{{Name: "web", Endpoint: "javascript:alert(1)"}},
		{{Name: "web", Endpoint: "https://none.example/"}, {Name: "twitter", Endpoint: "https://other.example/"},
			{Name: "api", Endpoint: "https://third.example/"}, {Name: "A2A", Endpoint: "https://slow.example/card"}},
		{{Name: "MCP", Endpoint: "https://halting.example/mcp"}},
		{{Name: "A2A", Endpoint: "https://elsewhere.example/card"}},
	} {
		uri := fmt.Sprintf("https://files.example/%d", n)
		l.add(mint(uint64(n), addr(1), uri)...)
		saved[uri] = file(&repute.Registration{Name: "a", Services: services}, uri)
	}
	receipts := func(n int) string {
		return fmt.Sprintf("/agents/eip155:8453:%s:%d/receipts?limit=20", l.chain.Identity.Hex(), n)
	}
	saveFiles(t, db, saved)
	s := serve(t, api.Options{DB: db, Files: library{
		"https://agent.example/health": `{"status":"healthy","agentId":"0","version":"1.2.3","uptime":61,"acceptingRequests":true,` +
			`"capabilities":["forecast","<script>alert(1)</script>\u202e"]}`,
		"https://agent.example" + receipts(0): `[{"receiptId":"1-1","timestamp":1750000000,"settlement":"x402",` +
			`"amount":"0.01","currency":"USDC","capability":"forecast"},{"receiptId":"1-2","settlement":"none"}]`,
		"https://other.example/health":            `{"status":"healthy","agentId":"7"}`,
		"https://slow.example/health":             tooLate,
		"https://third.example/health":            `{"status":"healthy","agentId":"4","version":"4.4"}`,
		"https://third.example" + receipts(4):     `[]`,
		"https://halting.example/health":          `{"status":"healthy","agentId":"5","version":"5.5"}`,
		"https://halting.example" + receipts(5):   broken,
		"https://elsewhere.example/health":        `{"status":"healthy","agentId":"6"}`, // of another chain
		"https://elsewhere.example" + receipts(6): notThere,
	}}, unlimited())
	for ask, try := range map[string]struct {
		status int
		says   []string
	}{
		"8453:0": {200, []string{"healthy , takes requests", "version 1.2.3", "forecast",
			"<script>alert(1)</script>⟨U+202E⟩", "0.01 USDC",
			"not shown", "Nothing checks them."}},
		"8453:1":  {404, []string{"answers at none of the endpoints", "ask the agent's owner"}},
		"8453:2":  {404, []string{"answers at none of the endpoints"}},
		"8453:3":  {404, []string{"answers at none of the endpoints"}},
		"8453:4":  {200, []string{"version 4.4", "It shows no paid work"}},
		"8453:5":  {200, []string{"version 5.5", "It shows no paid work"}},
		"8453:6":  {404, []string{"answers at none of the endpoints", "first two addresses"}},
		"8453:99": {404, []string{"is not indexed"}},
		"<b>":     {400, []string{"This cannot be asked"}},
	} {
		r := postForm(t, s, "/ui/runtime", map[string]string{"ask": ask})
		text := textOf(t, r.body)
		for _, want := range try.says {
			if r.status != try.status || !strings.Contains(text, want) {
				t.Errorf("%s: %d, no %q in %.1500s", ask, r.status, want, text)
			}
		}
		checkPage(t, "/ui/runtime", r)
	}
	if text := textOf(t, get(t, s, "/ui/runtime?ask=8453:0").body); strings.Contains(text, "takes requests") {
		t.Errorf("a link asks: %s", text)
	}
}
