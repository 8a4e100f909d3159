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
)

// watch notes when the node announced a block and when the API first showed it:
// the block itself and all ratings up to it.
type watch struct {
	chain *devnet.Devnet
	url   string // of the watched agent's reputation

	mu     sync.Mutex
	blocks []*watched
	next   int                  // the first that was not visible yet
	heard  map[uint64]time.Time // announcements
	seen   view                 // the newest answer
	polls  int
	polled time.Duration
}

// watched is one block that is expected.
type watched struct {
	number  uint64
	rated   int // ratings of the agent up to it
	visible time.Time
}

// view is what an answer says.
type view struct {
	block uint64
	rated int
	at    time.Time
}

func newWatch(base string, dn *devnet.Devnet) *watch {
	return &watch{chain: dn, heard: map[uint64]time.Time{}, url: fmt.Sprintf("%s/chains/%d/agents/0/reputation", base, dn.Chain().ID)}
}

// ready waits until the product answers and has the block.
func (w *watch) ready(ctx context.Context, p *process, block uint64) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return p.await(ctx, 20*time.Millisecond, func(ctx context.Context) (bool, error) {
		v, err := w.ask(ctx)
		return err == nil && v.block >= block, nil // nobody answers at first
	})
}

// start listens and polls until the function returned is called, which gives the
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
		AsOf   struct{ Block json.Number }
		Counts struct{ Feedback json.Number }
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return v, fmt.Errorf("ask the API: %w", err)
	}
	v.at = time.Now()
	block, err := strconv.ParseUint(answer.AsOf.Block.String(), 10, 64)
	rated, err2 := strconv.Atoi(answer.Counts.Feedback.String())
	v.block, v.rated = block, rated
	return v, errors.Join(err, err2)
}

// expect adds a block to wait for.
func (w *watch) expect(number uint64, rated int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.blocks = append(w.blocks, &watched{number: number, rated: rated})
	w.settle()
}

// see takes an answer in. A block may be visible before it is known to be
// expected: the answer is kept until then.
func (w *watch) see(v view) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if v.block > w.seen.block || v.rated > w.seen.rated {
		w.seen = v
	}
	w.settle()
}

// settle marks what the newest answer shows. w.mu is held.
func (w *watch) settle() {
	for ; w.next < len(w.blocks); w.next++ {
		b := w.blocks[w.next]
		if w.seen.block < b.number || w.seen.rated < b.rated {
			return
		}
		b.visible = w.seen.at
	}
}

// await waits until everything expected was visible, the newest being the last
// block.
func (w *watch) await(ctx context.Context, last uint64) error {
	for {
		w.mu.Lock()
		done, seen := w.next == len(w.blocks), w.seen
		w.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("block %d is not visible, block %d with %d ratings is: %w", last, seen.block, seen.rated, ctx.Err())
		case <-time.After(pollPause):
		}
	}
}

// measurements gives the times from announcement to visibility. An announcement
// that the API was faster than counts as nothing.
func (w *watch) measurements() (m FollowMeasurements) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, b := range w.blocks {
		if at, ok := w.heard[b.number]; ok {
			m.All = append(m.All, max(0, float64(b.visible.Sub(at).Microseconds())/1000))
		}
	}
	m.Polls = w.polls
	if w.polls > 0 {
		m.PollMS = float64(w.polled.Microseconds()) / 1000 / float64(w.polls)
	}
	m.summarise()
	return m
}
