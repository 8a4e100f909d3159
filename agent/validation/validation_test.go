package validation_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/agent/validation"
	"repute/internal/pgtest"
	"repute/orchestrator/transaction"
	"repute/store"
	"repute/store/agentdb"
)

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
}

// outside is what sends and judges: each answers with what it holds.
type outside struct {
	sent   atomic.Int64
	send   func(n int64) (transaction.Sent, error)
	silent atomic.Bool // the index does not answer
}

// SendValidationRequest implements validation.Sender.
func (o *outside) SendValidationRequest(_ context.Context, in transaction.Intent) (transaction.Sent, error) {
	if in.Agent != "owner" || in.ID == "" || len(in.Data) == 0 {
		return transaction.Sent{}, fmt.Errorf("another intent: %w", repute.ErrInvalid)
	}
	return o.send(o.sent.Add(1))
}

// Validator implements validation.Judge.
func (o *outside) Validator(context.Context, common.Address) (bool, string, error) {
	if o.silent.Load() {
		return false, "", repute.ErrUnavailable
	}
	return true, "", nil
}

// TestSteps: a request is sent again until its end is known, a final failure ends it, answers to others
// are left out, and an answer is judged when the index answers again.
func TestSteps(t *testing.T) {
	t.Parallel()
	sent := transaction.Sent{OK: true, Hash: common.Hash{9}}
	for name, tt := range map[string]struct {
		send func(n int64) (transaction.Sent, error)
		want agentdb.ValidationStep
	}{
		"sent": {func(int64) (transaction.Sent, error) { return sent, nil }, agentdb.ValidationJudged},
		"end unknown at first": {func(n int64) (transaction.Sent, error) {
			if n < 3 {
				return transaction.Sent{}, fmt.Errorf("node: %w", repute.ErrUnavailable)
			}
			return sent, nil
		}, agentdb.ValidationJudged},
		"refused": {func(int64) (transaction.Sent, error) { return transaction.Sent{}, repute.Invalid("tx", "x", "y") },
			agentdb.ValidationFailed},
		"reverted": {func(int64) (transaction.Sent, error) { return transaction.Sent{}, nil },
			agentdb.ValidationFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, err := store.Open(context.WithoutCancel(t.Context()), pgtest.New(t), store.Options{})
			ok(t, err)
			t.Cleanup(db.Close)
			ok(t, agentdb.Maintain(t.Context(), db, agentdb.MinRetention))
			id, o, request := repute.AgentID{ChainID: 7}, &outside{send: tt.send}, common.Hash{1}
			detail, err := json.Marshal(map[string]any{"validation": request, "document": "{}"})
			ok(t, err)
			ok(t, agentdb.Add(t.Context(), db,
				agentdb.Entry{Kind: agentdb.Execution, Agent: id.String(), Outcome: "200", Detail: detail}))
			r := validation.New(validation.Options{DB: db, ID: id, Registry: common.Address{4},
				Validator: common.Address{5},
				Sender:    o, Slug: "owner", Judge: o, Log: slog.New(slog.DiscardHandler),
				Every: 10 * time.Millisecond})
			ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
			ended := make(chan error, 1)
			go func() { ended <- r.Run(ctx) }()
			defer func() { stop(); ok(t, <-ended) }()
			await := func(want agentdb.ValidationStep) {
				t.Helper()
				for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
					known, err := agentdb.Validations(t.Context(), db, id.String(), []common.Hash{request})
					ok(t, err)
					if known[request].Step == want {
						return
					}
					if time.Now().After(end) {
						t.Fatalf("%+v, want %s", known[request], want)
					}
				}
			}
			if tt.want == agentdb.ValidationFailed {
				await(tt.want)
				return
			}
			await(agentdb.ValidationRequested)
			o.silent.Store(true)
			answer := func(at common.Address, hash common.Hash) {
				ok(t, r.Take(t.Context(), repute.Record{Log: types.Log{Address: at},
					Event: repute.ValidationResponse{Validator: common.Address{5}, RequestHash: hash, Response: 90}}))
			}
			answer(common.Address{6}, request)        // of another registry
			answer(common.Address{4}, common.Hash{2}) // to another request
			await(agentdb.ValidationRequested)
			answer(common.Address{4}, request)
			answer(common.Address{4}, request)
			await(agentdb.ValidationAnswered)
			o.silent.Store(false)
			await(agentdb.ValidationJudged)
		})
	}
}
