package archive

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/contracts"
	"repute/indexer/node"
)

// Compare refuses blocks that are not the chain's, before they are stored. It is called
// with at most fifty blocks whose hashes are known.
type Compare func(ctx context.Context, blocks []repute.Block) error

// sampledBlocks is how many blocks of a recording are compared with the chain.
const sampledBlocks = 50

// CompareWith compares blocks with those of an endpoint. It returns repute.ErrInvalid if one of
// them is another block or above the newest one; other errors mean that the endpoint did not
// answer.
func CompareWith(n *node.Node) Compare {
	return func(ctx context.Context, blocks []repute.Block) error {
		heads, err := n.Heads(ctx)
		if err != nil {
			return fmt.Errorf("compare blocks with the chain: %w", err)
		}
		numbers := make([]uint64, len(blocks))
		for i := range blocks {
			if numbers[i] = blocks[i].Number; numbers[i] > heads.Latest.Number {
				return repute.Invalid("logs", fmt.Sprintf("block %d is above the chain's newest block %d", numbers[i],
					heads.Latest.Number),
					"name the chain that the logs were recorded on")
			}
		}
		canonical, err := n.Blocks(ctx, numbers)
		if err != nil {
			return fmt.Errorf("compare blocks with the chain: %w", err)
		}
		for i, b := range canonical {
			if b.Hash != blocks[i].Hash {
				return repute.Invalid("logs",
					fmt.Sprintf("block %d has hash %s, on the chain it is %s", b.Number, blocks[i].Hash, b.Hash),
					"name the chain that the logs were recorded on")
			}
		}
		return nil
	}
}

// sample returns evenly spread blocks that have a hash.
func sample(blocks []repute.Block) []repute.Block {
	known := slices.DeleteFunc(slices.Clone(blocks), func(b repute.Block) bool { return b.Hash == (common.Hash{}) })
	if len(known) <= sampledBlocks {
		return known
	}
	out := make([]repute.Block, sampledBlocks)
	for i := range out {
		out[i] = known[i*(len(known)-1)/(sampledBlocks-1)]
	}
	return out
}

// compare compares a sample of the blocks, if there is an endpoint and a block with a hash.
func (c Compare) compare(ctx context.Context, blocks []repute.Block) error {
	some := sample(blocks)
	if c == nil || len(some) == 0 {
		return nil
	}
	return c(ctx, some)
}

// beforeDeployment returns the error text for a log below the deployment of the chain's registry,
// with the known networks that have such a block; "" if the log is not below it.
func beforeDeployment(c repute.Chain, block uint64) string {
	all := contracts.Deployments()
	own := slices.IndexFunc(all, func(d contracts.Deployment) bool {
		return d.ChainID == c.ID &&
			d.Identity == c.Identity
	})
	if own < 0 || block >= all[own].StartBlock {
		return ""
	}
	text := fmt.Sprintf("block %d is before block %d, in which the identity registry was deployed on %s", block,
		all[own].StartBlock, all[own].Name)
	if fits := networksText(c, all, block); fits != "" {
		return text + "; the block fits " + fits
	}
	return text
}

// mostFitting is how many networks an error names.
const mostFitting = 3

// networksText returns, for an error, the names of at most three networks that have the same registry at
// a block, with the most recent deployment first.
func networksText(c repute.Chain, all []contracts.Deployment, block uint64) string {
	all = slices.DeleteFunc(all, func(d contracts.Deployment) bool {
		return d.Identity != c.Identity ||
			d.StartBlock > block
	})
	slices.SortStableFunc(all, func(a, b contracts.Deployment) int { return cmp.Compare(b.StartBlock, a.StartBlock) })
	var names []string
	for _, d := range all[:min(len(all), mostFitting)] {
		kind := "mainnet"
		if d.Testnet {
			kind = "testnet"
		}
		names = append(names, fmt.Sprintf("%s (%s, chain %d)", d.Name, kind, d.ChainID))
	}
	return strings.Join(names, ", ")
}
