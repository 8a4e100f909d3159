package read

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"repute/indexer/node"
	"repute/internal/rpctest"
	"repute/trust/source"
)

// A source of another chain is read at the last final block that is not after the epoch's end, and counts for addresses
// without code on both chains. Until that block is known the source is incomplete.
func TestHomeOnAnotherChain(t *testing.T) {
	t.Parallel()
	w, s, _ := booked(t) // blocks every 10 s
	here := &world{Chain: rpctest.New(t, rpctest.Options{ChainID: 137, Start: 1_700_000_000, BlockTime: 33}), t: t,
		contracts: map[common.Address]*contract{numbered(1): {code: []byte{0x60}},
			numbered(2): {code: []byte{0xef, 1, 0, 7}}}}
	here.Inject(here.rule(nil))
	w.set(func() { w.contracts[numbered(3)] = &contract{code: []byte{0x60}} })
	here.MineEmpty(4)
	end := at(here.Head()) // 132 s after the start
	r := readerOf(t, map[uint64]*node.Pool{8453: poolOf(t, 8453, w.URL()), 137: poolOf(t, 137, here.URL())})
	w.MineEmpty(3) // to 130 s
	w.Finalize(w.Head().Number(), w.Head().Number()-1)
	want(t, one(t, r, 137, end, s, addresses(12), source.Past{}), source.StatusIncomplete, "epoch's end yet")
	w.MineEmpty(400)
	for range 2 { // the second time from what is known
		w.Finalize(w.Head().Number(), w.Head().Number()-2)
		got := one(t, r, 137, end, s, addresses(12), source.Past{})
		want(t, got, source.StatusOK)
		if b := w.Blocks()[13]; got.Block != b.Number() || got.Hash != b.Hash() || got.Chain != 8453 ||
			got.Time != b.Header.Time {
			t.Errorf("read at %+v, want block %d", got.State, b.Number())
		}
		if len(got.Credentials) != 8 {
			t.Errorf("%d credentials, want eight: two of ten are of contracts", len(got.Credentials))
		}
		for _, c := range got.Credentials {
			if c.Rater == numbered(1) || c.Rater == numbered(3) || c.Chain != 8453 {
				t.Errorf("%+v", c)
			}
		}
	}
	if r.Reaches(56) || !r.Reaches(8453) {
		t.Error("reaches other chains than those that are configured")
	}
	lost := readerOf(t, map[uint64]*node.Pool{137: poolOf(t, 137, here.URL())})
	want(t, one(t, lost, 137, end, s, addresses(12), source.Past{}), source.StatusIncomplete,
		"no endpoint of chain 8453")
}
