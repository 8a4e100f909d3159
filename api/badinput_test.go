package api_test

import (
	"encoding/base64"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"repute/api"
	"repute/api/wire"
	"repute/internal/pgtest"
)

// TestBadInput: every mistake is answered with the name of the parameter and a
// way out, never with a 500 and never by ignoring it.
func TestBadInput(t *testing.T) {
	t.Parallel()
	s, _ := populated(t, api.Options{})
	next := as[wire.AgentList](t, get(t, s, "/agents?limit=1")).Next
	feedbackNext := as[wire.FeedbackList](t, get(t, s, "/agents/8453:7/feedback?limit=1")).Next
	cases := []struct{ path, field string }{
		{"/agents/x", "id"},
		{"/agents/8453:7:1", "id"},
		{"/agents/-1", "id"},
		{"/agents/8453:%00", "id"},
		{"/agents/8453:%3Cscript%3E", "id"},
		{"/agents/eip155:8453:0x12:7", "registry"},
		{"/agents/0:7", "chainId"},
		{"/agents/8453:7?chainId=1", "chainId"},
		{"/agents/7?chainId=x", "chainId"},
		{"/agents/x/7", "chainId"},
		{"/agents/8453/0x7", "id"},
		{"/agents/8453/7?chainId=8453", "chainId"},
		{"/chains/8453/agents?chainId=1", "chainId"},
		{"/chains/x/agents/7", "chainId"},
		{"/chains/8453/agents/1:7", "chainId"},
		{"/chains/x/agents", "chainId"},
		{"/chains/0", "chainId"},
		{"/chains/x/status", "chainId"},
		{"/agents/8453:7?at=yesterday", "at"},
		{"/agents/8453:7?at=-1", "at"},
		{"/agents/8453:7?at=99999999", "at"},
		{"/agents/8453:7?at=0", "at"},
		{"/agents/8453:7?at=finalized", "at"},
		{"/agents/8453:7/reputation?at=99999999", "at"},
		{"/agents/8453:7/reputation?clients=0x12", "clients"},
		{"/agents/8453:7/reputation?clients=,", "clients"},
		{"/agents/8453:7/reputation?client=" + addr(1).Hex(), "client"},
		{"/agents/8453:7/reputation?tag1=a&tag1=b", "tag1"},
		{"/agents/8453:7/feedback?client=me", "client"},
		{"/agents/8453:7/feedback?includeRevoked=2", "includeRevoked"},
		{"/agents/8453:7/feedback?limit=0", "limit"},
		{"/agents/8453:7/feedback?limit=201", "limit"},
		{"/agents/8453:7/feedback?limit=ten", "limit"},
		{"/agents/8453:7/feedback?cursor=x", "cursor"},
		{"/agents/8453:7/feedback?cursor=e30", "cursor"},
		{"/agents/8453:7/feedback?cursor=" + *next, "cursor"},
		{"/agents/8453:8/feedback?limit=1&cursor=" + *feedbackNext, "cursor"},
		{"/agents/8453:7/feedback?tag1=a&cursor=" + *feedbackNext, "cursor"},
		{"/agents/8453:7/validations?trustedOnly=maybe", "trustedOnly"},
		{"/agents/8453:7/validations?cursor=" + *feedbackNext, "cursor"},
		{"/agents?at=5", "at"},
		{"/agents?at=latest", "at"},
		{"/chains?at=5", "at"},
		{"/agents?owner=vitalik.eth", "owner"},
		{"/agents?owner=0x8004a169FB4a3325136EB29fA0ceB6D2e539a432", "owner"},
		{"/agents?wallet=0x", "wallet"},
		{"/agents?chainId=0", "chainId"},
		{"/agents?chainId=1,,2", "chainId"},
		{"/agents?sort=rank", "sort"},
		{"/agents?minScore=100.1", "minScore"},
		{"/agents?minScore=NaN", "minScore"},
		{"/agents?minScore=high", "minScore"},
		{"/agents?tier=5", "tier"},
		{"/agents?tier=-1", "tier"},
		{"/agents?rating=good", "rating"},
		{"/agents?q=word&minScore=101", "minScore"},
		{"/agents?q=word&maxScore=x", "maxScore"},
		{"/agents?order=up", "order"},
		{"/agents?limit=-1", "limit"},
		{"/agents?cursor=%25", "cursor"},
		{"/agents?sort=feedback&cursor=" + *next, "cursor"},
		{"/agents?q=a", "q"},
		{"/agents?q=", "q"},
		{"/agents?q=a+b+c+d", "q"},
		{"/agents?q=%25%25%25%25", "q"},
		{"/agents?q=abc%00", "q"},
		{"/agents?q=abc%1b", "q"},
		{"/agents?q=%ff%fe%fd", "q"},
		{"/agents?q=" + strings.Repeat("word+", 3200), "q"},
		{"/agents?q=" + strings.Repeat("w", 16<<10), "q"},
		{"/agents?service=", "service"},
		{"/agents?service=" + strings.Repeat("w", 101), "service"},
		{"/agents?skill=a%00", "skill"},
		{"/agents?supportedTrust=" + strings.Repeat("w", 101), "supportedTrust"},
		{"/agents?status=fine", "status"},
		{"/agents?service=mcp,", "service"},
		{"/agents?service=mcp&service=a2a", "service"},
		{"/agents?x402=yes", "x402"},
		{"/agents?active=no", "active"},
		{"/agents?minFeedback=-1", "minFeedback"},
		{"/agents?minFeedback=9223372036854775808", "minFeedback"},
		{"/agents?q=word&sort=name", "sort"},
		{"/agents?q=word&order=up", "order"},
		{"/agents?registeredSince=yesterday", "registeredSince"},
		{"/agents?fold=maybe", "fold"},
		{"/agents?q=word&owner=vitalik.eth", "owner"},
		{"/agents?q=word&cursor=" + *next, "cursor"},
		{"/agents?q=word&limit=0", "limit"},
		{"/agents/facets?q=a", "q"},
		{"/agents/facets?limit=5", "limit"},
		{"/chains/8453/agents/facets?status=fine", "status"},
		{"/agents?ower=" + addr(1).Hex(), "ower"},
		{"/agents?limit=1&limit=2", "limit"},
		{"/agents?a=%zz", "query"},
		{"/status?verbose=1", "verbose"},
		{"/agents?minScore=&sort=score", "minScore"},
		{"/agents?tier", "tier"},
		{"/agents?rating=", "rating"},
		{"/agents?owner=", "owner"},
		{"/agents?wallet=", "wallet"},
		{"/agents?chainId=", "chainId"},
		{"/agents?cursor=", "cursor"},
		{"/agents?limit=", "limit"},
		{"/agents?sort=", "sort"},
		{"/agents?order=", "order"},
		{"/agents/8453:7?at=", "at"},
		{"/agents/7?chainId=", "chainId"},
		{"/agents/8453:7/reputation?clients=", "clients"},
		{"/agents/8453:7/reputation?tag1=", "tag1"},
		{"/agents/8453:7/reputation?roots=", "roots"},
		{"/agents/8453:7/reputation?signed=", "signed"},
		{"/agents/8453:7/reputation?openfi", "openfi"},
		{"/agents/8453:7/reputation/explain?without=", "without"},
		{"/agents/8453:7/feedback?client=", "client"},
		{"/agents/8453:7/feedback?includeRevoked=", "includeRevoked"},
	}
	for _, c := range cases {
		b := problemOf(t, get(t, s, c.path))
		if b.Status != http.StatusBadRequest || b.Code != "invalid" {
			t.Errorf("%s: %d %s: %s", c.path, b.Status, b.Code, b.Detail)
			continue
		}
		if len(b.Errors) != 1 || b.Errors[0].Field != c.field || b.Hint == "" {
			t.Errorf("%s: want field %q, got %+v", c.path, c.field, b)
		}
		if strings.Contains(c.path, "1&limit=2") && strings.Contains(b.Hint, "commas") {
			t.Errorf("%s: limit takes no list: %s", c.path, b.Hint)
		}
		if b.RequestID == "" {
			t.Errorf("%s: no request id", c.path)
		}
	}
}

