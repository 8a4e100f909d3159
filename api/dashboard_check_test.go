package api_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// page checks a page and returns the pages that it links to.
func (w world) page(t *testing.T, path string) []string {
	t.Helper()
	get(t, w.Server, path) // connections and types are known then
	w.read.since()
	r := get(t, w.Server, path)
	if list := w.read.since(); len(list) > maxStatements {
		t.Errorf("%s: %d statements:\n%.70s", path, len(list), list)
	}
	if r.status != http.StatusOK {
		t.Errorf("%s: status %d: %.600s", path, r.status, textOf(t, r.body))
		return nil
	}
	return checkPage(t, path, r)
}

// textOf is what a page says.
func textOf(t *testing.T, body []byte) string {
	t.Helper()
	root, err := html.Parse(strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for n := range root.Descendants() {
		if n.Type == html.TextNode {
			out.WriteString(strings.TrimSpace(n.Data) + " ")
		}
	}
	return strings.Join(strings.Fields(out.String()), " ")
}

// attr returns an attribute of an element, "" without it.
func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// checkPage checks what holds for every page, also of an error, and returns the pages that it links to.
func checkPage(t *testing.T, path string, r reply) (linked []string) {
	t.Helper()
	policy := r.header.Get("Content-Security-Policy")
	if ct := r.header.Get("Content-Type"); !strings.HasPrefix(ct, "text/html") || strings.Contains(policy, "unsafe") ||
		!strings.Contains(policy, "default-src 'none'; script-src 'self'; style-src 'self'") ||
		r.header.Get("X-Content-Type-Options") != "nosniff" || r.header.Get("Referrer-Policy") != "no-referrer" {
		t.Errorf("%s: %v", path, r.header)
	}
	root, err := html.Parse(strings.NewReader(string(r.body)))
	if err != nil {
		t.Fatal(err)
	}
	ids, labeled, titles := map[string]int{}, map[string]bool{}, 0
	var refers, controls []*html.Node
	for n := range root.Descendants() {
		if n.Type == html.TextNode {
			checkText(t, path, n.Data)
			continue
		}
		for _, a := range n.Attr {
			if n.Data != "input" && !strings.HasPrefix(a.Key,
				"data-") { // whose value is the state of the page, as it is
				checkText(t, path, a.Val)
			}
			switch {
			case a.Key == "id":
				ids[a.Val]++
			case a.Key == "style", strings.HasPrefix(a.Key, "on"), strings.HasPrefix(a.Key, "hx-on"):
				t.Errorf("%s: inline %s=%q", path, a.Key, a.Val)
			case a.Key == "href" && n.Data == "a":
				linked = append(linked, checkLink(t, path, n)...)
			case slices.Contains([]string{"href", "src", "action", "hx-get", "srcset", "data"}, a.Key) &&
				(!strings.HasPrefix(a.Val, "/") || strings.HasPrefix(a.Val, "//")):
				t.Errorf("%s: %s %s=%q", path, n.Data, a.Key, a.Val)
			case a.Key == "aria-labelledby", a.Key == "hx-target" && strings.HasPrefix(a.Val, "#"):
				refers = append(refers, n)
			}
		}
		switch n.Data {
		case "script":
			if n.FirstChild != nil {
				t.Errorf("%s: inline script %q", path, n.FirstChild.Data)
			}
		case "style", "iframe", "object", "embed", "base":
			t.Errorf("%s: has a %s", path, n.Data)
		case "label":
			labeled[attr(n, "for")] = true
		case "input", "select", "textarea":
			if attr(n, "type") != "hidden" {
				controls = append(controls, n)
			}
		case "h1":
			titles++
		case "th":
			if attr(n, "scope") == "" {
				t.Errorf("%s: a th without scope", path)
			}
		case "img":
			if attr(n, "alt") == "" {
				t.Errorf("%s: an image without text", path)
			}
		}
	}
	for id, n := range ids {
		if n > 1 {
			t.Errorf("%s: %d elements with the id %s", path, n, id)
		}
	}
	for _, n := range refers {
		if id := strings.TrimPrefix(attr(n, "aria-labelledby")+attr(n, "hx-target"), "#"); ids[id] == 0 {
			t.Errorf("%s: nothing has the id %q", path, id)
		}
	}
	for _, n := range controls {
		if !labeled[attr(n, "id")] && attr(n, "aria-label") == "" {
			t.Errorf("%s: %s %s has no label", path, n.Data, attr(n, "name"))
		}
	}
	if titles != 1 {
		t.Errorf("%s: %d h1", path, titles)
	}
	return linked
}

// checkText checks that nothing in a text is invisible or turns it around.
func checkText(t *testing.T, path, text string) {
	t.Helper()
	for _, r := range "\x00\u202A\u202B\u202D\u202E\u2066\u2067\u2068\u200B\u200E\u200F\uFEFF" {
		if strings.ContainsRune(text, r) {
			t.Errorf("%s: %U in %.80q", path, r, text)
		}
	}
	for word := range strings.FieldsSeq(text) {
		if len(word) > 9_000 {
			t.Errorf("%s: a word of %d bytes", path, len(word))
		}
	}
}

// checkLink checks that a link stays here or names its host, and returns it if it is one to another page.
func checkLink(t *testing.T, path string, n *html.Node) []string {
	t.Helper()
	to := attr(n, "href")
	u, err := url.Parse(to)
	if err != nil {
		t.Errorf("%s: link to %q: %v", path, to, err)
		return nil
	}
	if u.Host == "" && u.Scheme == "" {
		if to == "/" || strings.HasPrefix(to, "/ui/") {
			return []string{to}
		}
		return nil
	}
	text := ""
	for c := range n.Descendants() {
		if c.Type == html.TextNode {
			text += c.Data
		}
	}
	if attr(n, "class") != "out" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil ||
		!strings.Contains(text, "leave for "+u.Hostname()) || !strings.Contains(attr(n, "rel"), "noopener") {
		t.Errorf("%s: link to %q with the text %q", path, to, text)
	}
	return nil
}
