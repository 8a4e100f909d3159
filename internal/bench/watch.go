package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"

	"repute/devnet"
	"repute/internal/bench/harness"
)

// watch notes when the node announced a block and when the API first showed it:
// the block itself with all ratings up to it, and a score that counts them.
type watch struct {
	chain *devnet.Devnet
	url   string // of the watched agent's reputation

	// mu protects the following fields: listen, poll and the maker of blocks use them at the same time.
	mu      sync.Mutex
	blocks  []*watched           // expected, in ascending order
	visible seen                 // blocks that an answer showed
	scored  seen                 // blocks that a score was of
	heard   map[uint64]time.Time // announcements
	polls   int                  // answers read
	polled  time.Duration        // spent on them, pauses included
}

// seen is how far answers came.
type seen struct {
	next   int  // the first block not seen yet
	newest view // answer
}

// watched is one block that is expected. The times are zero until an answer shows the block.
type watched struct {
	number          uint64
	rated           int // ratings of the agent up to it
	visible, scored time.Time
}

// view is what an answer says, and when it was read to its end.
type view struct {
	block  uint64
	rated  int
	scored uint64 // block of the score, 0 without
	at     time.Time
}

// newWatch watches the agent with token 0, which prepare registers first, in the API at a base URL.
func newWatch(base string, dn *devnet.Devnet) *watch {
	return &watch{chain: dn, heard: map[uint64]time.Time{}, url: fmt.Sprintf("%s/chains/%d/agents/0/reputation", base,
		dn.Chain().ID)}
}

// ready waits until the product answers and has the block.
func (w *watch) ready(ctx context.Context, p *harness.Process, block uint64) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return p.Await(ctx, 20*time.Millisecond, func(ctx context.Context) (bool, error) {
		v, err := w.ask(ctx)
		return err == nil && v.block >= block, nil // nobody answers at first
	})
}

// start listens and polls until the returned function is called, which returns the
// first failure.
func (w *watch) start(ctx context.Context) (stop func() error, err error) {
	client, err := ethclient.DialContext(ctx, w.chain.WSURL())
	if err != nil {
		return nil, fmt.Errorf("listen for blocks: %w", err)
	}
	heads := make(chan *types.Header, 64)
	sub, err := client.SubscribeNewHead(ctx, heads)
	if err != nil {
		client.Close()
		return nil, fmt.Errorf("listen for blocks: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { w.listen(ctx, heads) })
	var failed error
	running.Go(func() { failed = w.poll(ctx) })
	return func() error {
		cancel()
		running.Wait()
		sub.Unsubscribe()
		client.Close()
		return failed
	}, nil
}

// listen notes when the node announced each block, until ctx ends. It listens to the node itself, over a connection of
// its own, also where the product is given another endpoint.
func (w *watch) listen(ctx context.Context, heads <-chan *types.Header) {
	for {
		select {
		case <-ctx.Done():
			return
		case h := <-heads:
			w.mu.Lock()
			w.heard[h.Number.Uint64()] = time.Now()
			w.mu.Unlock()
		}
	}
}

// pollPause is how long the API is left alone between two questions.
const pollPause = 5 * time.Millisecond

// poll asks the API again and again. How long a question and its pause took is the error of all times here.
func (w *watch) poll(ctx context.Context) error {
	for began := time.Now(); ; began = time.Now() {
		v, err := w.ask(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		w.see(v)
		time.Sleep(pollPause)
		w.mu.Lock()
		w.polls++
		w.polled += time.Since(began)
		w.mu.Unlock()
	}
}

// ask reads one answer.
func (w *watch) ask(ctx context.Context) (v view, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url, nil)
	if err != nil {
		return v, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return v, fmt.Errorf("ask the API: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return v, fmt.Errorf("ask the API: %s", resp.Status)
	}
	var answer struct {
		AsOf     struct{ Block json.Number }
		Counts   struct{ Feedback json.Number }
		ScoredAt *struct{ Block json.Number }
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return v, fmt.Errorf("ask the API: %w", err)
	}
	v.at = time.Now()
	var errs [3]error
	v.block, errs[0] = strconv.ParseUint(answer.AsOf.Block.String(), 10, 64)
	v.rated, errs[1] = strconv.Atoi(answer.Counts.Feedback.String())
	if at := answer.ScoredAt; at != nil {
		v.scored, errs[2] = strconv.ParseUint(at.Block.String(), 10, 64)
	}
	return v, errors.Join(errs[:]...)
}

// expect adds a block to wait for.
func (w *watch) expect(number uint64, rated int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.blocks = append(w.blocks, &watched{number: number, rated: rated})
	w.settle()
}

// see takes an answer in. A block may be visible before it is known to be
// expected: the answer is kept until then. Only the first answer that shows more is
// kept, since its time is the one that counts.
func (w *watch) see(v view) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if newest := w.visible.newest; v.block > newest.block || v.rated > newest.rated {
		w.visible.newest = v
	}
	if v.scored > w.scored.newest.scored {
		w.scored.newest = v
	}
	w.settle()
}

// settle marks what the newest answers show. w.mu is held.
func (w *watch) settle() {
	w.visible.settle(w.blocks, func(b *watched, v view) bool { return v.block >= b.number && v.rated >= b.rated },
		func(b *watched) *time.Time { return &b.visible })
	w.scored.settle(w.blocks, func(b *watched, v view) bool { return v.scored >= b.number },
		func(b *watched) *time.Time { return &b.scored })
}

// settle marks the blocks that the newest answer shows, from the first one that none has shown. Blocks are visible in
// their order, so that it ends at the first that the answer does not show.
func (s *seen) settle(blocks []*watched, shows func(*watched, view) bool, at func(*watched) *time.Time) {
	for ; s.next < len(blocks) && shows(blocks[s.next], s.newest); s.next++ {
		*at(blocks[s.next]) = s.newest.at
	}
}

// await waits until everything expected was visible and scored, the newest being the
// last block.
func (w *watch) await(ctx context.Context, last uint64) error {
	for {
		w.mu.Lock()
		done, shown, scored := min(w.visible.next, w.scored.next) == len(w.blocks), w.visible.newest, w.scored.newest
		w.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("block %d is not visible and scored, block %d with %d ratings is, and a score of block %d: %w",
				last, shown.block, shown.rated, scored.scored, ctx.Err())
		case <-time.After(pollPause):
		}
	}
}

// measurements returns the times from announcement to visibility, and to a score. A block
// that the API showed before its announcement counts as 0. A block whose announcement was
// not heard is left out: its time is not known.
func (w *watch) measurements() (m FollowMeasurements) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var visible, scored []float64
	for _, b := range w.blocks {
		if at, ok := w.heard[b.number]; ok {
			visible, scored = append(visible, millis(at, b.visible)), append(scored, millis(at, b.scored))
		}
	}
	m.Visible, m.Scored, m.Polls = delaysOf(visible), delaysOf(scored), w.polls
	if w.polls > 0 {
		m.PollMS = harness.Millis(w.polled) / float64(w.polls)
	}
	return m
}

// millis is the time between two moments in milliseconds, 0 where the second was earlier.
func millis(from, to time.Time) float64 { return max(0, harness.Millis(to.Sub(from))) }
