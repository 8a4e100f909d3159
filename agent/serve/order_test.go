package serve_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/signer/core/apitypes"

	"repute/agent"
	"repute/agent/capability"
	"repute/orchestrator/wallet/keys"
	"repute/store/agentdb"
	"repute/x402"
)

// steps remembers in which order things happen.
type steps struct {
	mu   sync.Mutex
	list []string
}

func (s *steps) add(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, name)
}

// Decide implements agent.Governor.
func (s *steps) Decide(context.Context, agent.Question) agent.Decision {
	s.add("policy")
	return agent.Decision{Allow: true}
}

// Mode implements agent.Governor.
func (s *steps) Mode(*agent.Score, time.Time) (agent.Mode, string) { return agent.Normal, "" }

// stepFacilitator tells when it is asked.
type stepFacilitator struct {
	x402.Facilitator
	steps *steps
}

// Verify implements x402.Facilitator.
func (f stepFacilitator) Verify(ctx context.Context, p x402.Payment, r x402.Requirements) (x402.Verification, error) {
	f.steps.add("verify")
	return f.Facilitator.Verify(ctx, p, r)
}

// Settle implements x402.Facilitator.
func (f stepFacilitator) Settle(ctx context.Context, p x402.Payment, r x402.Requirements) (x402.Settlement, error) {
	f.steps.add("settle")
	return f.Facilitator.Settle(ctx, p, r)
}

// stepHandler tells when it runs.
type stepHandler struct {
	steps *steps
	out   string
}

// Run implements agent.Handler.
func (h stepHandler) Run(context.Context, capability.Call) (json.RawMessage, error) {
	h.steps.add("run")
	return json.RawMessage(h.out), nil
}

// stepSigner tells when it signs.
type stepSigner struct {
	keys.Local
	steps *steps
}

// SignTyped implements signed.Signer.
func (s stepSigner) SignTyped(ctx context.Context, d apitypes.TypedData) ([]byte, error) {
	s.steps.add("sign")
	return s.Local.SignTyped(ctx, d)
}

// TestSteps: input, policy, payment, work, output, signature, record, in this order; each that fails
// keeps the next from happening.
func TestSteps(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	db := database(t, w.url)
	local := localFacilitator(t, db, w.chain(t))
	for name, c := range map[string]struct {
		input, output string
		effects, paid bool
		status        int
		want          string
	}{
		"bad input":     {`{"txt":1}`, `{}`, false, true, 400, ""},
		"no payment":    {hello, `{}`, false, false, 402, "policy"},
		"bad output":    {hello, `[]`, false, true, 500, "policy verify run"},
		"settled after": {hello, `{}`, false, true, 200, "policy verify run settle sign"},
		"before":        {hello, `{}`, true, true, 200, "policy verify settle run sign"},
	} {
		s := &steps{}
		router, err := agent.NewRouter(db, agent.Options{Signer: stepSigner{signer(t), s}, Governor: s,
			Payments: agent.Payments{Facilitator: stepFacilitator{local, s}, Address: w.Payee()},
			Services: []*agent.Service{service(t, "echo", stepHandler{s, c.output}, w.price(),
				func(d *capability.Definition) {
					d.SideEffects = c.effects
				})}})
		ok(t, err)
		q := agent.Request{Capability: "echo", Input: []byte(c.input), Resource: "http://a.example/"}
		if c.paid {
			p := w.Pay(t, w.Requirements(10))
			q.Payment = &p
		}
		got := router.Do(t.Context(), q)
		if got.Status != c.status || strings.Join(s.list, " ") != c.want {
			t.Errorf("%s: %d, %v", name, got.Status, s.list)
		}
		entries, err := agentdb.Entries(t.Context(), db, agentdb.Query{Agent: router.ID().String(), Limit: 1})
		ok(t, err)
		if got.Status == http.StatusOK && (entries[0].Kind != agentdb.Execution ||
			len(entries[0].AgentSignature) == 0 ||
			entries[0].ResultHash != got.Signed.ResultHash) {
			t.Errorf("%s: the record is %+v", name, entries[0])
		}
	}
	kinds := map[agentdb.Kind]int{}
	all, err := agentdb.Entries(t.Context(), db, agentdb.Query{Agent: repAgent()})
	ok(t, err)
	for _, e := range all {
		kinds[e.Kind]++
	}
	if kinds[agentdb.Decision] != 4 || kinds[agentdb.Verification] != 5 || kinds[agentdb.Execution] != 3 {
		t.Errorf("stored: %v", kinds)
	}
	if _, err := db.Pool().Exec(t.Context(), `update agent_receipts set outcome = 'allow'`); err == nil {
		t.Error("the log can be changed")
	}
	if _, err := db.Pool().Exec(t.Context(), `delete from agent_receipts`); err == nil {
		t.Error("the log can be deleted")
	}
}

// repAgent is the id of an agent without one.
func repAgent() string {
	return "eip155:0:0x0000000000000000000000000000000000000000:0"
}

// TestDenied: what the policy refuses is refused before the payment, with the reason.
func TestDenied(t *testing.T) {
	t.Parallel()
	w, h := newWorld(t), &echo{}
	s := w.open(t, agent.Options{Governor: denying{}}, service(t, "echo", h, w.price(), nil))
	got := s.send(t, "echo", hello, header(t, w.Pay(t, w.Requirements(10))))
	if got.status != http.StatusForbidden || !strings.Contains(got.body, "reputation_too_low") || w.paid(t) != 0 ||
		h.count() != 0 {
		t.Errorf("%+v", got)
	}
	entries, err := agentdb.Entries(t.Context(), s.db,
		agentdb.Query{Agent: s.router.ID().String(), Kind: agentdb.Decision})
	ok(t, err)
	if !slices.ContainsFunc(entries, func(e agentdb.Entry) bool { return e.Outcome == "deny" }) {
		t.Errorf("%+v", entries)
	}
}

type denying struct{ agent.Open }

// Decide implements agent.Governor.
func (denying) Decide(context.Context, agent.Question) agent.Decision {
	return agent.Decision{Reasons: []string{"reputation_too_low: the client's score is below what the agent accepts"}}
}
