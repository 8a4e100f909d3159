package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"repute"
	"repute/internal/pgtest"
	"repute/store/docdb"
)

// neighborWorld has agents with endpoints on one domain, half of which were validated, and hostile names.
func neighborWorld(t *testing.T, agents int) world {
	t.Helper()
	dbURL := pgtest.New(t)
	db := open(t, dbURL)
	l := newLedger(t, db, 8453)
	files, names := map[string]docdb.FetchResult{}, hostileNames()
	list := []string{names["script"], names["rtl"], names["long"]}
	for n := range agents {
		uri := fmt.Sprintf("https://files.example/%d.json", n)
		l.add(mint(uint64(n), addr(n%3), uri)...)
		host := map[bool]string{true: "shop.example", false: "api.shop.example"}[n%2 == 0]
		f := file(&repute.Registration{Name: list[n%len(list)],
			Services: []repute.Service{{Name: "web", Endpoint: "https://" + host}}}, uri)
		f.Domains = []docdb.Domain{{Name: host, Proof: "https://" + host + "/.well-known/agent-registration.json"}}
		files[uri] = f
		for client := range n % 14 {
			l.add(ratingOf(uint64(n), 100+client, 1, int64(client), 0, "quality", ""))
		}
		l.add(repute.ValidationRequest{Validator: addr(50), TokenID: token(uint64(n)), URI: "ipfs://work",
			RequestHash: [32]byte{1, byte(n)}})
		if n%2 == 0 {
			l.add(repute.ValidationResponse{Validator: addr(50), TokenID: token(uint64(n)),
				RequestHash: [32]byte{1, byte(n)}, Response: 80, Tag: "tee"})
		}
	}
	l.verified()
	saveFiles(t, db, files)
	return newWorld(t, dbURL)
}

// rowsOf returns the texts of the rows of the tables of a page.
func rowsOf(t *testing.T, body []byte) (rows []string) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	for n := range root.Descendants() {
		if n.Data != "tr" || n.Parent.Data != "tbody" {
			continue
		}
		var text []string
		for d := range n.Descendants() {
			if d.Type == html.TextNode {
				text = append(text, strings.TrimSpace(d.Data))
			}
		}
		rows = append(rows, strings.Join(strings.Fields(strings.Join(text, " ")), " "))
	}
	return rows
}

// TestNeighborhoodPages: the graphs of a validator and of a domain have the agents with their owners and raters as rows
// of a table, say what is left out, and cost as many statements for many agents as for few.
func TestNeighborhoodPages(t *testing.T) {
	t.Parallel()
	paths := map[string]string{"validator": "/ui/validator/" + addr(50).Hex() + "/graph",
		"domain":     "/ui/domain/shop.example/graph",
		"host below": "/ui/domain/API.shop.example./graph"}
	statements := map[string]int{}
	few, many := neighborWorld(t, 4), neighborWorld(t, 45)
	for what, path := range paths {
		for _, w := range []world{few, many} {
			w.page(t, path) // checks what holds for every page, and the number of statements
			w.read.since()
			r := get(t, w.Server, path)
			n := len(w.read.since())
			text, rows := textOf(t, r.body), rowsOf(t, r.body)
			if statements[what] == 0 {
				statements[what] = n
			} else if n != statements[what] {
				t.Errorf("%s: %d statements for few agents, %d for many", what, statements[what], n)
			}
			has := func(word string) (n int) {
				for _, row := range rows {
					if strings.Contains(row, " "+word+" ") {
						n++
					}
				}
				return n
			}
			agents := map[bool]int{true: 4, false: 30}[w == few]
			if what == "host below" {
				agents = map[bool]int{true: 2, false: 22}[w == few]
			}
			self := has("serves") + has("validated") + has("was asked about")
			if self != agents || has("owns") != agents || has("rated") == 0 {
				t.Errorf("%s: %d agents, %d owned, %d ratings: %q", what, self, has("owns"), has("rated"), rows)
			}
			more := map[string]string{"validator": "only its 30 newest requests are followed",
				"domain": "only 30 agents are shown"}[what]
			if shown := more != "" && strings.Contains(text, more); shown != (w == many && what != "host below") {
				t.Errorf("%s: says that there are more: %t", what, shown)
			}
			if strings.Contains(text, "more ratings: of each agent the 10 newest") != (w == many) {
				t.Errorf("%s: %s", what, text)
			}
			if strings.Contains(string(r.body), "<script>alert") || !strings.Contains(string(r.body), `data-graph="{`) {
				t.Errorf("%s: foreign text is markup, or nothing is drawn", what)
			}
		}
	}
	text := textOf(t, get(t, few.Server, paths["validator"]).body)
	for _, want := range []string{"80 of 100", "tee", "was asked about"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	if text := textOf(t, get(t, few.Server, paths["domain"]).body); !strings.Contains(text, "not confirmed") ||
		strings.Contains(text, "Back to the domain") {
		t.Errorf("a domain that no manifest is known of: %s", text)
	}
	for path, want := range map[string]string{"/ui/validator/" + addr(99).Hex() +
		"/graph": "Nobody has asked this address",
		"/ui/domain/none.example/graph": "No agent has an endpoint on this domain"} {
		if r := get(t, few.Server, path); r.status != http.StatusOK || !strings.Contains(textOf(t, r.body), want) {
			t.Errorf("%s: %d %s", path, r.status, textOf(t, r.body))
		}
	}
}

// TestGraphOfAKnownDomain leads back to what is known of the domain, and says which agents it confirms.
func TestGraphOfAKnownDomain(t *testing.T) {
	t.Parallel()
	w := soldWorld(t)
	body := get(t, w.Server, "/ui/domain/cheap.example/graph").body
	if text := textOf(t, body); !strings.Contains(text, "Back to the domain") ||
		!strings.Contains(string(body), `href="/ui/domain/cheap.example"`) {
		t.Error(text)
	}
	if r := get(t, w.Server, "/ui/domain/cheap/graph"); strings.Contains(textOf(t, r.body), "Back to the domain") {
		t.Error("the beginning of a name is taken for the domain")
	}
}
