package query

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/chaindb"
)

// Chains returns the status of every chain, ordered by id. In a large index the totals may be some
// seconds older than the rest: see totals. Everything but the totals is of one snapshot.
func Chains(ctx context.Context, db *store.DB) (out []repute.ChainStatus, err error) {
	err = chaindb.View(ctx, db, "read chains", func(ctx context.Context, tx pgx.Tx) error {
		chains, err := chaindb.ReadChains(ctx, tx, nil)
		if err != nil {
			return err
		}
		counted, err := store.Kept(db, func() *totals { return &totals{} }).get(ctx, tx)
		if err != nil {
			return err
		}
		upgrades, err := chaindb.ReadUpgrades(ctx, tx)
		if err != nil {
			return err
		}
		endpoints, err := chaindb.ReadEndpoints(ctx, tx, 0)
		if err != nil {
			return err
		}
		scoring, err := readScoring(ctx, tx)
		if err != nil {
			return err
		}
		for _, c := range chains {
			s := counted[c.ID]
			s.Scoring = scoring[c.ID]
			for _, e := range endpoints {
				if e.ChainID == c.ID {
					s.Endpoints = append(s.Endpoints, e)
				}
			}
			s.Upgrades, s.UpgradedAt = upgrades[c.ID].N, upgrades[c.ID].Last
			s.Stalled = strings.HasPrefix(c.LastError, chaindb.Stalled)
			s.Chain, s.AsOf = c.Chain, c.Latest()
			s.Reorgs, s.LastError, s.Halted = c.Reorgs, c.LastError, c.Halted
			out = append(out, s)
		}
		return nil
	})
	return out, err
}
