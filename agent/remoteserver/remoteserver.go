// Package remoteserver lets an orchestrator give tasks to an agent: it answers the orchestrator's protocol for remote
// agents (docs/reference/agents.md), so that `repute agent register` takes the agent's URL. A task is one execution of
// a capability, which a tag or the input of the task names.
//
// The protocol asks five questions, and Server keeps nothing between them: can-handle checks the input, plan is one
// step, execute runs the capability, verify checks that the result is what this agent signed for this task, and
// summarize says it in words. A question that cannot be answered is an answer with an error, which the orchestrator
// shows; only faults of the agent are errors of HTTP.
//
// A task for a paid capability carries its payment: {capability, input, payment} with a payment of x402. What is
// executed again after a crash of the orchestrator gets the stored answer of the payment; a free capability is run
// again.
package remoteserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"strings"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/agent"
	"repute/agent/capability"
	"repute/agent/envelope"
	"repute/agent/serve"
	"repute/agent/signed"
	"repute/internal/httpapi"
	"repute/orchestrator/remote"
	"repute/orchestrator/standard"
)

// Path is where the agent answers; the URL to be registered ends with it.
const Path = "/orchestrator"

// Mounts is the protocol over HTTP.
func (s *Server) Mounts() []serve.Mount {
	return []serve.Mount{{Path: Path, Below: true, Methods: []string{http.MethodGet, http.MethodPost},
		Handler: s.Handler()}}
}

// stepID names the one step of a plan.
// It is stored by orchestrators in their runs, and MUST NOT change.
const stepID = "run"

// Options configure the surface.
type Options struct {
	Router *agent.Router
	// Name and Description are the manifest's.
	Name, Description string
	// MaxBody bounds a request in bytes.
	MaxBody int64
	Log     *slog.Logger
}

// Server answers an orchestrator.
type Server struct {
	o      Options
	router *agent.Router
	// info is the answer to GET info. It is made once, as a router's capabilities do not change.
	info remote.Info
}

// New returns a server. repute.ErrInvalid where the agent's name gives no slug.
//
// The manifest asks for no tools and no writes to a chain: the agent does its work by itself, and an orchestrator
// need not grant it anything. RequiresVerification asks it to call verify after each execution.
func New(o Options) (*Server, error) {
	slug := slugOf(o.Name)
	if slug == "" {
		return nil, repute.Invalid("profile.name", fmt.Sprintf("%.80q gives no slug", o.Name),
			"a name with letters or digits")
	}
	id, names := o.Router.ID(), o.Router.Names()
	m := standard.Manifest{Schema: standard.ManifestSchema, Name: o.Name, Slug: slug, Version: o.Router.Version(),
		Description: o.Description, Capabilities: names, TaskCategories: names, Tools: []standard.ManifestTool{},
		ERC8004: &standard.ManifestIdentity{AgentRegistry: id.Registry.Hex(), AgentID: json.Number(id.TokenID.Dec()),
			ChainID: id.ChainID},
		ComputeConstraints: standard.ComputeConstraints{MaxSteps: new(int64(1)), MaxToolCalls: new(int64(0)),
			MaxRuntimeMS: new(capability.MaxTimeout.Milliseconds()), MaxOnchainWrites: new(int64(0))},
		Safety: standard.Safety{RequiresVerification: true}}
	return &Server{o: o, router: o.Router, info: remote.Info{Protocol: remote.Protocol, Slug: slug, DisplayName: o.Name,
		Version: o.Router.Version(), IdentityMode: standard.IdentityMode, Manifest: m}}, nil
}

// slugOf returns the words of a name in lower case, joined by hyphens.
func slugOf(name string) string {
	slug := strings.Trim(regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(name), "-"), "-")
	return strings.Trim(slug[:min(len(slug), 64)], "-")
}

// Handler answers GET {Path}/info and POST {Path}/{method}.
//
// A path or a method that is not of the protocol is an answer of net/http's own, without a body of the protocol.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+Path+"/info", func(w http.ResponseWriter, _ *http.Request) { write(w, s.info) })
	for name, method := range map[string]func(context.Context, *remote.Question) (remote.Answer, error){
		"can-handle": s.canHandle, "plan": s.plan, "execute": s.execute, "verify": s.verify, "summarize": s.summarize} {
		mux.HandleFunc("POST "+Path+"/"+name, func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, method) })
	}
	return mux
}

// write answers with JSON.
func write(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(v) // the caller may be gone
}

