package node

import (
	"cmp"
	"context"
	"slices"

	"github.com/ethereum/go-ethereum/rpc"
	"golang.org/x/sync/errgroup"

	"repute"
	"repute/indexer/node/jsonrpc"
)

// addBusy adds the headers of the blocks with logs, on chains whose headers are hashes of their fields:
// they prove the times of the blocks, and their blooms are compared with the logs.
func (n *Node) addBusy(ctx context.Context, q Query, s *Span) error {
	if !q.Sealed {
		return nil
	}
	var busy []uint64
	for i := range s.Logs {
		number := s.Logs[i].BlockNumber
		if _, known := s.Sealed[number]; !known && number >= q.From && number <= q.To {
			busy = append(busy, number)
		}
	}
	slices.Sort(busy)
	sealed, size, err := n.sealedAll(ctx, slices.Compact(busy))
	if err != nil {
		return err
	}
	for _, h := range sealed {
		s.Headers, s.Sealed[h.Number] = append(s.Headers, h.Block), h
	}
	slices.SortFunc(s.Headers, func(a, b repute.Block) int { return cmp.Compare(a.Number, b.Number) })
	s.Bytes += size
	return nil
}

// concurrentHeaderBatches is how many batches of headers are requested at the same time.
const concurrentHeaderBatches = 4

// sealedAll reads headers in batches, several at the same time.
func (n *Node) sealedAll(ctx context.Context, numbers []uint64) ([]Sealed, int, error) {
	out, sizes := make([]Sealed, len(numbers)), make([]int, len(numbers)/n.opts.MaxBatch+1)
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(concurrentHeaderBatches)
	for i, from := 0, 0; from < len(numbers); i, from = i+1, from+n.opts.MaxBatch {
		work.Go(func() error {
			part := numbers[from:min(len(numbers), from+n.opts.MaxBatch)]
			_, headers, size, err := n.read(ctx, part)
			for j := 0; err == nil && j < len(headers); j++ {
				out[from+j], err = sealed(headers[j])
			}
			sizes[i] = size
			return err
		})
	}
	err := work.Wait()
	total := 0
	for _, size := range sizes {
		total += size
	}
	return out, total, err
}

// seals returns the received headers by block number.
func seals(headers []*jsonrpc.Header) map[uint64]Sealed {
	found := make(map[uint64]Sealed, len(headers))
	for _, h := range headers {
		if s, err := sealed(h); err == nil {
			found[s.Number] = s
		}
	}
	return found
}

// Blocks requests headers in batches of MaxBatch.
func (n *Node) Blocks(ctx context.Context, numbers []uint64) ([]repute.Block, error) {
	blocks, _, _, err := n.read(ctx, numbers)
	return blocks, err
}

// read requests the headers of canonical blocks. It returns them as the index stores them and as
// they were received, and the size of the answers in bytes.
func (n *Node) read(ctx context.Context, numbers []uint64) (blocks []repute.Block, headers []*jsonrpc.Header,
	size int, err error) {
	for part := range slices.Chunk(numbers, n.opts.MaxBatch) {
		came := make([]*jsonrpc.Header, len(part))
		batch := make([]rpc.BatchElem, len(part))
		for i, number := range part {
			batch[i] = byNumber(number, &came[i])
		}
		more, err := n.exchange(ctx, batch)
		if err != nil {
			return nil, nil, 0, err
		}
		checked, err := n.blocks(part, came, batch)
		if err != nil {
			return nil, nil, 0, err
		}
		blocks, headers, size = append(blocks, checked...), append(headers, came...), size+more
	}
	return blocks, headers, size, nil
}
