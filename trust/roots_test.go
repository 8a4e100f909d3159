package trust

import (
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/trust/fixed"
	"repute/trust/flow"
	"repute/trust/graph"
)

// A root counts until the block time it expires at, and each address once.
func TestRootsExpire(t *testing.T) {
	end := time.Unix(1000, 0)
	set := []repute.TrustRoot{{Address: common.Address{1}, Weight: repute.RootUnit / 2, Expires: end},
		{Address: common.Address{2}, Weight: 1}, {Address: common.Address{2}, Weight: 3 * repute.RootUnit}}
	before, after := graph.RootsAt(set, end.Add(-time.Second)), graph.RootsAt(set, end)
	if !slices.Equal(before, []flow.Root{{Address: common.Address{1}, Weight: fixed.One / 2},
		{Address: common.Address{2}, Weight: fixed.Int(3)}}) {
		t.Errorf("before: %v", before)
	}
	if !slices.Equal(after, []flow.Root{{Address: common.Address{2}, Weight: fixed.Int(3)}}) {
		t.Errorf("after: %v", after)
	}
}
