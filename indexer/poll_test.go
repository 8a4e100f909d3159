package indexer

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"repute/indexer/node"
	"repute/internal/rpctest"
	"repute/store/chaindb"
)

// pollWorld is a chain in a simulated time: blocks are made at their slots, some of which
// are missed, and reach the node later, some much later.
type pollWorld struct {
	rnd      *rand.Rand
	interval time.Duration
	now      time.Time
	blocks   []arrival
	slot     time.Time
}

// head is the newest block that the node has.
func (w *pollWorld) head() arrival {
	for len(w.blocks) < 2 || w.blocks[len(w.blocks)-1].at.Before(w.now) {
		if w.slot = w.slot.Add(w.interval); w.rnd.IntN(100) == 0 {
			continue
		}
		delay := 150*time.Millisecond + time.Duration(max(-1, min(w.rnd.NormFloat64(), 4))*float64(w.interval)/30)
		b := arrival{number: uint64(len(w.blocks)), time: w.slot.Truncate(time.Second), at: w.slot.Add(max(0, delay))}
		if n := len(w.blocks); n > 0 && b.at.Before(w.blocks[n-1].at) {
			b.at = w.blocks[n-1].at
		}
		w.blocks = append(w.blocks, b)
	}
	i := len(w.blocks) - 1
	for i > 0 && w.blocks[i].at.After(w.now) {
		i--
	}
	return w.blocks[i]
}

// A block that is found costs one look at the head: another one at once would find nothing,
// and have the poller think that the next block is late.
func TestOneLookPerBlock(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	d := rpctest.NewProxy(t, c.URL())
	n, err := node.New(d.URL, node.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	db, wake := openStore(t), make(chan struct{}, 1)
	f := NewFollower(db, chainOf(c), n, Options{Poll: time.Hour, Wake: wake})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	const blocks = 20
	for range blocks {
		b := c.Mine().Number()
		wake <- struct{}{}
		for end := time.Now().Add(time.Minute); ; time.Sleep(2 * time.Millisecond) {
			if at, err := chaindb.Cursor(t.Context(), db, chainOf(c).ID); err == nil && at.Number == b {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("block %d is not indexed", b)
			}
		}
	}
	time.Sleep(50 * time.Millisecond) // for what comes too much
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if looks := d.Count("eth_chainId"); looks > blocks+5 {
		t.Errorf("%d looks at the head for %d blocks", looks, blocks)
	}
}

// A poller finds half of the blocks within a quarter of a second of their arrival, with
// no more than two looks a block, whatever their interval.
func TestPollerLooksWhenBlocksAreDue(t *testing.T) {
	t.Parallel()
	for _, interval := range []time.Duration{250 * time.Millisecond, 400 * time.Millisecond, time.Second,
		1500 * time.Millisecond, 2 * time.Second, 5 * time.Second, 12 * time.Second} {
		for seed := range uint64(20) {
			start := time.Date(2026, 1, 1, 0, 0, 0, int(seed*37e6), time.UTC)
			w := &pollWorld{rnd: rand.New(rand.NewPCG(seed, 8004)), interval: interval, slot: start,
				now: start.Add(10 * interval)}
			late, looks := w.run(3000)
			slices.Sort(late)
			median, p99 := late[len(late)/2], late[len(late)*99/100]
			if median > 250*time.Millisecond || looks > 2 {
				t.Errorf("blocks of %s, seed %d: found after %s, p99 %s, with %.2f looks a block; want at most 250ms and 2",
					interval, seed, median, p99, looks)
			}
			if seed == 0 {
				t.Logf("blocks of %s: found after %s, p99 %s, with %.2f looks a block", interval, median, p99, looks)
			}
		}
	}
}

// run follows the chain for so many blocks, after a while to learn.
func (w *pollWorld) run(blocks int) (late []time.Duration, looksPerBlock float64) {
	const learning = 100
	var p poller
	looks, seen := 0, uint64(0)
	for len(w.blocks) < blocks {
		w.now = w.now.Add(20 * time.Millisecond) // the question takes time
		head := w.head()
		p.observe(head.number, head.time, w.now)
		if head.number > learning {
			looks++
			for n := max(seen+1, learning); n <= head.number; n++ {
				late = append(late, w.now.Sub(w.blocks[n].at))
			}
		}
		seen = head.number
		w.now = w.now.Add(p.wait(w.now))
	}
	return late, float64(looks) / float64(len(late))
}

// Without a rhythm, and as configured, the head is looked at every so often.
func TestPollerWithoutRhythm(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var p poller
	fixed := poller{fixed: 10 * time.Millisecond}
	for i := range uint64(100) { // blocks of one time that come one by one
		now = now.Add(3 * time.Second)
		p.observe(i, now.Add(-time.Hour).Truncate(time.Hour), now)
		fixed.observe(i, now, now)
		if p.wait(now) != pollUnknown || fixed.wait(now) != 10*time.Millisecond {
			t.Fatalf("block %d: %s and %s", i, p.wait(now), fixed.wait(now))
		}
	}
}
