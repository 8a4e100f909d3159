package agents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"

	"repute"
	"repute/agent"
	"repute/agent/capability"
	"repute/agent/governance"
	"repute/agent/reputation"
	"repute/internal/pgtest"
	"repute/store"
	"repute/store/agentdb"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
}

// scores is an index in which one client's agent has a score.
type scores struct {
	value atomic.Int64
	gone  atomic.Bool
	asked atomic.Int64
}

// client is the wallet of agent 5.
func client() common.Address { return common.Address{5} }

// ServeHTTP implements http.Handler.
func (s *scores) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.asked.Add(1)
	switch {
	case s.gone.Load():
		http.Error(w, "gone", http.StatusBadGateway)
	case strings.HasSuffix(r.URL.Path, "/reputation"):
		fmt.Fprintf(w, `{"score":%d,"status":"rated"}`, s.value.Load())
	case r.URL.Query().Get("wallet") == client().Hex():
		_, _ = io.WriteString(w, `{"items":[{"id":"1:5"}]}`)
	default:
		_, _ = io.WriteString(w, `{"items":[]}`)
	}
}

func newGovernor(t *testing.T, rules string) (*governor, *scores) {
	t.Helper()
	db, err := store.Open(context.WithoutCancel(t.Context()), pgtest.New(t), store.Options{})
	must(t, err)
	t.Cleanup(db.Close)
	must(t, agentdb.Maintain(t.Context(), db, agentdb.MinRetention))
	file := filepath.Join(t.TempDir(), "policy.json")
	must(t, os.WriteFile(file, []byte(`{"version":"1.0","agentId":42,"rules":`+rules+`}`), 0o600))
	loader, err := governance.NewLoader(governance.LoaderOptions{Source: governance.FileSource(file), AgentID: "42",
		AllowUnsigned: true})
	must(t, err)
	_, err = loader.Load(t.Context())
	must(t, err)
	s := &scores{}
	index := httptest.NewServer(s)
	t.Cleanup(index.Close)
	id := repute.AgentID{ChainID: 1, TokenID: *uint256.NewInt(42)}
	asked, err := reputation.New(index.URL, id)
	must(t, err)
	return &governor{loader: loader, db: db, id: id, scores: asked, log: slog.New(slog.DiscardHandler)}, s
}

func question(t *testing.T, price *agent.Price, who common.Address) agent.Question {
	t.Helper()
	c, err := capability.New(capability.Definition{Name: "echo", Version: "1.0.0", InputSchema: json.RawMessage(`{}`),
		OutputSchema: json.RawMessage(`{}`)})
	must(t, err)
	return agent.Question{Service: &agent.Service{Capability: c, Price: price}, Client: who, Caller: who.Hex(),
		Time: time.Now()}
}

// TestClients: a client is admitted by the lower bound of its score; nobody is admitted because the
// index does not answer, and a score that was read counts on.
func TestClients(t *testing.T) {
	t.Parallel()
	g, s := newGovernor(t, `{"reputation":{"minClientReputation":10,"rejectBelowScore":-10}}`)
	s.value.Store(50)
	for name, c := range map[string]struct {
		who  common.Address
		want bool
	}{"trusted": {client(), true}, "unrated": {common.Address{6}, false}, "nobody": {common.Address{}, false}} {
		if d := g.Decide(t.Context(), question(t, nil, c.who)); d.Allow != c.want {
			t.Errorf("%s: %+v", name, d)
		}
	}
	s.gone.Store(true)
	if d := g.Decide(t.Context(), question(t, nil, client())); !d.Allow {
		t.Errorf("a known client: %+v", d)
	}
	if d := g.Decide(t.Context(), question(t, nil, common.Address{7})); d.Allow || d.Unavailable ||
		!strings.Contains(strings.Join(d.Reasons, " "), "reputation_too_low") {
		t.Errorf("an unknown client: %+v", d)
	}
}

