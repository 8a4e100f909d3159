package web

import (
	"context"
	"strings"
	"time"
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

// runtime shows agents that run on the database of the index, and the paid work of one of them: the one that the
// parameter names, otherwise the first.
func (s *site) runtime(ctx context.Context, p *page) (string, error) {
	p.Title = "Runtime"
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
	guard(p, body, true, err)
	return "runtime", nil
}
