package remote

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"repute"
	"repute/orchestrator"
	"repute/orchestrator/outbound"
	"repute/orchestrator/standard"
)

// Bounds of the protocol.
const (
	maxAnswer   = 1 << 20
	maxRounds   = 32      // of calls in one method
	maxCalls    = 16      // in one answer
	maxOutcomes = 8 << 20 // bytes of a method's outcomes: each round sends them again
	infoTimeout = 10 * time.Second
)

// Options tune modules.
type Options struct {
	// Client guards what may be reached. Its redirects are not followed: an agent is what
	// answers at the address that was registered.
	Client *http.Client
	// Timeout of one answer, 60 s when 0; the budget's time counts too.
	Timeout time.Duration
}

// newModule returns a module at a base URL, with a client that follows no redirect.
func newModule(base string, o Options) *module {
	o.Client, o.Timeout = outbound.Direct(o.Client), cmp.Or(o.Timeout, time.Minute)
	return &module{o: o, url: strings.TrimSuffix(base, "/")}
}

// module is an agent elsewhere.
type module struct {
	o    Options
	url  string
	info standard.Info
}

// simulating is a module that has a dry run.
type simulating struct{ *module }

// Open asks an agent who it is. repute.ErrInvalid: it does not speak the protocol, or
// cannot be installed; repute.ErrUnavailable: it does not answer.
func Open(ctx context.Context, base string, o Options) (orchestrator.Module, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || u.RawQuery != "" {
		return nil, repute.Invalid("url", fmt.Sprintf("%.200q is no address of an agent", base),
			"http(s)://host/path without query and password")
	}
	m := newModule(u.String(), o)
	ctx, cancel := context.WithTimeout(ctx, infoTimeout)
	defer cancel()
	var info Info
	if err := m.exchange(ctx, http.MethodGet, methodInfo, nil, &info); err != nil {
		return nil, err
	}
	if info.Protocol != Protocol {
		return nil, repute.Invalid("protocol", fmt.Sprintf("%.40q is not known", info.Protocol), Protocol)
	}
	m.info = standard.Info{Slug: info.Slug, DisplayName: info.DisplayName, Version: info.Version,
		IdentityMode: info.IdentityMode, Manifest: info.Manifest}
	return m.withDryRun(info.DryRun)
}

// Stored makes a module of an agent as it was registered, without asking it.
func Stored(known repute.Module, o Options) (orchestrator.Module, error) {
	m := newModule(known.URL, o)
	if err := json.Unmarshal(known.Manifest, &m.info.Manifest); err != nil {
		return nil, fmt.Errorf("stored manifest of agent %s: %w", known.Slug, err)
	}
	m.info.Slug, m.info.DisplayName, m.info.Version, m.info.IdentityMode = known.Slug, m.info.Manifest.Name,
		m.info.Manifest.Version, standard.IdentityMode
	return m.withDryRun(known.DryRun)
}

// withDryRun returns the module as one that simulates, where the server says that it can.
// repute.ErrInvalid: what the server says of itself does not fit.
func (m *module) withDryRun(has bool) (orchestrator.Module, error) {
	if err := standard.CheckInfo(m.info, has); err != nil {
		return nil, err
	}
	if has {
		return simulating{m}, nil
	}
	return m, nil
}

// Info implements orchestrator.Module.
func (m *module) Info() standard.Info { return m.info }

// takes is what an agent says of a task.
type takes struct {
	can    bool
	reason string
}

// CanHandle implements orchestrator.Module. The reason of an agent that does not take the
// task is the error.
func (m *module) CanHandle(ctx context.Context, t standard.Task) (bool, error) {
	var said takes
	if err := m.ask(ctx, methodCanHandle, Question{Task: t}, nil, &said); err != nil {
		return false, err
	}
	if !said.can && said.reason != "" {
		return false, fmt.Errorf("agent %q cannot handle the task: %.2000s", m.info.Slug, said.reason)
	}
	return said.can, nil
}

// Plan implements orchestrator.Module.
func (m *module) Plan(ctx context.Context, t standard.Task, c *orchestrator.Context) (p standard.Plan,
	err error) {
	return p, m.ask(ctx, methodPlan, Question{Task: t}, c, &p)
}

