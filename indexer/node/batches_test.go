package node

import (
	"context"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/rpc"

	"repute"
	"repute/internal/rpctest"
)

// A refusal that speaks of batches does not make requests small for ever.
func TestBatchesComeBack(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	c.MineEmpty(60)
	n := nodeOf(t, c, Options{})
	undo := c.Inject(rpctest.On("eth_getBlockByNumber",
		rpctest.Always(rpctest.Answer{Error: &rpctest.Error{Code: -32005, Message: "batch exceeds compute limit"}})))
	if _, err := n.Blocks(t.Context(), Query{From: 1, To: 50, Linked: true}.numbers()); err == nil ||
		n.batches.Size() != 1 {
		t.Fatalf("%d calls in a request after refusals, %v", n.batches.Size(), err)
	}
	undo()
	for range 100 {
		if _, err := n.Blocks(t.Context(), []uint64{5, 6}); err != nil {
			t.Fatal(err)
		}
	}
	if n.batches.Size() != 50 {
		t.Errorf("after 100 good answers %d calls in a request, want 50", n.batches.Size())
	}
}

// What a contract says is not the endpoint's word.
func TestRevertIsNoRefusal(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	c.Inject(rpctest.On("eth_call", rpctest.Always(rpctest.Answer{
		Error: &rpctest.Error{Code: 3, Message: "execution reverted: batch limit exceeded, too many requests"}})))
	n := nodeOf(t, c, Options{})
	var a, b any
	batch := []rpc.BatchElem{{Method: "eth_call", Result: &a}, {Method: "eth_call", Result: &b}}
	if err := n.BatchCallContext(t.Context(), batch); err != nil || batch[0].Error == nil || batch[1].Error == nil {
		t.Fatalf("%v, %v", err, batch)
	}
	var health repute.Endpoint
	n.limiter.Report(&health)
	if n.batches.Size() != 50 || health.RateLimit != 0 {
		t.Errorf("%d calls in a request and %g requests a second after a contract's words", n.batches.Size(),
			health.RateLimit)
	}
	if o := outcomeOf(context.Background(), batch, nil, time.Second); o.Err != nil {
		t.Errorf("counts as %v", o.Err)
	}
}