// answer reads a question and answers it.
//
// An unknown version of the protocol is refused, because its questions may mean something else. An error of a method
// is reported by its kind and logged; it is never shown.
func (s *Server) answer(w http.ResponseWriter, r *http.Request,
	method func(context.Context, *remote.Question) (remote.Answer, error)) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.o.MaxBody))
	var large *http.MaxBytesError
	var q remote.Question
	switch {
	case errors.As(err, &large):
		httpapi.NewError(http.StatusRequestEntityTooLarge, "too_large", "Request too large",
			"the request body is larger than the server allows").Write(w)
		return
	case err != nil || json.Unmarshal(body, &q) != nil:
		httpapi.NewError(http.StatusBadRequest, "invalid", "Invalid request",
			"the body is no question of the protocol").Write(w)
		return
	case q.Protocol != remote.Protocol:
		httpapi.NewError(http.StatusBadRequest, "invalid", "Invalid request",
			"protocol: is not known, allowed is "+remote.Protocol).Write(w)
		return
	}
	a, err := method(r.Context(), &q)
	if err != nil {
		httpapi.Report(r.Context(), s.o.Log, err).Write(w)
		return
	}
	write(w, a)
}

// result is an answer with a value.
func result(v any) (remote.Answer, error) {
	raw, err := json.Marshal(v)
	return remote.Answer{Result: raw}, err
}

// read reads what a task asks for.
// The input of a step wins over that of the task, as a planner may have refined it. An absent input is the empty
// object.
func (s *Server) read(q *remote.Question) (*agent.Request, error) {
	raw := q.Task.Input
	if q.Step != nil && len(q.Step.Input) > 0 {
		raw = q.Step.Input
	}
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	o, err := envelope.ReadOrder(s.router, raw, q.Task.Tags...)
	if err != nil {
		return nil, err
	}
	return &agent.Request{Capability: o.Capability, Input: o.Input, Payment: o.Payment}, nil
}

// canHandle says whether there is such a capability and the input fits it.
// The reason is cut, since it may quote the task's input.
func (s *Server) canHandle(ctx context.Context, q *remote.Question) (remote.Answer, error) {
	r, err := s.read(q)
	if err == nil {
		err = s.check(ctx, r)
	}
	if err == nil {
		return result(true)
	}
	a, failed := result(false)
	a.Reason = fmt.Sprintf("%.1500s", err.Error())
	return a, failed
}

// check refuses a request that the router would refuse for its input, or for a payment that is missing.
// It does not look at the payment itself: whether it settles is known only in execute, and nothing may be charged for
// a question.
func (s *Server) check(ctx context.Context, r *agent.Request) error {
	one := s.router.Service(r.Capability)
	if one == nil {
		return repute.Invalid("capability", fmt.Sprintf("%.80q is not known", r.Capability),
			"a capability of the agent")
	}
	if err := one.CheckInput(ctx, r.Input); err != nil {
		return err
	}
	if one.Price != nil && r.Payment == nil {
		return repute.Invalid("payment_required", fmt.Sprintf("%s costs %s %s", one.Definition().Name, one.Price.Amount,
			one.Price.Currency), "an input {capability, input, payment} with a payment of x402")
	}
	return nil
}

// plan is one step.
// The step has the input of the task as it came, the payment included, because execute gets nothing else.
func (s *Server) plan(_ context.Context, q *remote.Question) (remote.Answer, error) {
	r, err := s.read(q)
	if err != nil {
		return remote.Answer{Error: err.Error()}, nil
	}
	return result(standard.Plan{Steps: []standard.Step{{ID: stepID, Description: "run " + r.Capability,
		Agent:     s.info.Slug,
		DependsOn: []string{}, Input: q.Task.Input}}})
}

// Done is the result of a step.
// Its Output and Signature are what verify checks later, from the orchestrator's storage.
type Done struct {
	Capability string             `json:"capability"`
	RequestID  string             `json:"requestId"`
	Output     json.RawMessage    `json:"output"`
	Signature  envelope.Signature `json:"signature"` // over the output
	// Settlement is the hash of the transaction that paid; "" for a free execution.
	Settlement string `json:"settlement,omitempty"`
	Mode       string `json:"mode,omitempty"`
	Validation string `json:"validation,omitempty"`
	Replayed   bool   `json:"replayed,omitempty"`
}

