package jsonrpc

import (
	"net/url"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// No text that an endpoint sends back shows a part of its URL that may be a key, in whatever form and company.
func TestRedactorHidesKeys(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.StringMatching(`[A-Za-z0-9_+ -]{4,24}`)
		path, query, password := key.Draw(t, "path"), key.Draw(t, "query"), key.Draw(t, "password")
		u := &url.URL{Scheme: "https", Host: "node.example", Path: "/v3/" + path, User: url.UserPassword("me", password)}
		if u.RawQuery = "apikey=" + url.QueryEscape(query); rapid.Bool().Draw(t, "bare") {
			u.RawQuery = url.QueryEscape(query)
		}
		hide := Redactor(u)
		before := rapid.StringMatching(`[a-z0-9 /]{0,12}`).Draw(t, "before")
		for _, secret := range []string{path, url.PathEscape(path), query, url.QueryEscape(query), password} {
			if shown := hide.Replace(before + secret + " " + u.String()); strings.Contains(shown, secret) {
				t.Fatalf("%q shows %q of %s", shown, secret, u)
			}
		}
		if got := hide.Replace("no key in /v3 "); strings.Contains(path+query+password, "v") {
			return // a part of the text may be a key itself
		} else if !strings.Contains(got, "v3") {
			t.Fatalf("%q: a short path segment is no key", got)
		}
	})
}
