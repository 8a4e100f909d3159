package web

import (
	"context"
	"strings"
	"time"

	"repute/web/failure"
)

// runtimeRow is an agent that runs here.
type runtimeRow struct {
	Agent, Mode string
	Seen, Since *time.Time
	Policy      *string
	Works       []struct {
		Capability         string
		Runs, Failed, Paid int64
		Last               *time.Time
		Revenue, Price     string
		Currency           *string
	}
}

// IsAgent reports whether the agent has a page: its id is that of an agent on a chain.
func (r runtimeRow) IsAgent() bool { return strings.HasPrefix(r.Agent, "eip155:") }

// paidRow is a paid execution.
type paidRow struct {
	Capability, Outcome, Settlement, Client, Amount, Currency, TxHash string
	At                                                                *time.Time
}

// Moved reports whether money moved on a chain.
func (r paidRow) Moved() bool { return r.Settlement == "x402" }

// remoteRuntime is what a runtime says of itself at its own address.
type remoteRuntime struct {
	URL, Status, Version string
	Accepting            bool
	Uptime               int64
	Capabilities         []string
	Receipts             []struct {
		ID, Settlement, Amount, Currency, Capability string
		At                                           *time.Time
	}
}

// runtimePage is the body of the page of runtimes: those on this database, which need a token, and what one elsewhere
// answered.
type runtimePage struct {
	guarded
	// Asked is the agent whose address was or can be asked; empty for none.
	Asked  string
	Remote *remoteRuntime
	Away   *failure.Text // why Remote is missing; nil where nothing was asked
}

// runtime shows agents that run on the database of the index, and the paid work of one of them: the one that the
// parameter names, otherwise the first. A posted form has the address of an agent asked; a link alone asks nothing.
func (s *site) runtime(ctx context.Context, p *page) (string, error) {
	p.Title = "Runtime"
	if p.FormErr != nil {
		return "", p.FormErr
	}
	remote := runtimePage{Asked: p.Query.Get("ask")}
	if p.Form != nil {
		remote.Asked = strings.TrimSpace(p.Form.Get("ask"))
	}
	if p.Form != nil && remote.Asked != "" {
		h, err := ask[struct{ RuntimeHealth *remoteRuntime }](ctx, s, p, "runtime_health",
			map[string]any{"agent": remote.Asked})
		if remote.Remote = h.RuntimeHealth; err != nil {
			why := failure.Of(err)
			remote.Away, p.Status, p.Retry = &why, why.Status, why.Retry
		}
	}
	remote.guarded = s.localRuntimes(ctx, p)
	p.Body = remote
	return "runtime", nil
}

// localRuntimes reads the agents on this database.
func (s *site) localRuntimes(ctx context.Context, p *page) guarded {
	l, err := ask[struct{ Runtimes []runtimeRow }](ctx, s, p, "runtimes", map[string]any{})
	body := struct {
		Runtimes []runtimeRow
		Of       string
		Paid     []paidRow
	}{Runtimes: l.Runtimes, Of: p.Query.Get("agent")}
	if err == nil && body.Of == "" && len(l.Runtimes) > 0 {
		body.Of = l.Runtimes[0].Agent
	}
	if err == nil && body.Of != "" {
		var r struct{ Receipts []paidRow }
		r, err = ask[struct{ Receipts []paidRow }](ctx, s, p, "paid", map[string]any{"agent": body.Of})
		body.Paid = r.Receipts
	}
	return guard(p, body, true, err)
}