// TestUnknownClients: while the index does not answer, a client that the policy might refuse is refused
// for now; the policy can choose otherwise. A score that was read counts for an hour.
func TestUnknownClients(t *testing.T) {
	t.Parallel()
	for rules, allowed := range map[string]bool{
		`"reputation":{"rejectBelowScore":-10}`:                                                     false,
		`"reputation":{"minClientReputation":-50,"unknownClients":"refuse"}`:                        false,
		`"custom":[{"id":"a","when":"client.score < -10.0","effect":"deny","reason":"r"}]`:          false,
		`"reputation":{"rejectBelowScore":-10,"unknownClients":"allow"}`:                            true,
		`"payment":{"freeTierRateLimit":3}`:                                                         true,
		`"custom":[{"id":"a","when":"request.capability == 'other'","effect":"deny","reason":"r"}]`: true,
	} {
		g, s := newGovernor(t, `{`+rules+`}`)
		s.value.Store(-80)
		ask := func(who common.Address) agent.Decision { return g.Decide(t.Context(), question(t, nil, who)) }
		s.gone.Store(true)
		if d := ask(client()); d.Allow != allowed || d.Unavailable == allowed || !allowed && d.Retry <= 0 {
			t.Errorf("%s: a client that was never looked up: %+v", rules, d)
		}
		if d := ask(common.Address{}); !d.Allow {
			t.Errorf("%s: a client without an account: %+v", rules, d)
		}
		asked := s.asked.Load()
		if d := ask(common.Address{8}); d.Allow != allowed || s.asked.Load() != asked {
			t.Errorf("%s: an index that does not answer is asked for each client: %+v", rules, d)
		}
		s.gone.Store(false)
		g.silent = time.Time{}
		if d := ask(common.Address{9}); !d.Allow {
			t.Errorf("%s: an unrated client: %+v", rules, d)
		}
		s.gone.Store(true)
		if d := ask(common.Address{9}); !d.Allow {
			t.Errorf("%s: a client that was looked up: %+v", rules, d)
		}
		g.silent = time.Time{}
		if known, has := g.known[common.Address{9}]; has {
			known.At = known.At.Add(-2 * time.Hour)
			g.known[common.Address{9}] = known
		}
		if d := ask(common.Address{9}); d.Allow != allowed {
			t.Errorf("%s: a client that was looked up two hours ago: %+v", rules, d)
		}
		g.scores = nil
		if d := ask(client()); d.Allow != allowed {
			t.Errorf("%s: without an index: %+v", rules, d)
		}
	}
}

// TestPoliciesAreRemembered: an older policy is refused by the next process too.
func TestPoliciesAreRemembered(t *testing.T) {
	t.Parallel()
	g, _ := newGovernor(t, `{}`)
	p := policies{g.db, g.id.String()}
	if last, err := p.LastPolicy(t.Context()); err != nil || last != (governance.Issue{}) {
		t.Errorf("%+v %v", last, err)
	}
	first, second := time.Now().Add(-time.Hour).UTC().Truncate(time.Microsecond), time.Now().UTC().Truncate(time.Microsecond)
	for i, want := range []governance.Issue{{Hash: common.Hash{1}}, {At: second, Hash: common.Hash{2}}} {
		must(t, p.AddPolicy(t.Context(), want))
		last, err := p.LastPolicy(t.Context())
		if err != nil || last.Hash != want.Hash || !last.At.Equal(want.At) || time.Since(last.Stored) > time.Minute {
			t.Errorf("%d: %+v %v", i, last, err)
		}
	}
	must(t, p.AddPolicy(t.Context(), governance.Issue{At: first, Hash: common.Hash{3}}))
	if last, err := p.LastPolicy(t.Context()); err != nil || !last.At.Equal(second) {
		t.Errorf("two processes that race: %+v %v", last, err)
	}
}

// TestPaymentForAll: what has no price cannot be paid for, and is refused.
func TestPaymentForAll(t *testing.T) {
	t.Parallel()
	g, _ := newGovernor(t, `{"payment":{"requirePaymentForAll":true}}`)
	if d := g.Decide(t.Context(), question(t, nil, client())); d.Allow {
		t.Errorf("%+v", d)
	}
	if d := g.Decide(t.Context(), question(t, &agent.Price{Amount: "1", Currency: "USDC"}, client())); !d.Allow {
		t.Errorf("%+v", d)
	}
}

