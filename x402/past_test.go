package x402_test

import (
	"context"
	"testing"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/core/types"
	"pgregory.net/rapid"

	"repute/x402"
)

// past is a chain by the times of its blocks, with logs in some of them.
type past struct {
	times []uint64
	logs  map[uint64]bool
	most  uint64 // blocks that one question asked for
	asked int
}

// Newest implements x402.Blocks.
func (p *past) Newest(context.Context) (uint64, error) { return uint64(len(p.times) - 1), nil }

// Time implements x402.Blocks.
func (p *past) Time(_ context.Context, number uint64) (uint64, error) {
	p.asked++
	return p.times[number], nil
}

// Between implements x402.Blocks.
func (p *past) Between(_ context.Context, q ethereum.FilterQuery) (out []types.Log, err error) {
	p.asked++
	from, to := q.FromBlock.Uint64(), q.ToBlock.Uint64()
	p.most = max(p.most, to-from+1)
	for n := from; n <= to; n++ {
		if p.logs[n] {
			out = append(out, types.Log{BlockNumber: n})
		}
	}
	return out, nil
}

// TestPastLogs: every log of the window is found or the window is not said to be looked at as a whole, whenever
// it was; blocks after the window are left out.
func TestPastLogs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := &past{logs: map[uint64]bool{}}
		at, blocks := rapid.Uint64Range(1, 100).Draw(t, "first"), rapid.IntRange(1, 45_000).Draw(t, "blocks")
		pace := rapid.Uint64Range(0, 3).Draw(t, "pace")
		for n := range blocks {
			p.times = append(p.times, at)
			at += pace + uint64(n%2)
		}
		for range rapid.IntRange(0, 4).Draw(t, "logs") {
			p.logs[rapid.Uint64Range(0, uint64(blocks-1)).Draw(t, "log")] = true
		}
		w := x402.Window{Since: rapid.Uint64Range(0, at+10).Draw(t, "since")}
		if rapid.Bool().Draw(t, "ends") {
			w.Until = w.Since + rapid.Uint64Range(1, 30_000).Draw(t, "for")
		}
		out, whole, err := x402.PastLogs(t.Context(), p, ethereum.FilterQuery{}, w)
		if err != nil {
			t.Fatal(err)
		}
		in := func(n uint64) bool { return p.times[n] >= w.Since && (w.Until == 0 || p.times[n] < w.Until) }
		newest := -1
		for n := range p.logs {
			if in(n) {
				newest = max(newest, int(n))
			}
		}
		if whole && newest >= 0 {
			t.Errorf("the log of block %d in the window is not found", newest)
		}
		for i, l := range out {
			if i > 0 && l.BlockNumber < out[i-1].BlockNumber ||
				w.Until > 0 && l.BlockNumber > 0 && p.times[l.BlockNumber-1] >= w.Until {
				t.Errorf("log of block %d after the window, or out of order", l.BlockNumber)
			}
		}
		if len(out) > 0 && newest >= 0 && out[len(out)-1].BlockNumber < uint64(newest) {
			t.Errorf("the newest log is of block %d, found is %d", newest, out[len(out)-1].BlockNumber)
		}
		if p.most > 1000 || p.asked > 100 {
			t.Errorf("%d questions of up to %d blocks", p.asked, p.most)
		}
	})
}

// TestPastLogsLongAgo: a payment is found however many blocks there are since its authorization ended.
func TestPastLogsLongAgo(t *testing.T) {
	t.Parallel()
	p := &past{logs: map[uint64]bool{50_000: true}}
	for n := range uint64(1_000_000) {
		p.times = append(p.times, 1000+n)
	}
	out, _, err := x402.PastLogs(t.Context(), p, ethereum.FilterQuery{}, x402.Window{Since: 50_900, Until: 51_060})
	if err != nil || len(out) != 1 || out[0].BlockNumber != 50_000 {
		t.Errorf("%+v %v", out, err)
	}
	for since, whole := range map[uint64]bool{51_010: true, 0: false, 20: false} {
		delete(p.logs, 50_000)
		if out, got, err := x402.PastLogs(t.Context(), p, ethereum.FilterQuery{},
			x402.Window{Since: since, Until: 51_060}); err != nil ||
			len(out) != 0 || got != whole {
			t.Errorf("since %d: %v %v %v", since, out, got, err)
		}
	}
}
