// Package treasury serves the treasury and the operator actions: its status, policies and events, and transactions
// that a person requests outside any run, as routes under /v1 and as MCP tools. Package operate carries the actions
// out.
//
// An action is one request: its answer is the operate.Act with the decision of the policy, the simulation and, where
// it was sent in time, the transaction. 202 says that it goes on by itself; the same request with the same
// Idempotency-Key returns the same act. A dry run stores and sends nothing. approve=true approves what the policy
// leaves to a person, and takes the role approve beside that of the action. A refused act is stored too, and the
// error names it.
//
// Routes and tools share one path: acting and actTool call the same method of an Operator. Where no wallet is
// configured all of them answer so (NoWallet). Events are what package indexer stored of the treasury's logs, and the
// status compares them with the treasury's own books.
package treasury

import (
	"context"
	"errors"
	"net/http"
	"time"

	"repute"
	"repute/internal/httpapi"
	"repute/orchestrator/control/rest"
	"repute/orchestrator/operate"
	"repute/orchestrator/transaction"
	"repute/store"
)

// Service serves the treasury and operator actions. Make one with Mount.
type Service struct {
	router   *rest.Router
	db       *store.DB
	operated *operate.Operator
}

// Mount adds the routes to a router. Without an operator no wallet is configured, and the routes answer so, rather
// than with the 404 of a path that does not exist.
func Mount(router *rest.Router, db *store.DB, operator *operate.Operator) *Service {
	s := &Service{router: router, db: db, operated: operator}
	s.mount()
	router.AddStatus("202", "Accepted: it continues by itself", "/treasury/policies/{slug}", "/treasury/calls",
		"/treasury/transfers", "/identities", "/agents/{slug}/wallet", "/feedback")
	return s
}

// mount is the table of the routes.
func (s *Service) mount() {
	rest.Read(s.router, "/treasury/status", "get-treasury-status",
		"Returns the treasury's balance, owner and whether it is paused",
		s.treasuryStatus)
	rest.Read(s.router, "/treasury/policies/{slug}", "get-treasury-policy",
		"Returns the limits that the treasury sets for an agent",
		s.treasuryPolicy)
	rest.Write[operate.PolicyChange](s.router, http.MethodPut, "/treasury/policies/{slug}", "configure-treasury-policy",
		"Changes the limits that the treasury sets for an agent; members that are absent keep their value; needs the role own", s.configurePolicy)
	rest.Write[operate.TreasuryCall](s.router, http.MethodPost, "/treasury/calls", "execute-call",
		"Calls a contract or sends native coin from the treasury, for an agent",
		acting(s, (*operate.Operator).ExecuteCall))
	rest.Write[operate.Transfer](s.router, http.MethodPost, "/treasury/transfers", "transfer-erc20",
		"Transfers ERC-20 tokens from the treasury, for an agent", acting(s, (*operate.Operator).TransferERC20))
	rest.Write[operate.Identity](s.router, http.MethodPost, "/identities", "register-identity",
		"Registers an agent onchain, or updates its registration", acting(s, (*operate.Operator).RegisterIdentity))
	rest.Write[operate.AgentWallet](s.router, http.MethodPost, "/agents/{slug}/wallet", "set-agent-wallet",
		"Sets an agent's wallet onchain", s.setWallet)
	rest.Write[operate.FeedbackRequest](s.router, http.MethodPost, "/feedback", "post-feedback",
		"Rates an agent onchain, signed by a configured key", acting(s, (*operate.Operator).PostFeedback))
	rest.Read(s.router, "/treasury/events", "list-treasury-events",
		"Lists the events that the treasury emitted, newest first",
		s.treasuryEvents)
	rest.Read(s.router, "/acts", "list-acts",
		"Lists operator actions, which are transactions outside any run, newest first",
		s.listActs)
	rest.Read(s.router, "/acts/{id}", "get-act", "Returns an operator action with the state of its transactions",
		s.getAct)
}

// ActInput are the parameters of an operator action.
type ActInput struct {
	DryRun  httpapi.Flag `query:"dry_run" doc:"true: simulate and decide, store and send nothing"`
	Approve httpapi.Flag `query:"approve" doc:"true: the caller approves what the policy leaves to a person"`
	Key     string       `header:"Idempotency-Key" maxLength:"80" doc:"equal keys: one operator action"`
}

// slugActInput are the parameters of an action about one agent, which the path names.
type slugActInput struct {
	ActInput
	Slug string `path:"slug" pattern:"^[a-z0-9]+(-[a-z0-9]+)*$" maxLength:"64"`
}

// how returns the caller, the idempotency key, dry_run and approve of an act's request.
func (in *ActInput) how(by string) (h operate.How, err error) {
	h = operate.How{By: by, Key: in.Key}
	if httpapi.Clean(in.Key) != in.Key {
		return h, repute.Invalid("Idempotency-Key", "is no text", "at most 80 bytes")
	}
	if h.DryRun, err = in.DryRun.Bool("dry_run"); err != nil {
		return h, err
	}
	h.Approve, err = in.Approve.Bool("approve")
	return h, err
}

// operator returns the operator; repute.ErrNotFound if no wallet is configured.
func (s *Service) operator() (*operate.Operator, error) {
	if s.operated == nil {
		return nil, NoWallet()
	}
	return s.operated, nil
}

