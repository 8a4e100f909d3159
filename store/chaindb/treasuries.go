package chaindb

import (
	"context"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/column"
)

// maxTreasuries bounds the treasuries of one chain, because each query for logs names all of them.
const maxTreasuries = 20

// LeaseName returns the name of the lease under which a chain is indexed.
func LeaseName(chainID uint64) string { return fmt.Sprintf("chain:%d", chainID) }

// withoutRegistries reports whether the chain is indexed for its treasuries alone.
func (c *ChainRow) withoutRegistries() bool { return c.Identity == common.Address{} }

// WatchTreasury adds a treasury to the contracts whose events are indexed on a chain. Its events are read from t.From
// on, which becomes the chain's start block where that is later. The blocks that are indexed already are a gap
// of the treasury until its events in them are read. The process that indexes the chain loses its lease
// and acquires it again, so that no block is indexed without the treasury from then on. A chain that is not stored is
// added without registries. A treasury that is watched from the same or an earlier block on stays as it is.
func WatchTreasury(ctx context.Context, db *store.DB, chainID uint64, t repute.WatchedContract) error {
	t.From = max(t.From, 1)
	return db.InTx(ctx, pgx.TxOptions{}, fmt.Sprintf("watch treasury %s on chain %d", t.Address, chainID),
		func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `
				insert into chains (chain_id, name, identity, reputation, validations, start_block, imported, cursor_block,
					cursor_hash)
				values ($1, '', '', '', '{}', $2, false, $2::bigint - 1, '') on conflict do nothing`, chainID, t.From)
			if err != nil {
				return err
			}
			c, err := ScanChainRow(chainID, tx.QueryRow(ctx, SelectChain, chainID))
			if err != nil || c.watches(&t) {
				return err
			}
			if err := store.RevokeLease(ctx, tx, LeaseName(chainID)); err != nil {
				return err
			}
			if c, err = LockChain(ctx, tx, chainID); err != nil {
				return err
			}
			return c.watch(ctx, tx, t)
		})
}

// watches reports whether a treasury is watched from t.From or an earlier block on. It raises t.From to the chain's
// start block.
func (c *ChainRow) watches(t *repute.WatchedContract) bool {
	if !c.withoutRegistries() {
		t.From = max(t.From, c.Start)
	}
	return slices.ContainsFunc(c.Treasuries, func(o repute.WatchedContract) bool {
		return o.Address == t.Address && o.From <= t.From
	})
}

// watch adds a treasury to a chain whose lease is revoked and whose row is locked.
func (c *ChainRow) watch(ctx context.Context, tx pgx.Tx, t repute.WatchedContract) error {
	if c.watches(&t) {
		return nil
	}
	at := slices.IndexFunc(c.Treasuries, func(o repute.WatchedContract) bool { return o.Address == t.Address })
	list := slices.Clone(c.Treasuries)
	switch {
	case at >= 0:
		list[at] = t
	case len(list) >= maxTreasuries:
		return repute.Conflict("%d treasuries are indexed already, which is the most of one chain", len(list))
	default:
		list = append(list, t)
	}
	addresses, from := watchedColumns(list)
	_, err := tx.Exec(ctx, "update chains set treasuries = $2, treasuries_from = $3 where chain_id = $1", c.ID,
		addresses,
		from)
	if err != nil {
		return store.Failed("store treasuries", err)
	}
	if t.From < c.Start {
		return c.restart(ctx, tx, t.From)
	}
	return c.AddTreasuryGaps(ctx, tx, []repute.WatchedContract{t})
}

// AddTreasuryGaps notes that the events of treasuries were not asked for in the blocks indexed so far.
func (c *ChainRow) AddTreasuryGaps(ctx context.Context, tx pgx.Tx, treasuries []repute.WatchedContract) error {
	indexed := repute.BlockRange{From: c.Start, To: c.Cursor.Number}
	return WidenGaps(ctx, tx, c.ID, historyGaps(repute.KindTreasuryEvent, treasuries, indexed,
		"the treasury was added after these blocks were indexed"))
}

// restart deletes what is indexed of a chain without registries, so that it is indexed anew from a block on.
func (c *ChainRow) restart(ctx context.Context, tx pgx.Tx, start uint64) error {
	for _, table := range []string{"events", "blocks", "block_proofs", "gaps"} {
		if _, err := tx.Exec(ctx, "delete from "+table+" where chain_id = $1", c.ID); err != nil {
			return store.Failed("delete "+table, err)
		}
	}
	_, err := tx.Exec(ctx, `
		update chains set start_block = $2, cursor_block = $2::bigint - 1, cursor_hash = '', cursor_time = null,
			safe_block = 0, finalized_block = 0, covered = '{}', halted = false, last_error = '' where chain_id = $1`,
		c.ID, start)
	return store.Failed("restart chain", err)
}

// setRegistries makes a chain that is indexed for its treasuries alone one with registries. It is indexed anew, with
// its treasuries, by the process that has the registries in its configuration. The lease MUST be revoked and the row
// locked.
func (c *ChainRow) setRegistries(ctx context.Context, tx pgx.Tx, to repute.Chain) error {
	if err := c.restart(ctx, tx, to.StartBlock); err != nil {
		return err
	}
	gateways, from := watchedColumns(to.Gateways)
	_, err := tx.Exec(ctx, `
		update chains set name = $2, identity = $3, reputation = $4, validations = $5, imported = $6, gateways = $7,
			gateways_from = $8,
			treasuries_from = array(select greatest(f, $9::bigint) from unnest(treasuries_from) with ordinality u(f, i) order by i)
		where chain_id = $1`, c.ID, to.Name, to.Identity[:], to.Reputation[:], column.AddressColumn(to.Validations),
		to.Imported, gateways, from, to.StartBlock)
	return store.Failed("set registries", err)
}

// Contracts returns the contracts of a chain that the database alone knows, and the start block: what a process
// that indexes the chain needs besides its configuration. registries is false for a chain that is indexed for its
// treasuries alone. repute.ErrNotFound for an unknown chain.
func Contracts(ctx context.Context, db *store.DB, chainID uint64) (treasuries []repute.WatchedContract, start uint64,
	registries bool, err error) {
	c, err := ScanChainRow(chainID, db.Pool().QueryRow(ctx, SelectChain, chainID))
	if err != nil {
		return nil, 0, false, store.Failed(fmt.Sprintf("treasuries of chain %d", chainID), err)
	}
	return c.Treasuries, c.Start, !c.withoutRegistries(), nil
}
