package verify

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"repute/indexer/node"
)

// The headers of a chain of tens of millions of blocks are read once each. They are
// read in batches, several at a time, and a batch counts as one call: it costs a node much
// less than a call of a contract. At the default rate that is
// up to 1,250 headers per second, 25 million in about six hours.
const (
	headersAtOnce = 50 // in one batch
	batchesAtOnce = 4
)

// sealed asks one witness after the other for headers, and returns the one that answered.
func (v *Verifier) sealed(ctx context.Context, numbers []uint64) (out []node.Sealed, by *node.Node, err error) {
	err = v.withWitness(func(n *node.Node) (err error) {
		by = n
		out, err = v.sealedOf(ctx, n, numbers)
		return err
	})
	return out, by, err
}

// sealedOf asks one witness for headers.
func (v *Verifier) sealedOf(ctx context.Context, n *node.Node, numbers []uint64) ([]node.Sealed, error) {
	out := make([]node.Sealed, len(numbers))
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(batchesAtOnce)
	for from := 0; from < len(numbers); from += headersAtOnce {
		part := numbers[from:min(len(numbers), from+headersAtOnce)]
		work.Go(func() error {
			if err := v.spend(ctx, 1); err != nil {
				return err
			}
			headers, err := n.SealedBlocks(ctx, part)
			copy(out[from:], headers)
			return err
		})
	}
	return out, work.Wait()
}

// confirmHeaders has a witness of another host, where there is one, confirm headers: one host
// alone proves nothing. A chain of headers that are the hashes of all their fields
// is confirmed by its last one, others one by one. It returns the blocks of which the
// witnesses show different blooms; errDisagree when they show different blocks.
func (v *Verifier) confirmHeaders(ctx context.Context, headers []node.Sealed, by *node.Node) (doubtful []uint64, err error) {
	others := v.othersThan(by)
	if len(others) == 0 || len(headers) == 0 {
		return nil, nil
	}
	if chained(headers) {
		headers = headers[len(headers)-1:]
	}
	numbers := make([]uint64, len(headers))
	for i := range headers {
		numbers[i] = headers[i].Number
	}
	var said []node.Sealed
	for _, n := range others {
		if said, err = v.sealedOf(ctx, n, numbers); err == nil {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("confirm headers: %w", err)
	}
	for i := range headers {
		switch {
		case said[i].Hash != headers[i].Hash:
			return nil, fmt.Errorf("block %d: %w", numbers[i], errDisagree)
		case said[i].Bloom != headers[i].Bloom:
			doubtful = append(doubtful, numbers[i])
		}
	}
	return doubtful, nil
}

// chained reports whether the hash of the last header authenticates all of them: each is the
// hash of all its fields, and the parent of the next.
func chained(headers []node.Sealed) bool {
	for i := range headers {
		if !headers[i].Recomputed || i > 0 && headers[i].Parent != headers[i-1].Hash {
			return false
		}
	}
	return true
}