// DryRun implements orchestrator.DryRunner.
func (m simulating) DryRun(ctx context.Context, t standard.Task, p standard.Plan,
	c *orchestrator.Context) (d standard.DryRun, err error) {
	return d, m.ask(ctx, methodDryRun, Question{Task: t, Plan: &p}, c, &d)
}

// Execute implements orchestrator.Module: the runtime does the plan, the agent its steps.
func (m *module) Execute(ctx context.Context, t standard.Task, p standard.Plan,
	c *orchestrator.Context) (standard.Execution, error) {
	return c.RunPlan(ctx, p, func(ctx context.Context, s standard.Step, inputs map[string]json.RawMessage,
		c *orchestrator.Context) (json.RawMessage, error) {
		var result json.RawMessage
		return result, m.ask(ctx, methodExecute, Question{Task: t, Plan: &p, Step: &s, Inputs: inputs}, c, &result)
	})
}

// Verify implements orchestrator.Module.
func (m *module) Verify(ctx context.Context, t standard.Task, done standard.Execution,
	c *orchestrator.Context) (v standard.Verification, err error) {
	return v, m.ask(ctx, methodVerify, Question{Task: t, Execution: &done}, c, &v)
}

// Summarize implements orchestrator.Module.
func (m *module) Summarize(ctx context.Context, t standard.Task, done standard.Execution,
	v standard.Verification, c *orchestrator.Context) (s standard.Summary, err error) {
	return s, m.ask(ctx, methodSummarize, Question{Task: t, Execution: &done, Verification: &v}, c, &s)
}

// ask calls a method, makes the calls that it wants, and asks again until there is a
// result. Without a Context there are no calls.
func (m *module) ask(ctx context.Context, method string, q Question, c *orchestrator.Context, into any) error {
	q.Protocol, q.TaskID, q.Outcomes = Protocol, q.Task.ID, []Outcome{}
	if c != nil {
		q.RunID, q.ParentRunID, q.Budget, q.Threshold = c.RunID, c.ParentRunID, &c.Budget, &c.Threshold
		q.OperatorWallet, q.Services = c.OperatorWallet, c.Services
	}
	brought := 0 // bytes of outcomes
	for range maxRounds {
		var a Answer
		if err := m.exchange(ctx, http.MethodPost, method, q, &a); err != nil {
			return err
		}
		switch {
		case a.Error != "":
			return fmt.Errorf("the agent says: %.2000s", a.Error)
		case len(a.Calls) == 0:
			return decode(method, &a, into)
		case c == nil || len(a.Calls) > maxCalls:
			return repute.Invalid(method+".calls", fmt.Sprintf("has %d calls", len(a.Calls)),
				fmt.Sprintf("none in can-handle, else at most %d", maxCalls))
		}
		outcomes, err := makeCalls(ctx, c, a.Calls)
		if err != nil {
			return err
		}
		for _, o := range outcomes {
			brought += len(o.Result) + len(o.Error)
		}
		if brought > maxOutcomes {
			return fmt.Errorf("%s: the agent's calls brought more than %d bytes: %w", method, maxOutcomes,
				repute.ErrLimited)
		}
		q.Outcomes = append(q.Outcomes, outcomes...)
	}
	return fmt.Errorf("%s: the agent wanted calls %d times: %w", method, maxRounds, repute.ErrLimited)
}

func decode(method string, a *Answer, into any) error {
	result := a.Result
	if said, ok := into.(*takes); ok {
		said.reason, into = a.Reason, &said.can
	}
	if len(result) == 0 {
		return repute.Invalid(method, "answered neither result, calls nor error", "one of them")
	}
	if raw, ok := into.(*json.RawMessage); ok {
		*raw = result
		return nil
	}
	if err := json.Unmarshal(result, into); err != nil {
		return repute.Invalid(method+".result", err.Error(), "what docs/reference/agents.md says")
	}
	return nil
}

