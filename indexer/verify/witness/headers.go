package witness

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
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

// Headers asks one endpoint after the other for headers, and returns the one that answered.
func (s *Set) Headers(ctx context.Context, numbers []uint64) (out []node.Sealed, by *node.Node, err error) {
	err = s.First(func(n *node.Node) (err error) {
		by = n
		out, err = s.HeadersOf(ctx, n, numbers)
		return err
	})
	return out, by, err
}

// HeadersOf asks one endpoint for headers.
func (s *Set) HeadersOf(ctx context.Context, n *node.Node, numbers []uint64) ([]node.Sealed, error) {
	out := make([]node.Sealed, len(numbers))
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(batchesAtOnce)
	for from := 0; from < len(numbers); from += headersAtOnce {
		part := numbers[from:min(len(numbers), from+headersAtOnce)]
		work.Go(func() error {
			if err := s.Spend(ctx, 1); err != nil {
				return err
			}
			headers, err := n.SealedBlocks(ctx, part)
			copy(out[from:], headers)
			return err
		})
	}
	return out, work.Wait()
}

// ConfirmHeaders has an endpoint of another host, where there is one, confirm headers: one host
// alone proves nothing. A chain of headers that are the hashes of all their fields
// is confirmed by its last one, others one by one. It returns the blocks of which the
// endpoints show different blooms; ErrDisagree when they show different blocks.
func (s *Set) ConfirmHeaders(ctx context.Context, headers []node.Sealed, by *node.Node) (doubtful []uint64, err error) {
	others := s.OthersThan(by)
	if len(others) == 0 || len(headers) == 0 {
		return nil, nil
	}
	if chained(headers) {
		headers = headers[len(headers)-1:]
	}
	numbers := NumbersOf(headers)
	var theirs []node.Sealed
	for _, n := range others {
		if theirs, err = s.HeadersOf(ctx, n, numbers); err == nil {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("confirm headers: %w", err)
	}
	for i := range headers {
		switch {
		case theirs[i].Hash != headers[i].Hash:
			return nil, fmt.Errorf("block %d: %w", numbers[i], ErrDisagree)
		case theirs[i].Bloom != headers[i].Bloom:
			doubtful = append(doubtful, numbers[i])
		}
	}
	return doubtful, nil
}

// NumbersOf returns the block numbers of headers, in their order.
func NumbersOf(headers []node.Sealed) []uint64 {
	numbers := make([]uint64, len(headers))
	for i := range headers {
		numbers[i] = headers[i].Number
	}
	return numbers
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

// ErrNotConnected is returned when the headers of every endpoint end in another block than they must.
var ErrNotConnected = errors.New("the headers are not those of the final block's ancestors")

// Connected reads the headers of a range whose newest block has the given hash. Each is
// the parent of the next one. An endpoint whose headers are all the hashes of their fields is
// preferred: it cannot have altered them.
func (s *Set) Connected(ctx context.Context, numbers []uint64, hash common.Hash) (headers []node.Sealed,
	by *node.Node, err error) {
	err = ErrNone
	for _, n := range s.nodes() {
		got, e := s.HeadersOf(ctx, n, numbers)
		switch {
		case ctx.Err() != nil:
			return nil, nil, ctx.Err()
		case e != nil:
			err = e
		case got[len(got)-1].Hash != hash || !linked(got):
			err = fmt.Errorf("block %d of %s: %w", numbers[len(numbers)-1], n.Host(), ErrNotConnected)
		case chained(got):
			return got, n, nil
		case headers == nil:
			headers, by = got, n
		}
	}
	if headers != nil {
		err = nil
	}
	return headers, by, err
}

// linked reports whether each header names the one before it as its parent.
func linked(headers []node.Sealed) bool {
	for i := 1; i < len(headers); i++ {
		if headers[i].Parent != headers[i-1].Hash {
			return false
		}
	}
	return true
}

// ConfirmNewest asks endpoints of other hosts, where there are some, for the block. ErrDisagree
// when some show another block and none shows this one.
func (s *Set) ConfirmNewest(ctx context.Context, header node.Sealed, by *node.Node) error {
	var last error
	for _, n := range s.OthersThan(by) {
		theirs, err := s.HeadersOf(ctx, n, []uint64{header.Number})
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && errors.Is(last, ErrDisagree): // a disagreement says more than a failure to answer
		case err != nil:
			last = err
		case theirs[0].Hash == header.Hash:
			return nil
		default:
			last = fmt.Errorf("block %d: %w", header.Number, ErrDisagree)
		}
	}
	return last
}

// ConfirmedTwice returns the headers, of those that are not the hashes of their fields, that an
// endpoint of another host shows too.
func (s *Set) ConfirmedTwice(ctx context.Context, headers []node.Sealed, by *node.Node) (map[uint64]bool, error) {
	var odd []node.Sealed
	for _, h := range headers {
		if !h.Recomputed {
			odd = append(odd, h)
		}
	}
	out := map[uint64]bool{}
	if len(odd) == 0 {
		return out, nil
	}
	numbers := NumbersOf(odd)
	for _, n := range s.OthersThan(by) {
		theirs, err := s.HeadersOf(ctx, n, numbers)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		for i := range odd {
			if err == nil && SameHeader(&theirs[i], &odd[i]) {
				out[odd[i].Number] = true
			}
		}
	}
	return out, nil
}

// SameHeader reports whether two endpoints show the same header, their blooms aside.
func SameHeader(a, b *node.Sealed) bool {
	return a.Hash == b.Hash && a.Parent == b.Parent && a.Time.Equal(b.Time) && slices.Equal(a.Txs, b.Txs)
}
