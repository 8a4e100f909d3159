package indexer

import (
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/prometheus/client_golang/prometheus"

	"repute"
	"repute/contracts"
	"repute/indexer/node"
	"repute/internal/rpctest"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/verifydb"
)

// dropFirst leaves the logs of a block out of the first answers that hold it.
func dropFirst(block uint64, times int) func([]types.Log) []types.Log {
	var mu sync.Mutex
	return func(logs []types.Log) []types.Log {
		mu.Lock()
		defer mu.Unlock()
		if times > 0 && len(logs) > 0 && logs[0].BlockNumber == block {
			times--
			return []types.Log{}
		}
		return logs
	}
}

func TestBloomFindsLostLogs(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		lost  int // answers without the logs
		found string
	}{"once": {1, "logs"}, "for good": {1 << 30, "empty"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := rpctest.New(t, rpctest.Options{})
			for i := range uint64(10) {
				c.Mine(c.Register(i, rpctest.Account(i), ""))
			}
			reg, v := prometheus.NewRegistry(), &nudges{}
			db := openStore(t)
			f := follow(t, db, c, Options{Metrics: NewMetrics(reg), Verifier: v})
			catchUp(t, f)
			undo := c.MapLogs(dropFirst(12, tt.lost))
			c.MineEmpty(1)
			c.Mine(c.Feedback(0, rpctest.Account(99), 1, 5, "t"))
			c.MineEmpty(1)
			catchUp(t, f)
			wantCursor(t, db, c.Head())
			if n := labeled(t, reg, "repute_bloom_suspects_total", tt.found); n != 1 {
				t.Errorf("%v blocks %s, want 1", n, tt.found)
			}
			undo()
			if tt.found == "logs" {
				wantFresh(t, db, c)
			} else if len(f.nudge) != 1 {
				t.Error("the verifier is not told to look")
			}
		})
	}
}

// A log that every answer leaves out comes with its block where blooms are strict, as
// the receipts have it; and where receipts cannot be had the chain goes on.
func TestStrictBloomSettlesBeforeTheCommit(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		bloom   Bloom
		refused string
		fails   int // how often receipts fail
		comes   bool
		doubted bool
	}{
		"strict":                  {bloom: BloomStrict, comes: true},
		"receipts one by one":     {bloom: BloomStrict, refused: "eth_getBlockReceipts", comes: true},
		"receipts at second time": {bloom: BloomStrict, fails: 2, comes: true},
		"receipts never":          {bloom: BloomStrict, fails: 1 << 30, doubted: true},
		"hint":                    {bloom: BloomHint, doubted: true},
		"off":                     {bloom: BloomOff},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := rpctest.New(t, rpctest.Options{})
			for i := range uint64(10) {
				c.Mine(c.Register(i, rpctest.Account(i), ""))
			}
			p := rpctest.NewProxy(t, c.URL())
			p.Refuse(tt.refused)
			left := tt.fails
			p.Lie = func(call rpctest.ProxyCall, a map[string]json.RawMessage) {
				if strings.Contains(call.Method, "Receipt") && left > 0 {
					left--
					delete(a, "result")
					a["error"] = json.RawMessage(`{"code":-32000,"message":"receipts are out of order"}`)
				}
			}
			db := openStore(t)
			if err := chaindb.AddChain(t.Context(), db, chainOf(c)); err != nil {
				t.Fatal(err)
			}
			n, err := node.New(p.URL, node.Options{Timeout: 20 * time.Second, OpenMin: 1, OpenMax: 1})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(n.Close)
			f := NewFollower(db, chainOf(c), n, Options{Bloom: tt.bloom})
			stepUntilDone(t, f)
			p.Lose(func(l types.Log) bool { return l.BlockNumber == 12 }, true, false)
			c.MineEmpty(1)
			c.Mine(c.Feedback(0, rpctest.Account(99), 1, 5, "t"))
			c.MineEmpty(1)
			eventually(t, "the head", func() bool {
				if err := f.Step(t.Context(), store.Lease{}); err != nil && errors.Is(err, ErrNothingNew) {
					return cursorOf(t, db).Number == 13
				}
				return false
			})
			logs, _, err := verifydb.Logs(t.Context(), db, 31337, repute.BlockRange{From: 12, To: 12}, 10)
			if err != nil || (len(logs) == 1) != tt.comes {
				t.Errorf("%d logs of the block are stored, %v; want them: %t", len(logs), err, tt.comes)
			}
			if (len(f.nudge) == 1) != tt.doubted {
				t.Errorf("the verifier is told to look: %t", len(f.nudge) == 1)
			}
		})
	}
}

// labeled reads a counter's value with a label value.
func labeled(t *testing.T, reg *prometheus.Registry, name, label string) (sum float64) {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if f.GetName() == name && l.GetValue() == label {
					sum += m.GetCounter().GetValue()
				}
			}
		}
	}
	return sum
}

// Blooms of chains that have none worth the name are not asked about, and never
// once they missed a log.
func TestBloomProbe(t *testing.T) {
	t.Parallel()
	registry, topic := rpctest.Account(1), common.Hash{1}
	honest, full := types.Bloom{}, types.Bloom{}
	honest.Add(registry[:])
	honest.Add(topic[:])
	for i := range full {
		full[i] = 0xff
	}
	span := func(bloom *types.Bloom) *node.Span {
		s := &node.Span{From: "node", Sealed: map[uint64]node.Sealed{}}
		for n := range uint64(6) {
			s.Headers = append(s.Headers, repute.Block{Number: n})
			s.Logs = append(s.Logs, types.Log{Address: registry, Topics: []common.Hash{topic}, BlockNumber: n})
			if bloom != nil {
				s.Sealed[n] = node.Sealed{Bloom: *bloom}
			}
		}
		return s
	}
	for name, tt := range map[string]struct {
		bloom    *types.Bloom
		believed bool
		suspects int
	}{"honest": {&honest, true, 6}, "empty": {&types.Bloom{}, false, 0}, "full": {&full, true, 0},
		"missing": {nil, false, 0}} {
		var b bloomTrust
		s := span(tt.bloom)
		if got := b.believed(s); got != tt.believed {
			t.Errorf("%s: believed %t", name, got)
		}
		d := contracts.Decoder{Addresses: []common.Address{registry},
			Emits: map[common.Address][]common.Hash{registry: {topic}}}
		if n := len(suspects(&d, s)); n != 0 {
			t.Errorf("%s: %d suspects though all logs are there", name, n)
		}
		s.Logs = nil
		if n := len(suspects(&d, s)); n != tt.suspects {
			t.Errorf("%s: %d suspects without logs, want %d", name, n, tt.suspects)
		}
	}
	var b bloomTrust
	if !b.believed(span(&honest)) || b.believed(span(&types.Bloom{})) || b.believed(span(&honest)) {
		t.Error("blooms that missed a log are believed again")
	}
	other := span(&honest)
	if other.From = "other"; !b.believed(other) {
		t.Error("another endpoint's blooms are not judged by themselves")
	}
}
