package engine_test

import (
	"sync"
	"testing"

	"repute"
	"repute/trust/fixed"
	"repute/trust/flow"
	"repute/trust/rating"
	"repute/trust/rows"
)

// The graph of a block is that of its ratings, also while a pass moves the store to the block of an earlier run.
func TestGraphWhileAnotherBlockIsRead(t *testing.T) {
	t.Parallel()
	p, err := rating.DefaultParams()
	ok(t, err)
	l := newLedger(77)
	l.grow(40)
	db, _ := l.fresh(t)
	l.store(t, db, l.tip().Number)
	early, late := l.blocks[l.tip().Number/4].Block, l.tip()
	var roots []flow.Root
	for i := range rooted {
		roots = append(roots, flow.Root{Address: person(i), Weight: fixed.One})
	}
	sumOf := func(s *rows.Store, at repute.Block) [32]byte {
		graph, _, err := s.Graph(t.Context(),
			rows.GraphOf{Block: at, Roots: roots, Validations: l.chain.Validations}, p)
		ok(t, err)
		return graph.Walk(roots, p.Walk).Sum()
	}
	want := sumOf(rows.New(db, l.chain.ID), late)
	if want == sumOf(rows.New(db, l.chain.ID), early) {
		t.Fatal("both blocks have the same weights")
	}
	shared := rows.New(db, l.chain.ID)
	stop := make(chan struct{})
	var passes sync.WaitGroup
	for range 2 {
		passes.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := shared.At(t.Context(), early, l.chain.Validations, true); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 30 {
		if got := sumOf(shared, late); got != want {
			t.Errorf("the weights of block %d are %x, want %x", late.Number, got, want)
			break
		}
	}
	close(stop)
	passes.Wait()
}
