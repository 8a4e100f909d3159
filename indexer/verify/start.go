package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/contracts"
	"repute/indexer/node"
	"repute/indexer/verify/missing"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/verifydb"
)

// startSubject is the gap of a chain that is indexed from above the deployment of
// its identity registry.
const startSubject = "start"

// checkStart checks once whether the registry existed before the first indexed block. Without a
// node that has the state of that time the answer is unknown.
func (v *Verifier) checkStart(ctx context.Context, l store.Lease, _ verifydb.Standing) error {
	if v.startSeen || v.chain.StartBlock <= 1 {
		return ErrNothingNew
	}
	early, err := v.deployedEarlier(ctx)
	switch {
	case errors.Is(err, node.ErrNoState), err != nil && node.Unsupported(err):
		v.log.Info("nothing tells whether the identity registry is older than the first indexed block", "start_block",
			v.chain.StartBlock, "error", err)
	case err != nil:
		return fmt.Errorf("look for the registry below the start block: %w", err)
	case early:
		h := missing.New(repute.KindRegistered, startSubject, repute.BlockRange{From: 1, To: v.chain.StartBlock - 1},
			fmt.Sprintf(
				"the identity registry is older than start_block %d, its events before it are not indexed; index the chain anew from its deployment on", v.chain.StartBlock))
		if err := v.open(ctx, l, []gap{h}); err != nil {
			return err
		}
	}
	v.startSeen = true
	return nil
}

// settleStart closes the gap when the registry is not older after all.
func (v *Verifier) settleStart(ctx context.Context, l store.Lease, h gap) error {
	early := false
	var err error
	if v.chain.StartBlock > 1 {
		early, err = v.deployedEarlier(ctx)
	}
	if err != nil || early {
		return v.postpone(ctx, l, h, err)
	}
	return chaindb.CloseGap(ctx, v.db, v.chain.ID, l, h)
}

// deployedEarlier reports whether the registry was there before the first indexed block:
// according to the known deployments, or else to a node that has the state of that time.
func (v *Verifier) deployedEarlier(ctx context.Context) (early bool, err error) {
	if knownEarlier(v.chain) {
		return true, nil
	}
	if err := v.witnesses.Spend(ctx, 1); err != nil {
		return false, err
	}
	before := repute.Block{Number: v.chain.StartBlock - 1}
	err = v.witnesses.First(func(n *node.Node) error {
		codes, err := n.Codes(ctx, before, []common.Address{v.chain.Identity})
		early = err == nil && len(codes[0]) > 0
		return err
	})
	return early, err
}

// knownEarlier reports whether the registry of a known network was deployed below the start of the
// chain. For some networks only a block below the deployment is known, which decides nothing.
func knownEarlier(c repute.Chain) bool {
	return slices.ContainsFunc(contracts.Deployments(), func(d contracts.Deployment) bool {
		return d.ChainID == c.ID && d.Identity == c.Identity && d.StartVerified && d.StartBlock < c.StartBlock
	})
}