// TestFree: the free tier is counted for each client.
func TestFree(t *testing.T) {
	t.Parallel()
	g, _ := newGovernor(t, `{"payment":{"freeTierRateLimit":2}}`)
	for i, want := range []bool{true, true, false} {
		d := g.Decide(t.Context(), question(t, nil, client()))
		if d.Allow != want || !want && (!d.Limited || d.Retry <= 0) {
			t.Errorf("%d: %+v", i, d)
		}
	}
	if d := g.Decide(t.Context(), question(t, nil, common.Address{6})); !d.Allow {
		t.Errorf("another client: %+v", d)
	}
	if d := g.Decide(t.Context(), question(t, &agent.Price{Amount: "1", Currency: "USDC"}, client())); !d.Allow {
		t.Errorf("a paid request: %+v", d)
	}
}

// TestOwnScore: degraded and shut down by the own score; a score that is old changes nothing; a
// shutdown lasts in the next process until the operator ends it.
func TestOwnScore(t *testing.T) {
	t.Parallel()
	rules := `{"reputation":{"degradeServiceBelowScore":50},"shutdown":{"autoShutdownOnLowReputation":true,"shutdownThreshold":-50}}`
	g, _ := newGovernor(t, rules)
	now := time.Now()
	score := func(v float64, age time.Duration) *agent.Score {
		return &agent.Score{Value: v, Low: v, High: v, Status: "rated", At: now.Add(-age)}
	}
	for i, c := range []struct {
		own  *agent.Score
		want agent.Mode
	}{{nil, agent.Degraded}, {score(80, 0), agent.Normal}, {score(80, 2*time.Hour), agent.Normal},
		{score(20, 0), agent.Degraded},
		{score(80, 2*time.Hour), agent.Degraded}, {score(-60, 0), agent.Shutdown}, {score(80, 0), agent.Shutdown}} {
		if mode, reason := g.Mode(c.own, now); mode != c.want || mode != agent.Normal && reason == "" {
			t.Errorf("%d: %s, %s", i, mode, reason)
		}
	}
	must(t, agentdb.Add(t.Context(), g.db, agentdb.Entry{Kind: agentdb.Event, Agent: g.id.String(),
		Outcome: "mode shutdown"}))
	next := &governor{loader: g.loader, db: g.db, id: g.id, log: g.log}
	must(t, next.recall(t.Context()))
	if mode, _ := next.Mode(score(80, 0), now); mode != agent.Shutdown {
		t.Errorf("after a restart: %s", mode)
	}
	resumed := &governor{loader: g.loader, db: g.db, id: g.id, log: g.log}
	if mode, _ := resumed.Mode(score(80, 0), now); mode != agent.Normal {
		t.Errorf("resumed: %s", mode)
	}
}

// TestFreeKeys: a client that signs each request with a new key has the free requests of its network
// address; one that is rated has its own.
func TestFreeKeys(t *testing.T) {
	t.Parallel()
	g, s := newGovernor(t, `{"payment":{"freeTierRateLimit":2}}`)
	s.value.Store(50)
	for i, c := range []struct {
		who  common.Address
		want bool
	}{{common.Address{7}, true}, {common.Address{8}, true}, {common.Address{9}, false}, {client(), true}} {
		q := question(t, nil, c.who)
		q.Caller = "192.0.2.1"
		if d := g.Decide(t.Context(), q); d.Allow != c.want {
			t.Errorf("%d: %+v", i, d)
		}
	}
}

// TestValidators: an answer counts where the lower bound of the validator's score reaches what the policy
// asks for, and is judged later while the index does not answer.
func TestValidators(t *testing.T) {
	t.Parallel()
	g, s := newGovernor(t, `{"validation":{"validatorMinReputation":80}}`)
	for score, want := range map[int64]bool{90: true, 80: true, 70: false} {
		s.value.Store(score)
		counts, reason, err := g.Validator(t.Context(), client())
		if err != nil || counts != want || want == (reason != "") {
			t.Errorf("%d: %t %s %v", score, counts, reason, err)
		}
	}
	if counts, _, err := g.Validator(t.Context(), common.Address{9}); err != nil || counts {
		t.Errorf("an unrated validator: %t %v", counts, err)
	}
	s.gone.Store(true)
	if counts, _, err := g.Validator(t.Context(), client()); counts || !errors.Is(err, repute.ErrUnavailable) {
		t.Errorf("%t %v", counts, err)
	}
	free, _ := newGovernor(t, `{}`)
	if counts, _, err := free.Validator(t.Context(), common.Address{9}); err != nil || !counts {
		t.Errorf("a policy that asks for nothing: %t %v", counts, err)
	}
}
