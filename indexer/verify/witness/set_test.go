package witness

import (
	"testing"

	"repute/indexer/node"
	"repute/internal/rpctest"
)

// Fifty headers count as one call, so that a long chain is read in hours.
func TestHeadersAreChargedByBatch(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	c.MineEmpty(200)
	n, err := node.New(c.URL(), node.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	numbers := make([]uint64, 200)
	for i := range numbers {
		numbers[i] = uint64(i) + 1
	}
	s := New(func() []*node.Node { return []*node.Node{n} }, 4, 4)
	headers, _, err := s.Headers(t.Context(), numbers)
	if err != nil || len(headers) != 200 || headers[199].Number != 200 {
		t.Fatalf("%d headers, %v", len(headers), err)
	}
	if left := s.limiter.Tokens(); left < 0 || left > 3 {
		t.Errorf("%v calls are left of 4", left)
	}
}
