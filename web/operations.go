package web

import (
	"context"
	"time"
)

// operations is what operators look after.
type operations struct {
	Operations struct {
		Fetching bool
		Jobs     []struct {
			Kind, State string
			Count       int64
		}
		Documents []struct {
			Rank               string
			Planned, Due, Dead int64
			Oldest             *time.Time
		}
		Webhooks []webhook
		Keys     []apiKey
	}
	Chains []operatedChain
}

// webhook is a receiver of changes.
type webhook struct {
	ID, URL, State, By string
	Reason             *string
	Delivered          int64
	DeliveredAt        *time.Time
	CreatedAt          *time.Time
	Filter             struct {
		Agent string
		Chain int64
		Kinds []string
	}
	Failure *struct {
		Attempts, Status int64
		Since, NextAt    *time.Time
		Reason           string
	}
}

// apiKey is a key of a caller.
type apiKey struct {
	Name                      string
	Scopes                    []string
	Rate                      int64
	Created, Expires, Revoked *time.Time
	LastUsed                  *string
}

// operatedChain is a chain with its endpoints and gaps.
type operatedChain struct {
	ChainID         int64
	Name            string
	Halted, Stalled bool
	LastError       *string
	Endpoints       []endpoint
	Kinds           []struct {
		Kind string
		Gaps []gap
	}
}

// Gaps returns how many gaps of events the chain has.
func (c operatedChain) Gaps() (n int) {
	for _, k := range c.Kinds {
		n += len(k.Gaps)
	}
	return n
}

// operate shows what operators look after.
func (s *site) operate(ctx context.Context, p *page) (string, error) {
	p.Title = "Operations"
	o, err := ask[operations](ctx, s, p, "operations", map[string]any{})
	p.Body = guard(p, o, true, err)
	return "operations", nil
}
