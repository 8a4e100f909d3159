package answers

import (
	"context"
	"strconv"
	"strings"

	"repute"
	"repute/store/chaindb"
)

// Demand returns the context of reads that know the block of minBlock: a number, of the default chain or the only one, or
// chainId:block.
func (x *Index) Demand(ctx context.Context, r *Request) (context.Context, error) {
	if r.MinBlock == "" {
		return ctx, nil
	}
	chain, number := x.defaultChain, r.MinBlock
	if named, block, has := strings.Cut(r.MinBlock, ":"); has {
		id, err := repute.ParseChainID(named)
		if err != nil {
			return nil, repute.Invalid("minBlock", "names no chain", "chainId:block, e.g. 8453:41663783")
		}
		chain, number = id, block
	}
	block, err := strconv.ParseUint(number, 10, 63)
	if err != nil {
		return nil, repute.Invalid("minBlock", "is no block", "a number, or chainId:block, e.g. 8453:41663783")
	}
	return chaindb.WithMinBlock(ctx, chain, block), nil
}
