package wallet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
)

// quorum is how many endpoints MUST return the same answer before money moves because of it. A single
// configured endpoint is trusted alone: that is the operator's choice, and Open logs a warning.
const quorum = 2

// quorum returns how many endpoints of this chain must agree.
func (c *chain) quorum() int { return min(quorum, len(c.nodes)) }

// A block may be too new for all endpoints but one; therefore a read that needs agreement is
// retried with growing pauses.
const (
	agreeTries = 4
	agreePause = 100 * time.Millisecond
)

// answer is one endpoint's answer at the common block.
type answer[T any] struct {
	by    *endpoint
	at    *head
	value T
	err   error // a refusal by the contract: an answer too
}

// fewError is returned when fewer endpoints answered than must agree.
type fewError struct{ err error }

// Error returns the error of the endpoints that failed.
func (e *fewError) Error() string { return e.err.Error() }

// Unwrap returns repute.ErrUnavailable.
func (e *fewError) Unwrap() error { return repute.ErrUnavailable }

// agree calls read with every endpoint for the same block, which is pinned by its hash: at, or the
// newest block that two endpoints have. It returns the answers if at least two endpoints answer and
// none contradicts another. differ returns how two answers contradict each other, empty if they do
// not. Every read that decides about money MUST be made by agree. The error is repute.ErrUnavailable
// if too few endpoints answer or two disagree, and repute.ErrInvalid if the contract refuses the call
// according to all of them.
func agree[T any](ctx context.Context, c *chain, at *common.Hash,
	read func(context.Context, *endpoint, *head) (T, error), differ func(a, b *T) string) ([]T, *head, error) {
	if err := c.checkChain(ctx); err != nil {
		return nil, nil, err
	}
	for try := 1; ; try++ {
		values, block, err := agreeOnce(ctx, c, at, read, differ)
		var few *fewError
		if !errors.As(err, &few) || try == agreeTries || len(c.nodes) == 1 {
			return values, block, err
		}
		select {
		case <-time.After(time.Duration(try) * agreePause):
		case <-ctx.Done():
			return nil, nil, err
		}
	}
}

// agreeOnce is one attempt of agree.
func agreeOnce[T any](ctx context.Context, c *chain, at *common.Hash,
	read func(context.Context, *endpoint, *head) (T, error), differ func(a, b *T) string) ([]T, *head, error) {
	newest, pinned := make([]*head, len(c.nodes)), at == nil
	if pinned {
		hash, err := c.pin(ctx, newest)
		if err != nil {
			return nil, nil, err
		}
		at = &hash
	}
	answers := make([]answer[T], len(c.nodes))
	err := c.each(ctx, func(e *endpoint) (err error) {
		block := newest[e.place]
		switch {
		case block == nil && pinned:
			return nil // it has just failed to return the newest block
		case block == nil || block.Hash != *at:
			if block, err = e.blockByHash(ctx, *at); err != nil {
				return err
			}
		}
		value, err := read(ctx, e, block)
		if err != nil && (isDown(err) || !errors.Is(err, repute.ErrInvalid)) {
			return err
		}
		answers[e.place] = answer[T]{e, block, value, err}
		return nil
	})
	return judged(ctx, c, slices.DeleteFunc(answers, func(a answer[T]) bool { return a.by == nil }), err, differ)
}

// judged compares answers. The first answer is the reference; failed has the errors of the endpoints
// without an answer.
func judged[T any](ctx context.Context, c *chain, answers []answer[T], failed error,
	differ func(a, b *T) string) (values []T, at *head, err error) {
	if len(answers) < c.quorum() || ctx.Err() != nil {
		return nil, nil, few(c, len(answers), errors.Join(failed, ctx.Err()))
	}
	first := &answers[0]
	for i := range answers {
		a := &answers[i]
		how := first.at.differs(a.at)
		switch {
		case how != "":
		case (a.err == nil) != (first.err == nil):
			how = fmt.Sprintf("%s and %s", refusalText(first.err), refusalText(a.err))
		case a.err == nil:
			how = differ(&first.value, &a.value)
		}
		if how != "" {
			return nil, nil, fmt.Errorf("endpoints disagree at block %d (%s): %s and %s say %s: remove from orchestrator.wallets[].rpc the one that is wrong: %w",
				first.at.Number, first.at.Hash, first.by.name, a.by.name, how, repute.ErrUnavailable)
		}
		values = append(values, a.value)
	}
	return values, first.at, first.err
}

// refusalText describes an answer or a refusal, for the error about two that differ.
func refusalText(err error) string {
	if err == nil {
		return "that the contract answers"
	}
	return "that it refuses (" + err.Error() + ")"
}

// few returns the error for fewer answers than the quorum. With a single endpoint it is the
// endpoint's own error.
func few(c *chain, answered int, failed error) error {
	if len(c.nodes) == 1 && failed != nil {
		return failed
	}
	text := fmt.Errorf("%d of %d endpoints of chain %d answer, and %d must agree: %w", answered, len(c.nodes),
		c.ChainID,
		c.quorum(), repute.ErrUnavailable)
	if failed != nil {
		text = fmt.Errorf("%w: %w", text, failed)
	}
	return &fewError{text}
}

// pin returns the hash of the newest block that a quorum of endpoints has. It stores the newest
// block of each endpoint in newest, by its place.
func (c *chain) pin(ctx context.Context, newest []*head) (common.Hash, error) {
	failed := c.each(ctx, func(e *endpoint) (err error) {
		newest[e.place], err = e.block(ctx, "latest")
		return err
	})
	reached := slices.DeleteFunc(slices.Clone(newest), func(h *head) bool { return h == nil })
	if len(reached) < c.quorum() {
		return common.Hash{}, few(c, len(reached), failed)
	}
	slices.SortStableFunc(reached, func(a, b *head) int { return cmp.Compare(b.Number, a.Number) })
	return reached[c.quorum()-1].Hash, nil
}

// differs returns how two endpoints' headers of one block differ, empty if they do not.
func (h *head) differs(o *head) string {
	if h.Hash == o.Hash && h.Number == o.Number && h.Time == o.Time && h.base().Cmp(o.base()) == 0 {
		return ""
	}
	return fmt.Sprintf("block %d, time %d, base fee %s and block %d, time %d, base fee %s", h.Number, h.Time, h.base(),
		o.Number, o.Time, o.base())
}

// differs returns how answers to the same views differ, empty if they do not.
func (s *Seen) differs(o *Seen) string {
	if s.Balance.Cmp(o.Balance) != 0 {
		return fmt.Sprintf("a balance of %s and of %s", s.Balance, o.Balance)
	}
	for i := range s.Answers {
		if string(s.Answers[i]) != string(o.Answers[i]) {
			return fmt.Sprintf("0x%x and 0x%x", shortened(s.Answers[i]), shortened(o.Answers[i]))
		}
	}
	return ""
}

// shortened returns the part of an answer that errors show.
func shortened(b []byte) []byte { return b[:min(len(b), 320)] }
