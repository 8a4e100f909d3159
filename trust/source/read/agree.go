package read

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"golang.org/x/sync/errgroup"

	"repute"
	"repute/indexer/node"
	"repute/trust/source"
)

// tries is how often a question is asked while waiting may help.
const tries = 3

// patiently asks again where waiting may help.
func patiently(ctx context.Context, ask func() error) (err error) {
	for range tries {
		if err = ask(); err == nil || !node.WaitingHelps(err) || ctx.Err() != nil {
			return err
		}
		repute.Pause(ctx, time.Second)
	}
	return err
}

// agreed asks all endpoints of a session the same, at the same time, and returns what they say where it is the same.
func agreed[T any](ctx context.Context, s *session, what string, same func(a, b T) bool,
	ask func(context.Context, *node.Node) (T, error)) (first T, err error) {
	answers := make([]T, len(s.nodes))
	g, ctx := errgroup.WithContext(ctx)
	for i, n := range s.nodes {
		g.Go(func() (err error) {
			answers[i], err = ask(ctx, n)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return first, err
	}
	for i := range answers {
		if !same(answers[0], answers[i]) {
			return first, fmt.Errorf("%s and %s say different things of %s at block %d of chain %d", s.nodes[0].Host(),
				s.nodes[i].Host(), what, s.at.Number, s.chain)
		}
	}
	return answers[0], nil
}

// call makes calls through Multicall3.
func (s *session) call(ctx context.Context, queries []source.Query) ([]answer, error) {
	if _, err := s.factsOf(ctx, []common.Address{s.reader.calls.address}); err != nil {
		return nil, err
	}
	if s.facts[s.reader.calls.address].empty {
		return nil, fmt.Errorf("there is no Multicall3 at %s on chain %d", s.reader.calls.address, s.chain)
	}
	same := func(a, b []answer) bool {
		return slices.EqualFunc(a, b, func(a, b answer) bool {
			return a.Success == b.Success && bytes.Equal(a.ReturnData, b.ReturnData)
		})
	}
	return agreed(ctx, s, "a contract", same, func(ctx context.Context, n *node.Node) ([]answer, error) {
		return s.reader.calls.ask(ctx, n, s.at, queries)
	})
}
