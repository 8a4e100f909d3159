package query

import (
	"context"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/column"
	"repute/store/docdb"
)

// DomainProofs returns the domains that agents' current files name, by agent and ordered by name.
// Results follow from what was read last and are not stored. Agents without a domain are absent,
// and so are those whose document is denied.
func DomainProofs(ctx context.Context, db *store.DB, ids ...repute.AgentID) (map[repute.AgentID][]repute.DomainProof,
	error) {
	chains, tokens := column.KeyColumns(ids)
	out := map[repute.AgentID][]repute.DomainProof{}
	err := chaindb.View(ctx, db, "read domain proofs", func(ctx context.Context, tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, currentAgents+docdb.ProofsOfAgents(), chains, tokens)
		var p docdb.ProofRow
		_, err := pgx.ForEachRow(rows, p.Into(), func() error {
			id := repute.AgentID{ChainID: p.Chain, Registry: common.BytesToAddress(p.Registry),
				TokenID: repute.TokenID(p.Token)}
			out[id] = append(out[id], p.Proof(db.Options().SharedHosts))
			return nil
		})
		return err
	})
	return out, err
}
