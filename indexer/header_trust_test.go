package indexer

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/internal/rpctest"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/query"
)

// forging is a lie about the logs of one block: those of a transaction more.
func forging(c *rpctest.Chain, block uint64, made []types.Log) func([]types.Log) []types.Log {
	return func(logs []types.Log) []types.Log {
		i := slices.IndexFunc(logs, rpctest.AtBlock(block))
		if i < 0 {
			return logs
		}
		forged := slices.Clone(made)
		for n := range forged {
			l := &forged[n]
			l.BlockNumber, l.BlockHash, l.TxHash, l.TxIndex = block, logs[i].BlockHash, logs[i].TxHash, logs[i].TxIndex
			l.Index = 100 + uint(n)
		}
		return append(slices.Clone(logs), forged...)
	}
}

// tryFor steps until nothing is new or only failures come.
func tryFor(t *testing.T, f *Follower, steps int) (last error) {
	t.Helper()
	for range steps {
		last = f.Step(t.Context(), store.Lease{})
	}
	return last
}

// A log that the proven bloom of its block excludes is never stored, in a backfill and
// at the head. Another endpoint's answer is taken instead.
func TestForgedLogsAreRefused(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ live, second bool }{
		"backfill": {}, "at the head": {live: true}, "backfill, two endpoints": {second: true},
		"at the head, two endpoints": {true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := rpctest.New(t, rpctest.Options{})
			b := a.Second(t)
			mine := func() {
				for i := range uint64(6) {
					a.Mine(a.Register(i, rpctest.Account(i), ""))
				}
				a.MineEmpty(2)
			}
			if !tt.live {
				mine()
				a.Finalize(8, 8)
				b.Finalize(8, 8)
			}
			urls := []string{a.URL()}
			if tt.second {
				urls = append(urls, b.URL())
			}
			db := openStore(t)
			f := overPool(t, db, a, urls...)
			if tt.live {
				tryFor(t, f, 2)
				mine()
			}
			a.MapLogs(forging(a, 3, a.Feedback(0, rpctest.Account(99), 1, 100, "forged")))
			last := tryFor(t, f, 20)
			page, err := query.Feedback(t.Context(), db, repute.AgentID{ChainID: 31337, Registry: a.Identity},
				query.FeedbackFilter{Limit: 10, At: repute.At{Finality: repute.Latest}})
			if err == nil && len(page.Items) > 0 {
				t.Errorf("a forged rating is stored: %+v", page.Items)
			}
			cursor := cursorOf(t, db).Number
			if tt.second && cursor != a.Head().Number() || !tt.second && cursor >= 3 {
				t.Errorf("stored up to block %d, last: %v", cursor, last)
			}
		})
	}
}

// Where headers have blooms that lack their blocks' logs, the receipts speak for the
// logs, and the chain goes on.
func TestBloomlessHeadersHoldNothingUp(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{Bloomless: true})
	for i := range uint64(12) {
		c.Mine(c.Register(i, rpctest.Account(i), ""))
	}
	c.Finalize(6, 6)
	db := openStore(t)
	f := follow(t, db, c, Options{})
	catchUp(t, f)
	wantCursor(t, db, c.Head())
	if s := status(t, db); s.Agents != 12 {
		t.Errorf("%d agents, want 12", s.Agents)
	}
	if n := c.Calls("eth_getBlockReceipts"); n > 10 {
		t.Errorf("%d blocks' receipts were read to learn that blooms tell nothing", n)
	}
}

// A block's time that its hash does not stand for is never stored, where the logs come
// with it and where they do not.
func TestWrongTimesAreRefused(t *testing.T) {
	t.Parallel()
	const year = 365 * 86_400
	for name, tt := range map[string]struct {
		bare, live bool
		off        uint64
	}{
		"backfill": {off: year}, "at the head": {live: true, off: year}, "one second": {off: 1},
		"logs without times": {bare: true, off: year},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := rpctest.New(t, rpctest.Options{NoBlockTime: tt.bare})
			for i := range uint64(12) {
				c.Mine(c.Register(i, rpctest.Account(i), ""))
			}
			if !tt.live {
				c.Finalize(12, 12)
			}
			c.MapLogs(rpctest.Corrupt(rpctest.AtBlock(5), func(l *types.Log) { l.BlockTimestamp += tt.off }))
			c.Inject(rpctest.On("eth_getBlockByNumber", func(call rpctest.Call) *rpctest.Answer {
				if string(call.Params[0]) != `"0x5"` {
					return nil
				}
				b := c.Blocks()[5]
				said := map[string]any{}
				raw, _ := json.Marshal(b.Header)
				_ = json.Unmarshal(raw, &said)
				said["hash"], said["timestamp"] = b.Hash(), hexutil.Uint64(b.Header.Time+tt.off)
				return &rpctest.Answer{Result: said}
			}))
			db := openStore(t)
			last := tryFor(t, overPool(t, db, c, c.URL()), 20)
			stored, err := chaindb.StoredBlock(t.Context(), db, 31337, 5)
			if err == nil && stored.Time.Unix() != int64(c.Blocks()[5].Header.Time) {
				t.Errorf("stored %+v, last: %v", stored, last)
			}
		})
	}
}
