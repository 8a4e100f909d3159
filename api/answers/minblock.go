package answers

import (
	"context"
	"strconv"
	"strings"

	"repute"
	"repute/store/chaindb"
)

// Demand returns the context of reads that know the block of minBlock: a number, of the default chain or the only one,
// or chainId:block. "" demands none.
//
// It does not wait: the first read with the context does, for two seconds at most, and then fails as busy (503). A
// chain of 0 means the only one; with several chains and no default the read refuses it.
func (x *Index) Demand(ctx context.Context, minBlock string) (context.Context, error) {
	if minBlock == "" {
		return ctx, nil
	}
	chain, number := x.defaultChain, minBlock
	if named, block, has := strings.Cut(minBlock, ":"); has {
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

// Await waits for the block that the context of Demand demands, once for a caller who makes many reads.
func (x *Index) Await(ctx context.Context) error { return chaindb.AwaitMinBlock(ctx, x.DB) }
