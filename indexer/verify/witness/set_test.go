package witness

import (
	"testing"

	"repute/indexer/node"
	"repute/indexer/node/jsonrpc"
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

// An endpoint that refuses the rate is asked at half of it, and at the whole again later.
func TestRateFollowsRefusals(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	n, err := node.New(c.URL(), node.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	s := New(func() []*node.Node { return []*node.Node{n} }, 20, 20)
	s.Adapt(&jsonrpc.AnswerError{What: "nothing to do with rates"})
	if s.limiter.Limit() != 20 {
		t.Errorf("%v after another failure", s.limiter.Limit())
	}
	c.Inject(rpctest.On("eth_getBlockByNumber",
		rpctest.Always(rpctest.Answer{Error: &rpctest.Error{Code: -32005, Message: "rate limit exceeded"}})))
	_, _, err = s.Headers(t.Context(), []uint64{0})
	if s.Adapt(err); s.limiter.Limit() != 10 {
		t.Errorf("%v after %v", s.limiter.Limit(), err)
	}
	for range 10 {
		s.Adapt(nil)
	}
	if s.limiter.Limit() != 20 {
		t.Errorf("%v after it answers again", s.limiter.Limit())
	}
	for range 100 {
		s.Adapt(err)
	}
	if s.limiter.Limit() < 0.5 {
		t.Errorf("%v after a hundred refusals: nothing would be verified", s.limiter.Limit())
	}
}
