package control

import (
	"context"
	"errors"
	"net/http"

	"repute"
	"repute/internal/httpapi"
	"repute/orchestrator/operate"
	"repute/orchestrator/transaction"
)

// mountActs serves what the operator does on a chain by itself.
func (c *Control) mountActs() {
	read(c, "/treasury/status", "get-treasury-status", "Returns the treasury's balance, owner and whether it is paused",
		c.treasuryStatus)
	read(c, "/treasury/policies/{slug}", "get-treasury-policy", "Returns the limits that the treasury sets for an agent",
		c.treasuryPolicy)
	write[operate.PolicyChange](c, http.MethodPut, "/treasury/policies/{slug}", "configure-treasury-policy",
		"Changes the limits that the treasury sets for an agent; members that are absent keep their value; needs the role own", c.configurePolicy)
	write[operate.TreasuryCall](c, http.MethodPost, "/treasury/calls", "execute-call",
		"Calls a contract or sends native coin from the treasury, for an agent", acting(c, (*operate.Operator).ExecuteCall))
	write[operate.Transfer](c, http.MethodPost, "/treasury/transfers", "transfer-erc20",
		"Transfers ERC-20 tokens from the treasury, for an agent", acting(c, (*operate.Operator).TransferERC20))
	write[operate.Identity](c, http.MethodPost, "/identities", "register-identity",
		"Registers an agent onchain, or updates its registration", acting(c, (*operate.Operator).RegisterIdentity))
	write[operate.AgentWallet](c, http.MethodPost, "/agents/{slug}/wallet", "set-agent-wallet",
		"Sets an agent's wallet onchain", c.setWallet)
	write[operate.FeedbackRequest](c, http.MethodPost, "/feedback", "post-feedback",
		"Rates an agent onchain, signed by a configured key", acting(c, (*operate.Operator).PostFeedback))
	read(c, "/treasury/events", "list-treasury-events", "Lists the events that the treasury emitted, newest first",
		c.treasuryEvents)
	read(c, "/acts", "list-acts", "Lists operator actions, which are transactions outside any run, newest first",
		c.listActs)
	read(c, "/acts/{id}", "get-act", "Returns an operator action with the state of its transactions", c.getAct)
}

// ActInput says how an act is done.
type ActInput struct {
	DryRun  httpapi.Flag `query:"dry_run" doc:"true: simulate and decide, store and send nothing"`
	Approve httpapi.Flag `query:"approve" doc:"true: the caller approves what the policy leaves to a person"`
	Key     string       `header:"Idempotency-Key" maxLength:"80" doc:"makes asking twice one act"`
}

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

// operator is who acts; repute.ErrNotFound where no wallet is configured.
func (c *Control) operator() (*operate.Operator, error) {
	if c.o.Operator == nil {
		return nil, &repute.MissingError{What: "wallet", Why: "is not configured here",
			Hint: "orchestrator.wallets in the configuration of a process with the role orchestrator"}
	}
	return c.o.Operator, nil
}

// acting mounts an act whose body says all.
func acting[R any](c *Control, do func(*operate.Operator, context.Context, R, operate.How) (operate.Act,
	error)) func(context.Context, string, *ActInput, R) (*answer[operate.Act], error) {
	return func(ctx context.Context, by string, in *ActInput, r R) (*answer[operate.Act], error) {
		return c.acts(by, in, func(o *operate.Operator, h operate.How) (operate.Act, error) { return do(o, ctx, r, h) })
	}
}

// acts carries out an operator action and answers with it, also where the policy refused it.
func (c *Control) acts(by string, in *ActInput, do func(*operate.Operator, operate.How) (operate.Act,
	error)) (*answer[operate.Act], error) {
	o, err := c.operator()
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
		p.Hint = "nothing was sent; see " + prefix + "/acts/" + act.ID
		return nil, &p
	}
	if err != nil {
		return nil, err
	}
	out := say(&act)
	if act.ID != "" {
		out.Location = prefix + "/acts/" + act.ID
	}
	if act.Status == operate.Pending {
		out.Status = http.StatusAccepted
	}
	return out, nil
}

// treasuryPolicy serves GET /v1/treasury/policies/{slug}.
func (c *Control) treasuryPolicy(ctx context.Context, in *slugInput) (*answer[operate.TreasuryPolicy], error) {
	o, err := c.operator()
	if err != nil {
		return nil, err
	}
	p, err := o.TreasuryPolicy(ctx, in.Slug)
	return say(&p), err
}

// configurePolicy serves PUT /v1/treasury/policies/{slug}.
func (c *Control) configurePolicy(ctx context.Context, by string, in *slugActInput,
	r operate.PolicyChange) (*answer[operate.Act], error) {
	if r.AgentSlug != "" && r.AgentSlug != in.Slug {
		return nil, repute.Invalid("agentSlug", "is another than that of the path", "one of both")
	}
	r.AgentSlug = in.Slug
	return c.acts(by, &in.ActInput, func(o *operate.Operator, h operate.How) (operate.Act,
		error) {
		return o.ConfigurePolicy(ctx, r, h)
	})
}

// setWallet serves POST /v1/agents/{slug}/wallet.
func (c *Control) setWallet(ctx context.Context, by string, in *slugActInput,
	r operate.AgentWallet) (*answer[operate.Act], error) {
	if r.Slug != "" && r.Slug != in.Slug {
		return nil, repute.Invalid("slug", "is another than that of the path", "one of both")
	}
	r.Slug = in.Slug
	return c.acts(by, &in.ActInput, func(o *operate.Operator, h operate.How) (operate.Act,
		error) {
		return o.SetAgentWallet(ctx, r, h)
	})
}

// ActList is a page of acts.
type ActList struct {
	Acts []operate.Act `json:"acts"`
	Next string        `json:"nextCursor,omitempty"`
}

type actsInput struct {
	Limit  httpapi.Number `query:"limit" minimum:"1" maximum:"200" doc:"1 to 200, 50 when absent"`
	Cursor string         `query:"cursor" doc:"nextCursor of the page before"`
}

// listActs serves GET /v1/acts.
func (c *Control) listActs(ctx context.Context, in *actsInput) (*answer[ActList], error) {
	o, err := c.operator()
	if err != nil {
		return nil, err
	}
	size, err := httpapi.PageSize(in.Limit, httpapi.DefaultPage, httpapi.MaxPage)
	if err != nil {
		return nil, err
	}
	before, id, err := readCursor(in.Cursor)
	if err != nil {
		return nil, err
	}
	list, err := o.Acts(ctx, before, id, size+1)
	if err != nil {
		return nil, err
	}
	out := ActList{Acts: list}
	if len(list) > size {
		out.Acts = list[:size]
		out.Next = cursorOf(*list[size-1].Created, list[size-1].ID)
	}
	return say(&out), nil
}

// ActWithEvents is an act with what the treasury says of it.
type ActWithEvents struct {
	operate.Act
	Treasury []TreasuryEvent `json:"treasuryEvents"`
}

// getAct serves GET /v1/acts/{id}, with the treasury's events of the action.
func (c *Control) getAct(ctx context.Context, in *idInput) (*answer[ActWithEvents], error) {
	o, err := c.operator()
	if err != nil {
		return nil, err
	}
	if err := known("act", in.ID); err != nil {
		return nil, err
	}
	act, err := o.Act(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	events, err := c.eventsOf(ctx, in.ID)
	return say(&ActWithEvents{act, events}), err
}