// makeCalls makes calls one after the other. What a rule refuses is an outcome; a run
// that must wait or whose budget is used up ends here. So does one with a transaction or payment whose
// end is open: to the agent it would look like one that was not sent.
func makeCalls(ctx context.Context, c *orchestrator.Context, calls []Call) (out []Outcome, err error) {
	for _, call := range calls {
		c.TakeReceipt() // of a call that was not one of these
		result, err := makeCall(ctx, c, call)
		var waits *orchestrator.ApprovalError
		open := call.Kind == "send" && errors.Is(err, repute.ErrUnavailable) || errors.Is(err, outbound.ErrPaymentOpen)
		if open || errors.As(err, &waits) || errors.Is(err, repute.ErrLimited) || errors.Is(err, repute.ErrFenced) ||
			errors.Is(err, orchestrator.ErrAway) || ctx.Err() != nil {
			return nil, err
		}
		o := Outcome{Result: result}
		if err != nil {
			o = Outcome{Error: err.Error()}
		}
		if id := c.TakeReceipt(); id != 0 {
			o.ReceiptID = strconv.FormatInt(id, 10)
		}
		out = append(out, o)
	}
	return out, nil
}

// makeCall does what a server asked for through the Context, which counts it and keeps its
// receipt.
func makeCall(ctx context.Context, c *orchestrator.Context, call Call) (json.RawMessage, error) {
	missing := repute.Invalid("calls."+call.Kind, "has no content", "docs/reference/agents.md lists the fields")
	switch {
	case call.Kind == "tool":
		return c.Tool(ctx, call.Tool, call.Input)
	case call.Kind == "http" && call.HTTP != nil:
		return encoded(c.HTTP(ctx, *call.HTTP))
	case call.Kind == "pay" && call.Pay != nil:
		return encoded(c.Pay(ctx, *call.Pay))
	case call.Kind == "intent" && call.Intent != nil:
		return encoded(c.Intent(ctx, *call.Intent))
	case call.Kind == "read" && call.Read != nil:
		data, err := hexutil.Decode(call.Read.Data)
		if err != nil || !common.IsHexAddress(call.Read.To) {
			return nil, repute.Invalid("calls.read", "is no call", "an address, and 0x with hex digits")
		}
		answer, err := c.Read(ctx, call.Read.ChainID, common.HexToAddress(call.Read.To), data)
		return encoded(hexutil.Bytes(answer), err)
	case call.Kind == "simulate" && call.Tx != nil:
		return encoded(c.Simulate(ctx, *call.Tx))
	case call.Kind == "send" && call.Tx != nil:
		return encoded(c.Send(ctx, *call.Tx))
	}
	return nil, missing
}

func encoded[T any](v T, err error) (json.RawMessage, error) {
	if err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

// exchange sends one request. Whatever the agent answers is bounded and must be JSON.
func (m *module) exchange(ctx context.Context, verb, method string, question, into any) error {
	ctx, cancel := context.WithTimeout(ctx, m.o.Timeout)
	defer cancel()
	var body io.Reader
	if question != nil {
		b, err := json.Marshal(question)
		if err != nil {
			return err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, verb, m.url+"/"+method, body)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	resp, err := m.o.Client.Do(req)
	if err != nil {
		return fmt.Errorf("agent at %s, %s: %w: %w", m.url, method, repute.ErrUnavailable, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case err != nil:
		return fmt.Errorf("agent at %s, %s: %w: %w", m.url, method, repute.ErrUnavailable, err)
	case len(text) > maxAnswer:
		return repute.Invalid(method, fmt.Sprintf("answered more than %d bytes", maxAnswer), "a shorter answer")
	case resp.StatusCode/100 == 3:
		return repute.Invalid(method, fmt.Sprintf("redirects with status %d, which is not followed", resp.StatusCode),
			"register the address that answers 200")
	case resp.StatusCode != http.StatusOK:
		return repute.Invalid(method, fmt.Sprintf("answered status %d", resp.StatusCode), "200")
	case kind != "application/json":
		return repute.Invalid(method, fmt.Sprintf("answered %.60q", kind), "application/json")
	}
	if err := repute.CheckJSON(method, text); err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return repute.Invalid(method, fmt.Sprintf("answered what is no JSON of the protocol: %v", err),
			"docs/reference/agents.md")
	}
	return nil
}
