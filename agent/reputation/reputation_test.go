package reputation_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"
	"pgregory.net/rapid"

	"repute"
	"repute/agent"
	"repute/agent/reputation"
)

// routes are the answers of an index by path. A path that is not there is answered with 404.
type routes map[string]string

// newIndex serves routes as an index does, and remembers the queries by path.
func newIndex(t testing.TB, r routes) (base string, asked map[string]string) {
	t.Helper()
	asked = map[string]string{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		asked[q.URL.Path] = q.URL.RawQuery
		body, known := r[q.URL.Path]
		if !known {
			http.NotFound(w, q)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(s.Close)
	return s.URL, asked
}

// agentSeven is the agent that the client asks about.
func agentSeven() repute.AgentID {
	return repute.AgentID{ChainID: 8453, Registry: common.HexToAddress("0x8004"), TokenID: *uint256.NewInt(7)}
}

// newClient returns a client of an index.
func newClient(t testing.TB, base string) *reputation.Client {
	t.Helper()
	c, err := reputation.New(base, agentSeven())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestNewWantsURL: a base that is no URL of HTTP is refused, with the field and what to write.
func TestNewWantsURL(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"", "index", "localhost:8080", "ftp://index.example", "http://", "://x", "http:/x"} {
		_, err := reputation.New(base, agentSeven())
		if !errors.Is(err, repute.ErrInvalid) || !strings.Contains(err.Error(), "index") ||
			!strings.Contains(err.Error(), "http://127.0.0.1:8080") {
			t.Errorf("%q: %v", base, err)
		}
	}
}

// TestOwn: the agent is asked for by its token and chain, and its score is passed on with its bounds.
func TestOwn(t *testing.T) {
	t.Parallel()
	base, asked := newIndex(t, routes{
		"/agents/7/reputation": `{"score":-12.5,"low":-40,"high":3,"status":"rated","feedbackCount":4,"totalFeedback":6}`})
	got, err := newClient(t, base+"/").Own(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got.At.IsZero() {
		t.Error("the score has no time")
	}
	if got.At = (agent.Score{}).At; got != (agent.Score{Value: -12.5, Low: -40, High: 3, Status: "rated", Feedback: 6}) {
		t.Errorf("%+v", got)
	}
	if q := asked["/agents/7/reputation"]; q != "chainId=8453" {
		t.Errorf("asked with %q", q)
	}
}

// TestNoScoreIsNoZero: whatever an index answers that is no score is repute.ErrUnavailable. A policy would take a score
// of zero for an answer.
func TestNoScoreIsNoZero(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{"no JSON": "<html>", "empty": "", "no score": `{"status":"rated"}`,
		"null": `{"score":null}`, "text": `{"score":"12"}`, "above": `{"score":100.5}`, "below": `{"score":-101}`,
		"array": `[]`} {
		base, _ := newIndex(t, routes{"/agents/7/reputation": body})
		got, err := newClient(t, base).Own(t.Context())
		if !errors.Is(err, repute.ErrUnavailable) || got != (agent.Score{}) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	base, _ := newIndex(t, routes{})
	if _, err := newClient(t, base).Own(t.Context()); !errors.Is(err, repute.ErrUnavailable) {
		t.Errorf("an agent that the index does not know: %v", err)
	}
}

// TestOwnFollowsNoRedirect: a score counts only from the host that was configured.
func TestOwnFollowsNoRedirect(t *testing.T) {
	t.Parallel()
	other, asked := newIndex(t, routes{"/agents/7/reputation": `{"score":99}`})
	s := httptest.NewServer(http.RedirectHandler(other+"/agents/7/reputation", http.StatusFound))
	defer s.Close()
	if got, err := newClient(t, s.URL).Own(t.Context()); !errors.Is(err, repute.ErrUnavailable) {
		t.Errorf("%+v, %v", got, err)
	}
	if len(asked) != 0 {
		t.Errorf("the other host was asked: %v", asked)
	}
}

// wallet is the address of a client.
func wallet() common.Address {
	return common.HexToAddress("0xc11e47000000000000000000000000000000c0de")
}

// page is a page of agents with the ids 1 to n.
func page(n int, next string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = fmt.Sprintf(`{"id":"eip155:8453:0x8004:%d"}`, i+1)
	}
	return fmt.Sprintf(`{"items":[%s],"next":%s}`, strings.Join(items, ","), next)
}

// TestOfIsTheWorst: a client has the score with the lowest lower bound of all agents that it is the wallet of, in
// whatever order the index lists them.
func TestOfIsTheWorst(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		lows := rapid.SliceOfN(rapid.Float64Range(-100, 100), 1, 6).Draw(rt, "lows")
		r := routes{"/chains/8453/agents": page(len(lows), "null")}
		least := lows[0]
		for i, low := range lows {
			least = min(least, low)
			r[fmt.Sprintf("/agents/eip155:8453:0x8004:%d/reputation", i+1)] =
				fmt.Sprintf(`{"score":100,"low":%v,"status":"rated"}`, low)
		}
		base, asked := newIndex(t, r)
		got, err := newClient(t, base).Of(t.Context(), wallet())
		if err != nil || got.Low != least || got.Status != "rated" {
			rt.Fatalf("%v: %+v, %v", lows, got, err)
		}
		if q := asked["/chains/8453/agents"]; !strings.Contains(strings.ToLower(q), "wallet=0xc11e47") {
			rt.Fatalf("asked with %q", q)
		}
	})
}

// TestOfNobody: an address without an agent is unrated and no error, as most clients are nobody's wallet.
func TestOfNobody(t *testing.T) {
	t.Parallel()
	base, _ := newIndex(t, routes{"/chains/8453/agents": page(0, "null")})
	got, err := newClient(t, base).Of(t.Context(), wallet())
	if err != nil || got.Status != "unrated" || got.Value != 0 || got.At.IsZero() {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestOfTakesNoPartForAll: agents that are not all read, or one whose score is missing, leave the client without a
// score: the missing one could be the worst.
func TestOfTakesNoPartForAll(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]routes{
		"chain is not indexed": {},
		"too many agents":      {"/chains/8453/agents": page(60, `"more"`)},
		"pages without end":    {"/chains/8453/agents": page(1, `"more"`)},
		"one has no score": {"/chains/8453/agents": page(2, "null"),
			"/agents/eip155:8453:0x8004:1/reputation": `{"score":90}`},
	} {
		base, _ := newIndex(t, r)
		if got, err := newClient(t, base).Of(t.Context(), wallet()); !errors.Is(err, repute.ErrUnavailable) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}
