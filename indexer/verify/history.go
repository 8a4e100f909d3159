package verify

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/contracts"
	"repute/indexer/node"
	"repute/indexer/node/jsonrpc"
	"repute/indexer/verify/missing"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/verifydb"
)

// Bounds of reading the history of a contract.
const (
	historyCalls = 32     // log queries in one step
	historyRange = 10_000 // blocks of the first query
)

// settleHistory reads the next part of one history. ErrNothingNew when none is due.
func (v *Verifier) settleHistory(ctx context.Context, l store.Lease, at verifydb.Standing) error {
	due, err := chaindb.DueGaps(ctx, v.db, v.chain.ID, dueHistories)
	i := slices.IndexFunc(due, func(h gap) bool { return strings.HasPrefix(h.Subject, chaindb.HistorySubject) })
	if err != nil || i < 0 {
		return cmp.Or(err, ErrNothingNew)
	}
	return v.readHistory(ctx, l, at, due[i])
}

// dueHistories is how many due gaps are looked through for one of a history: more than a chain can have.
const dueHistories = 10_000

// readHistory continues to read the blocks that were indexed before a validation contract, a
// feedback gateway or a treasury was listed. The lower end of the gap is its progress, so that any process can
// continue.
func (v *Verifier) readHistory(ctx context.Context, l store.Lease, at verifydb.Standing, h gap) error {
	contract := common.HexToAddress(strings.TrimPrefix(h.Subject, chaindb.HistorySubject))
	isTreasury := slices.ContainsFunc(v.chain.Treasuries, func(t repute.WatchedContract) bool { return t.Address == contract })
	isGateway := slices.ContainsFunc(v.chain.Gateways, func(g repute.WatchedContract) bool { return g.Address == contract })
	if !isGateway && !isTreasury && !slices.Contains(v.chain.Validations, contract) {
		return chaindb.CloseGap(ctx, v.db, v.chain.ID, l, h) // no longer listed
	}
	s := missing.Search{Addresses: []common.Address{contract}, Topics: [][]common.Hash{{contracts.Topic(h.Kind)}}}
	switch {
	case isTreasury:
		s.Topics = [][]common.Hash{contracts.TreasuryTopics()}
	case isGateway:
		s.Topics = [][]common.Hash{contracts.GatewayTopics()}
	}
	most := uint64(historyRange)
	for range historyCalls {
		if h.Blocks.From > min(h.Blocks.To, at.Cursor) {
			v.log.Info("history of a listed contract read", "contract", contract, "kind", h.Kind)
			return chaindb.CloseGap(ctx, v.db, v.chain.ID, l, h)
		}
		part := repute.BlockRange{From: h.Blocks.From, To: min(h.Blocks.To, at.Cursor, h.Blocks.From+most-1)}
		err := v.readPart(ctx, l, at, s, part)
		switch {
		case errors.Is(err, repute.ErrFenced), ctx.Err() != nil:
			return err
		case err == nil:
			h.Blocks.From = part.To + 1
		case part.From == part.To || jsonrpc.IsTransient(err):
			if err := chaindb.OpenGaps(ctx, v.db, v.chain.ID, l, []gap{h}); err != nil { // save the progress
				return err
			}
			return v.postpone(ctx, l, h, err)
		default:
			most = (part.To - part.From + 1) / 2
		}
	}
	return chaindb.OpenGaps(ctx, v.db, v.chain.ID, l, []gap{h})
}

// readPart stores the events of one range that the store lacks.
func (v *Verifier) readPart(ctx context.Context, l store.Lease, at verifydb.Standing, s missing.Search,
	r repute.BlockRange) error {
	if err := v.witnesses.Spend(ctx, 1); err != nil {
		return err
	}
	return v.witnesses.First(func(n *node.Node) error {
		logs, err := n.Matching(ctx, r, s.Addresses, s.Topics)
		if err != nil {
			return err
		}
		judged, failed := v.judgePlaces(ctx, logs, -1, map[uint64]bool{})
		for _, j := range judged {
			if len(j.claimed) == 0 {
				continue
			}
			if err := v.open(ctx, l, v.blockGaps(j)); err != nil {
				return err
			}
		}
		if _, err := v.storeMissing(ctx, l, at, judged); err != nil {
			return err
		}
		return failed
	})
}
