package verify

import (
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/indexer/node"
)

// errNotConnected: the headers of a witness do not end in the block that they must end in.
var errNotConnected = errors.New("the headers are not those of the final block's ancestors")

// connectedHeaders reads the headers of a range whose newest block has the given hash. Each is
// the parent of the next one. A witness whose headers are all the hashes of their fields is
// preferred: it cannot have altered them.
func (v *Verifier) connectedHeaders(ctx context.Context, r repute.BlockRange, hash common.Hash) (headers []node.Sealed, by *node.Node, err error) {
	err = ErrNothingNew // no witness
	for _, n := range v.witnesses() {
		got, e := v.sealedOf(ctx, n, upTo(r.From, r.To))
		switch {
		case ctx.Err() != nil:
			return nil, nil, ctx.Err()
		case e != nil:
			err = e
		case got[len(got)-1].Hash != hash || !linked(got):
			err = fmt.Errorf("block %d of %s: %w", r.To, n.Host(), errNotConnected)
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

// confirmNewest asks witnesses of other hosts, where there are some, for the block. errDisagree
// when some show another block and none shows this one.
func (v *Verifier) confirmNewest(ctx context.Context, s node.Sealed, by *node.Node) error {
	var last error
	for _, n := range v.othersThan(by) {
		said, err := v.sealedOf(ctx, n, []uint64{s.Number})
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			last = disagreementOr(last, err)
		case said[0].Hash == s.Hash:
			return nil
		default:
			last = fmt.Errorf("block %d: %w", s.Number, errDisagree)
		}
	}
	return last
}

// disagreementOr keeps a disagreement rather than a failure to answer.
func disagreementOr(last, err error) error {
	if errors.Is(last, errDisagree) {
		return last
	}
	return err
}

// confirmedTwice returns the headers, of those that are not the hashes of their fields, that a
// witness of another host shows too.
func (v *Verifier) confirmedTwice(ctx context.Context, headers []node.Sealed, by *node.Node) (map[uint64]bool, error) {
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
	numbers := make([]uint64, len(odd))
	for i := range odd {
		numbers[i] = odd[i].Number
	}
	for _, n := range v.othersThan(by) {
		said, err := v.sealedOf(ctx, n, numbers)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		for i := range odd {
			if err == nil && sameHeader(&said[i], &odd[i]) {
				out[odd[i].Number] = true
			}
		}
	}
	return out, nil
}