func TestNotFound(t *testing.T) {
	t.Parallel()
	s, _ := populated(t, api.Options{})
	for _, path := range []string{
		"/agents/8453:60", "/agents/5:1", "/agents/5/1", "/chains/5/agents/1", "/agents/1:7/reputation",
		"/agents/1:7/feedback",
		"/agents/1:7/validations", "/agents/eip155:8453:0x0000000000000000000000000000000000000001:7",
		"/agents/5:1/reputation?at=safe",
	} {
		b := problemOf(t, get(t, s, path))
		if b.Status != http.StatusNotFound || b.Code != "not_found" || !strings.Contains(b.Hint, "eip155:{chainId}") &&
			!strings.Contains(b.Hint, "GET /agents and the tool repute_search_agents list") {
			t.Errorf("%s: %+v", path, b)
		}
	}
	for _, path := range []string{"/nope", "/agents/nope/nope/", "/assets/nope.js", "/assets/../web.go",
		"/chains/5", "/chains/5/status"} {
		if b := problemOf(t, get(t, s, path)); b.Status != http.StatusNotFound {
			t.Errorf("%s: %+v", path, b)
		}
	}
	if b := problemOf(t, do(t, s, http.MethodDelete, "/agents/8453:7", nil)); b.Status != http.StatusMethodNotAllowed {
		t.Errorf("%+v", b)
	}
}

// FuzzCursor: a cursor somebody made up, or mended after decoding it, is refused
// or read as a place in the list; it never breaks the server.
func FuzzCursor(f *testing.F) {
	db := open(f, pgtest.New(f))
	populate(f, db)
	s := serve(f, api.Options{DB: db}, unlimited())
	lists := []string{"/agents?limit=1", "/agents?limit=1&minFeedback=0", "/agents?limit=1&status=pending",
		"/agents/8453:7/feedback?limit=1", "/agents/8453:7/validations?limit=1", "/agents/8453:7/history?limit=1",
		"/clients/" + addr(200).Hex() + "?limit=1", "/validators?limit=1", "/validators/" + addr(50).Hex() + "?limit=1",
		"/tags?limit=1", "/leaderboard?by=reviewers&limit=1", "/leaderboard?by=growth&limit=1"}
	for _, list := range lists {
		next := *as[struct{ Next *string }](f, get(f, s, list)).Next
		inside, err := base64.RawURLEncoding.DecodeString(next)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(inside))
		f.Add(next)
		for _, number := range []string{"-1", "1e3", "9223372036854775808", "null", "{}", `"x"`} {
			f.Add(regexp.MustCompile(`\b\d+\b`).ReplaceAllString(string(inside), number))
		}
	}
	f.Add("")
	f.Add("{}")
	f.Fuzz(func(t *testing.T, text string) {
		for _, cursor := range []string{text, base64.RawURLEncoding.EncodeToString([]byte(text))} {
			for _, list := range lists {
				r := get(t, s, list+"&"+query("cursor", cursor)[1:])
				if r.status != http.StatusOK && r.status != http.StatusBadRequest {
					t.Fatalf("%s with %q: %d %s", list, cursor, r.status, r.body)
				}
			}
		}
	})
}
