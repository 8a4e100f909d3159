package indexer

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/ethereum/go-ethereum/common/hexutil"

	"repute"
	"repute/internal/rpctest"
	"repute/store/chaindb"
	"repute/store/scoredb"
)

// postdate makes an endpoint say another time of blocks than their hashes stand for.
func postdate(t *testing.T, c *rpctest.Chain, which func(number uint64) bool) {
	t.Helper()
	c.Inject(rpctest.On("eth_getBlockByNumber", func(call rpctest.Call) *rpctest.Answer {
		var tag string
		if err := json.Unmarshal(call.Params[0], &tag); err != nil {
			t.Error(err)
		}
		number, err := hexutil.DecodeUint64(tag)
		if tag == "latest" {
			number, err = c.Head().Number(), nil
		}
		if err != nil || !which(number) {
			return nil
		}
		b := c.Blocks()[number]
		said := map[string]any{}
		raw, err := json.Marshal(b.Header)
		if err == nil {
			err = json.Unmarshal(raw, &said)
		}
		if err != nil {
			t.Error(err)
		}
		said["hash"], said["timestamp"] = b.Hash(), hexutil.Uint64(b.Header.Time+1)
		return &rpctest.Answer{Result: said}
	}))
}

// A header that is not what its hash says ends no epoch, and the next endpoint is asked; it is
// believed where no header of the chain can be recomputed.
func TestBoundaryHeaderIsWhatItsHashSays(t *testing.T) {
	t.Parallel()
	one := func(number uint64) bool { return number == 80 }
	all := func(uint64) bool { return true }
	for name, c := range map[string]struct {
		first, second func(number uint64) bool
		wants         int64 // seconds that the stored time is off; -1: none is stored
	}{
		"one lies":                         {first: one, wants: 0},
		"one lies of all headers":          {first: all, wants: 0},
		"both lie":                         {first: one, second: one, wants: -1},
		"one lies and the other is exotic": {first: one, second: all, wants: 1},
		"an exotic chain":                  {first: all, second: all, wants: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := twoEndpoints(t, 88)
			a.Finalize(85, 85)
			b.Finalize(85, 85)
			db := openStore(t)
			catchUp(t, overPool(t, db, a, a.URL(), b.URL()))
			if err := scoredb.SetEpoch(t.Context(), db, chainOf(a).ID, 10); err != nil {
				t.Fatal(err)
			}
			for chain, which := range map[*rpctest.Chain]func(uint64) bool{a: c.first, b: c.second} {
				if which != nil {
					postdate(t, chain, which)
				}
			}
			a.Mine()
			a.Finalize(86, 86)
			b.Finalize(86, 86)
			catchUp(t, overPool(t, db, a, a.URL(), b.URL()))
			stored, err := chaindb.StoredBlock(t.Context(), db, chainOf(a).ID, 80)
			if c.wants < 0 {
				if !errors.Is(err, repute.ErrNotFound) {
					t.Errorf("stored %+v, %v", stored, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if off := stored.Time.Unix() - int64(a.Blocks()[80].Header.Time); off != c.wants {
				t.Errorf("the stored time is %d seconds off, want %d", off, c.wants)
			}
		})
	}
}