// NoWallet returns the error of what needs a wallet where none is configured.
func NoWallet() error {
	return &repute.MissingError{What: "wallet", Why: "is not configured here",
		Hint: "orchestrator.wallets in the configuration of a process with the role orchestrator"}
}

// acting returns the handler of an action that is described by its body alone.
func acting[R any](s *Service, do func(*operate.Operator, context.Context, R, operate.How) (operate.Act,
	error)) func(context.Context, string, *ActInput, R) (*rest.Answer[operate.Act], error) {
	return func(ctx context.Context, by string, in *ActInput, r R) (*rest.Answer[operate.Act], error) {
		return s.acts(by, in, func(o *operate.Operator, h operate.How) (operate.Act, error) { return do(o, ctx, r, h) })
	}
}

// acts carries out an operator action and answers with it. Where the policy refused it, the error names the act,
// which has the decision and the simulation: 202 and an error are the only answers after which a caller looks
// there.
func (s *Service) acts(by string, in *ActInput, do func(*operate.Operator, operate.How) (operate.Act,
	error)) (*rest.Answer[operate.Act], error) {
	o, err := s.operator()
	if err != nil {
		return nil, err
	}
	h, err := in.how(by)
	if err != nil {
		return nil, err
	}
	act, err := do(o, h)
	var denied *transaction.DeniedError
	if errors.As(err, &denied) && act.ID != "" {
		p := *httpapi.ErrorOf(err)
		p.Hint = "nothing was sent; see " + rest.Prefix + "/acts/" + act.ID
		return nil, &p
	}
	if err != nil {
		return nil, err
	}
	out := rest.Say(&act)
	if act.ID != "" {
		out.Location = rest.Prefix + "/acts/" + act.ID
	}
	if act.Status == operate.Pending {
		out.Status = http.StatusAccepted
	}
	return out, nil
}

// treasuryPolicy serves GET /v1/treasury/policies/{slug}.
func (s *Service) treasuryPolicy(ctx context.Context,
	in *rest.SlugInput) (*rest.Answer[operate.TreasuryPolicy], error) {
	o, err := s.operator()
	if err != nil {
		return nil, err
	}
	p, err := o.TreasuryPolicy(ctx, in.Slug)
	return rest.Say(&p), err
}

// configurePolicy serves PUT /v1/treasury/policies/{slug}. The body may repeat the agent of the path, as the tool
// and stored requests have it there.
func (s *Service) configurePolicy(ctx context.Context, by string, in *slugActInput,
	r operate.PolicyChange) (*rest.Answer[operate.Act], error) {
	if r.AgentSlug != "" && r.AgentSlug != in.Slug {
		return nil, repute.Invalid("agentSlug", "is another than that of the path", "one of both")
	}
	r.AgentSlug = in.Slug
	return s.acts(by, &in.ActInput, func(o *operate.Operator, h operate.How) (operate.Act,
		error) {
		return o.ConfigurePolicy(ctx, r, h)
	})
}

// setWallet serves POST /v1/agents/{slug}/wallet.
func (s *Service) setWallet(ctx context.Context, by string, in *slugActInput,
	r operate.AgentWallet) (*rest.Answer[operate.Act], error) {
	if r.Slug != "" && r.Slug != in.Slug {
		return nil, repute.Invalid("slug", "is another than that of the path", "one of both")
	}
	r.Slug = in.Slug
	return s.acts(by, &in.ActInput, func(o *operate.Operator, h operate.How) (operate.Act,
		error) {
		return o.SetAgentWallet(ctx, r, h)
	})
}

// ActList is a page of operator actions.
type ActList struct {
	Acts []operate.Act `json:"acts"`
	Next string        `json:"nextCursor,omitempty"`
}

// listActs serves GET /v1/acts.
func (s *Service) listActs(ctx context.Context, in *rest.PageInput) (*rest.Answer[ActList], error) {
	o, err := s.operator()
	if err != nil {
		return nil, err
	}
	size, err := in.Size()
	if err != nil {
		return nil, err
	}
	l := rest.ListOf("acts")
	before, id, err := l.ReadCursor(in.Cursor)
	if err != nil {
		return nil, err
	}
	list, err := o.Acts(ctx, before, id, size+1)
	if err != nil {
		return nil, err
	}
	var out ActList
	out.Acts, out.Next, err = rest.Cut(l, list, size,
		func(a operate.Act) (time.Time, string) { return *a.Created, a.ID })
	return rest.Say(&out), err
}

// ActWithEvents is an operator action with the treasury's events of it: those whose run is the act's own id. An
// action that was done for a run has them there.
type ActWithEvents struct {
	operate.Act
	Treasury []TreasuryEvent `json:"treasuryEvents"`
}

// getAct serves GET /v1/acts/{id}, with the treasury's events of the action.
func (s *Service) getAct(ctx context.Context, in *rest.IDInput) (*rest.Answer[ActWithEvents], error) {
	o, err := s.operator()
	if err != nil {
		return nil, err
	}
	if err := rest.Known("act", in.ID); err != nil {
		return nil, err
	}
	act, err := o.Act(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	events, err := EventsOf(ctx, s.db, in.ID)
	return rest.Say(&ActWithEvents{act, events}), err
}
