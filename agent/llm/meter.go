package llm

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"repute"
)

// Budget bounds what a conversation may use. What is 0 has no bound.
type Budget struct {
	Tokens int64
	Cost   repute.Micros
}

// Meter is a Ledger that counts in memory and journals nothing, for work that is not resumed. It is safe for
// concurrent use.
type Meter struct {
	Budget Budget
	// Price is what tokens cost; nil: nothing.
	Price func(Usage) repute.Micros

	mu   sync.Mutex
	used Usage
	cost repute.Micros
}

// Model implements Ledger.
func (m *Meter) Model(ctx context.Context, about ModelCall, do func(context.Context) (Reply, error)) (Reply, error) {
	if err := m.add(about.Most); err != nil {
		return Reply{}, err
	}
	reply, err := do(ctx)
	m.settle(about.Most, reply.Usage)
	return reply, err
}

// add reserves tokens and their cost, both or neither.
func (m *Meter) add(u Usage) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	cost := m.price(u)
	switch {
	case m.Budget.Tokens > 0 && m.used.Total()+u.Total() > m.Budget.Tokens:
		return fmt.Errorf("budget: maxTokens would be exceeded (%d of %d are used, the call may need %d): %w",
			m.used.Total(), m.Budget.Tokens, u.Total(), repute.ErrLimited)
	case m.Budget.Cost > 0 && m.cost+cost > m.Budget.Cost:
		return fmt.Errorf("budget: maxCostUsd would be exceeded (%s of %s are used, the call may cost %s): %w",
			m.cost, m.Budget.Cost, cost, repute.ErrLimited)
	}
	m.used, m.cost = Usage{m.used.Input + u.Input, m.used.Output + u.Output}, m.cost+cost
	return nil
}

// settle replaces what was reserved by what was used.
func (m *Meter) settle(reserved, used Usage) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used = Usage{m.used.Input + used.Input - reserved.Input, m.used.Output + used.Output - reserved.Output}
	m.cost += m.price(used) - m.price(reserved)
}

// price returns what tokens cost, 0 without a Price: then only the bound of tokens holds.
func (m *Meter) price(u Usage) repute.Micros {
	if m.Price == nil {
		return 0
	}
	return m.Price(u)
}

// Used returns what was used until now, with what running calls have reserved.
func (m *Meter) Used() (Usage, repute.Micros) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used, m.cost
}

// Tool implements Ledger. It only makes the call: the meter counts tokens, not tools.
func (m *Meter) Tool(ctx context.Context, _ ToolUse, do func(context.Context) (string, error)) (string, error) {
	return do(ctx)
}

// Ends implements Ledger: a bound that is used up ends the conversation.
func (m *Meter) Ends(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, repute.ErrLimited)
}
