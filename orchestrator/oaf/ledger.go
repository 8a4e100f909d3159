package oaf

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"repute"
	"repute/agent/llm"
	"repute/orchestrator"
	"repute/orchestrator/journal"
)

// ledger makes the calls of a conversation through the Context of a run. The bound of the agent's own file is
// counted in own: answers from the journal count again, so that it is the same after a crash.
type ledger struct {
	c     *orchestrator.Context
	price func(llm.Usage) repute.Micros
	own   llm.Meter
}

// Model implements llm.Ledger.
func (l *ledger) Model(ctx context.Context, about llm.ModelCall, do func(context.Context) (llm.Reply,
	error)) (llm.Reply, error) {
	return l.own.Model(ctx, about, func(ctx context.Context) (llm.Reply, error) {
		var reply llm.Reply
		raw, err := l.c.Local(ctx, orchestrator.LocalCall{Kind: repute.CallModel, Ref: about.Model,
			Summary:  fmt.Sprintf("turn %d of %s", about.Turn, about.Model),
			Identity: about.Request, Most: l.amount(about.Most),
			Request: journal.JSON(map[string]any{"turn": about.Turn, "bytes": len(about.Request),
				"sha256": journal.Digest(about.Request)})},
			func(ctx context.Context, _ string) (json.RawMessage, orchestrator.Amount, error) {
				r, err := do(ctx)
				reply.Usage = r.Usage // what a failed call used
				return journal.JSON(r), l.amount(r.Usage), err
			})
		if err != nil {
			return reply, err
		}
		reply = llm.Reply{}
		return reply, json.Unmarshal(raw, &reply)
	})
}

func (l *ledger) amount(u llm.Usage) orchestrator.Amount {
	return orchestrator.Amount{Tokens: u.Total(), Cost: l.price(u)}
}

// Tool implements llm.Ledger.
func (l *ledger) Tool(ctx context.Context, use llm.ToolUse, do func(context.Context) (string, error)) (string, error) {
	raw, err := l.c.Local(ctx, orchestrator.LocalCall{Kind: repute.CallTool, Ref: use.Name, Summary: "tool " + use.Name,
		Identity: use.Input, Request: use.Input, Once: use.Once},
		func(ctx context.Context, _ string) (json.RawMessage, orchestrator.Amount, error) {
			text, err := do(ctx)
			if errors.Is(err, llm.ErrUncertain) {
				err = uncertain{err}
			}
			return journal.JSON(text), orchestrator.Amount{}, err
		})
	if err != nil {
		return "", err
	}
	var text string
	return text, json.Unmarshal(raw, &text)
}

// uncertain is an error of a tool as the orchestrator knows it, with the text that the model is told.
type uncertain struct{ error }

// Unwrap returns orchestrator.ErrUncertain and the tool's error.
func (u uncertain) Unwrap() []error { return []error{orchestrator.ErrUncertain, u.error} }

// Ends implements llm.Ledger.
func (l *ledger) Ends(ctx context.Context, err error) bool {
	var waits *orchestrator.ApprovalError
	return ctx.Err() != nil || errors.Is(err, repute.ErrLimited) || errors.Is(err, repute.ErrFenced) ||
		errors.Is(err, orchestrator.ErrAway) || errors.As(err, &waits)
}

// stream collects parts of a model's text into events of the run: one for each flushBytes or flushTime, at most
// maxEvents in a step.
type stream struct {
	c      *orchestrator.Context
	turn   int
	text   string
	last   time.Time
	events int
}

const (
	flushBytes = 2 << 10
	flushTime  = 300 * time.Millisecond
	maxEvents  = 500
)

// add adds a part. It is called by one goroutine at a time.
func (s *stream) add(ctx context.Context, turn int, text string) {
	if turn != s.turn {
		s.flush(ctx)
		s.turn = turn
	}
	s.text += text
	if len(s.text) >= flushBytes || time.Since(s.last) >= flushTime {
		s.flush(ctx)
	}
}

// flush publishes what is collected.
func (s *stream) flush(ctx context.Context) {
	if s.text != "" && s.events < maxEvents && ctx.Err() == nil {
		s.c.Text(ctx, s.turn, s.text)
		s.events++
	}
	s.text, s.last = "", time.Now()
}
