package apibench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"repute/internal/bench/harness"
	"repute/store/webhookdb"
)

// sink is a receiver of webhooks that accepts every message.
type sink struct {
	address string
	close   func() error

	// mu protects the following fields: messages come over several connections.
	mu          sync.Mutex
	got, want   int // messages; want is set before the first one comes
	first, last time.Time
	done        chan struct{} // closed when got reaches want
}

// newSink starts a sink.
func newSink() (s *sink, err error) {
	s = &sink{done: make(chan struct{})}
	url, stop, err := harness.Serve(http.HandlerFunc(s.take))
	s.address, s.close = strings.TrimPrefix(url, "http://"), stop
	return s, err
}

// take accepts a message.
func (s *sink) take(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = time.Now()
	if s.got == 0 {
		s.first = s.last
	}
	if s.got++; s.got == s.want {
		close(s.done)
	}
}

// perSecond waits until the sink has the wanted messages, and returns the rate from the first one to the last. It fails
// after patience, with the number that came.
func (s *sink) perSecond(ctx context.Context) (float64, error) {
	select {
	case <-s.done:
		s.mu.Lock()
		defer s.mu.Unlock()
		return float64(s.want-1) / s.last.Sub(s.first).Seconds(), nil
	case <-time.After(patience):
		s.mu.Lock()
		defer s.mu.Unlock()
		return 0, fmt.Errorf("%d of %d messages came", s.got, s.want)
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// webhooks measures how many messages a second one receiver gets while the feed has more of them. All changes are
// written before the webhook is added, which begins behind the newest change of before: writing and sending do not
// share the time.
func (b *bench) webhooks(ctx context.Context) error {
	newest, err := b.db.NewestChange(ctx)
	if err != nil {
		return err
	}
	w, err := newWriter(ctx, b.db, b.o.Agents)
	if err != nil {
		return err
	}
	w.index = 1 << 19 // clients that gave no rating before
	// Whole batches, at least as many messages as were asked for: each rating is one.
	batches := b.o.Messages/(batchBlocks*perBlock) + 1
	b.sink.want = batches * batchBlocks * perBlock
	for range batches {
		if err := w.write(ctx, batchBlocks); err != nil {
			return err
		}
	}
	hook, err := webhookdb.Add(ctx, b.db, webhookdb.Webhook{URL: "http://" + b.sink.address + "/", Cursor: newest,
		By: "bench"})
	if err != nil {
		return err
	}
	b.m.Webhooks, err = b.sink.perSecond(ctx)
	return errors.Join(err, webhookdb.Remove(context.WithoutCancel(ctx), b.db, hook.ID))
}
