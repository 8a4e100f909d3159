package indexer

import (
	"errors"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/indexer/archive"
	"repute/indexer/node/jsonrpc"
	"repute/internal/rpctest"
	"repute/store"
)

// A log at a place that no column holds is refused: stored as another number it
// would make every later reading fail.
func TestImpossiblePlaces(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*types.Log){
		"log index":         func(l *types.Log) { l.Index += 1 << 31 },
		"wraps around":      func(l *types.Log) { l.Index += 1 << 32 },
		"transaction index": func(l *types.Log) { l.TxIndex += 1 << 31 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := rpctest.New(t, rpctest.Options{})
			c.Mine(c.Register(0, rpctest.Account(1), "https://a"))
			c.Mine(c.Feedback(0, rpctest.Account(2), 1, 5, "x"))
			c.MineEmpty(5)
			c.Finalize(6, 6)
			undo := c.MapLogs(rpctest.Corrupt(rpctest.AtBlock(2), change))
			db := openStore(t)
			f := follow(t, db, c, Options{StartRange: 1})
			var err error
			for range 5 {
				err = errors.Join(err, f.Step(t.Context(), store.Lease{}))
			}
			if jsonrpc.Diagnose(err).Fault != jsonrpc.FaultMalformed {
				t.Errorf("%v, want a malformed answer", err)
			}
			undo()
			stepUntilDone(t, f)
			if _, err := archive.Export(t.Context(), db, 31337, repute.BlockRange{}, &strings.Builder{}); err != nil {
				t.Errorf("export: %v", err)
			}
			wantFresh(t, db, c)
		})
	}
}

// A range continues what is stored exactly where its first block is a child of that.
func TestContinues(t *testing.T) {
	t.Parallel()
	p := &piece{first: repute.Block{Number: 2, Parent: common.Hash{1}}}
	for parent, want := range map[common.Hash]error{{}: nil, {1}: nil, {2}: errForked} {
		if err := p.continues(repute.Block{Number: 1, Hash: parent}); !errors.Is(err, want) {
			t.Errorf("after %s: %v, want %v", parent, err, want)
		}
	}
}
