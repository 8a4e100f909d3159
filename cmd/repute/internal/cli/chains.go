package cli

import (
	"context"
	"fmt"
	"strings"

	"repute"
	"repute/cmd/repute/internal/config"
	"repute/store"
	"repute/store/query"
)

// OneChain returns the only --chain of a command. An entry that the configuration only names is completed from others.
// others are known chains, such as the stored ones: an entry without contracts takes them from there.
func (p *Program) OneChain(c config.Config, others ...repute.Chain) (repute.Chain, error) {
	if len(c.Chains) != 1 {
		return repute.Chain{}, repute.Invalid("chain", "exactly one is needed", "e.g. --chain ethereum or --chain 1")
	}
	c.Complete(others...)
	return c.Chains[0].Resolve()
}

// Chosen returns the stored chain that --chain names, or all stored chains without the flag. A chain that is given and
// not stored is repute.ErrInvalid, whose hint lists those that are.
func (p *Program) Chosen(ctx context.Context, c config.Config, db *store.DB) ([]repute.ChainStatus, error) {
	stored, err := query.Chains(ctx, db)
	if err != nil || len(p.Flags.Chains) == 0 {
		return stored, err
	}
	chain, err := p.OneChain(c, Plain(stored)...)
	if err != nil {
		return nil, err
	}
	found, err := Indexed(stored, chain.ID)
	return []repute.ChainStatus{found}, err
}

// Plain returns the chains without their status.
func Plain(stored []repute.ChainStatus) []repute.Chain {
	chains := make([]repute.Chain, len(stored))
	for i, s := range stored {
		chains[i] = s.Chain
	}
	return chains
}

// Indexed returns the stored chain with an id. repute.ErrInvalid with the stored chains as hint where it is not
// stored.
func Indexed(stored []repute.ChainStatus, id uint64) (repute.ChainStatus, error) {
	names := []string{}
	for _, c := range stored {
		if c.Chain.ID == id {
			return c, nil
		}
		names = append(names, fmt.Sprintf("%s (%d)", c.Name, c.Chain.ID))
	}
	hint := "nothing is stored yet: repute serve or repute import stores a chain"
	if len(names) > 0 {
		hint = "indexed: " + strings.Join(names, ", ")
	}
	return repute.ChainStatus{}, repute.Invalid("chain", fmt.Sprintf("%d is not indexed", id), hint)
}