// execute runs the capability.
func (s *Server) execute(ctx context.Context, q *remote.Question) (remote.Answer, error) {
	r, err := s.read(q)
	if err != nil {
		return remote.Answer{Error: "invalid: " + err.Error()}, nil
	}
	r.Resource, r.Caller = "repute-agent://capability/"+r.Capability, httpapi.CallerOf(ctx)
	r.Correlation = httpapi.RequestID(ctx)
	a, err := envelope.Do(ctx, s.router, *r)
	if err != nil {
		return remote.Answer{}, err
	}
	if p := a.Problem; p != nil {
		return remote.Answer{Error: fmt.Sprintf("%s: %s (status %d)", p.Code, p.Message, p.Status)}, nil
	}
	d := Done{Capability: r.Capability, RequestID: a.RequestID, Output: a.Body, Signature: a.Signature,
		Replayed: a.Replayed}
	if a.Settlement != nil {
		d.Settlement = a.Settlement.Transaction
	}
	if a.Mode != agent.Normal {
		d.Mode = string(a.Mode)
	}
	if a.Validation {
		d.Validation = "required"
	}
	return result(d)
}

// verify checks that the result of each step is what the agent signed, for this task.
//
// Every step is checked, and one that fails makes the score 0. It needs no state: any caller that has the result can
// ask, after a restart as well. Where the task itself cannot be read all steps fail with that reason.
func (s *Server) verify(_ context.Context, q *remote.Question) (remote.Answer, error) {
	v := standard.Verification{Checks: []standard.Check{}, Score: 1}
	if q.Execution == nil || len(q.Execution.Steps) == 0 {
		v.Score = 0
		v.Checks = append(v.Checks, standard.Check{Name: "signature", Details: "nothing was executed"})
		return result(v)
	}
	task, err := s.taskHash(q)
	for _, step := range q.Execution.Steps {
		c := standard.Check{Name: "signature", Passed: err == nil}
		if err != nil {
			c.Details = err.Error()
		} else if wrong := s.signedBy(step.Result, task); wrong != nil {
			c.Passed, c.Details = false, wrong.Error()
		}
		if !c.Passed {
			v.Score = 0
		}
		v.Checks = append(v.Checks, c)
	}
	return result(v)
}

// taskHash is what an answer to the task is signed for.
func (s *Server) taskHash(q *remote.Question) (common.Hash, error) {
	r, err := s.read(q)
	if err != nil {
		return common.Hash{}, err
	}
	one := s.router.Service(r.Capability)
	if one == nil {
		return common.Hash{}, repute.Invalid("capability", "is not known", "a capability of the agent")
	}
	id := s.router.ID()
	return one.TaskHash(id.TokenID.Dec(), r.Input)
}

// signedBy returns why a step's result is not what the agent signed for a task.
// The signature is over the output, so that a changed output is seen. The other members of the result are not signed.
func (s *Server) signedBy(raw json.RawMessage, task common.Hash) error {
	var d Done
	if err := json.Unmarshal(raw, &d); err != nil {
		return repute.Invalid("result", "is none of this agent", "what execute answered")
	}
	r, err := signed.ReadResponse(d.Signature.Headers())
	if err != nil {
		return err
	}
	by, err := r.Verify(d.Output)
	switch {
	case err != nil:
		return err
	case by != s.router.Signer():
		return repute.Invalid("signature", "is not this agent's", "what execute answered")
	case r.TaskHash != task:
		return repute.Invalid("signature.taskHash", "is of another task", "what execute answered")
	}
	return nil
}

// summarize says what was done.
// Results of other agents in the execution are left out where they have another form. The text has no output: it may
// be of strangers.
func (s *Server) summarize(_ context.Context, q *remote.Question) (remote.Answer, error) {
	out := standard.Summary{KeyActions: []string{}, Receipts: []string{}, Warnings: []string{}}
	if q.Execution != nil {
		for _, step := range q.Execution.Steps {
			var d Done
			if err := json.Unmarshal(step.Result, &d); err != nil {
				continue
			}
			out.KeyActions = append(out.KeyActions, "ran "+d.Capability)
			out.Text += fmt.Sprintf("%s answered with %d bytes that %s signed. ", d.Capability, len(d.Output),
				s.info.DisplayName)
			if d.Validation != "" {
				out.Warnings = append(out.Warnings,
					"the agent's policy asks for a validator's confirmation of the result")
			}
		}
	}
	if out.Text = strings.TrimSpace(out.Text); out.Text == "" {
		out.Text = "Nothing was done."
	}
	return result(out)
}
