package engine_test

import (
	"context"
	"testing"
	"time"

	"repute/trust/engine"
)

// An engine hears of an event: it scores the agent long before its next poll.
func TestEventWakesTheEngine(t *testing.T) {
	t.Parallel()
	l, db := settledVillage(t)
	e, err := engine.New(db, engine.EngineOptions{Params: shortEpochs(t), Poll: time.Hour})
	ok(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = e.Run(ctx) }()
	defer func() { cancel(); <-done }()
	await(t, "the score follows a rating", func() bool {
		s := l.state() // once more where nobody listened yet
		l.mine(s, s.rate(1, person(3), 50))
		l.store(t, db, 60)
		for range 100 {
			if newest(t, db, 1).Block.Number == l.tip().Number {
				return true
			}
			time.Sleep(2 * time.Millisecond)
		}
		return false
	})
}
