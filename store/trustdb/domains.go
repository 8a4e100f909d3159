package trustdb

import (
	"context"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/column"
	"repute/store/docdb"
	"repute/store/docjson"
)

// maxDomainOwners is how many owners of one domain are read.
const maxDomainOwners = 100

// ProvenDomain is a domain that proves an agent.
type ProvenDomain struct {
	TokenID repute.TokenID
	Domain  string
	// Named are the accounts of the agent's chain that the domain's file names.
	Named []common.Address
	// Owners are the owners of agents on all chains that the domain's file names and whose files name the domain, at
	// most maxDomainOwners.
	Owners []common.Address
}

// ProvenDomains returns the domains that prove agents of a chain, by the URIs that the agents had at block, or have now
// when block is nil. The newest content of these documents counts.
func ProvenDomains(ctx context.Context, db *store.DB, chainID uint64, tokens []repute.TokenID, block *uint64) (
	out []ProvenDomain, err error) {
	args := []any{chainID, column.TokenArray(tokens), int64(chaindb.Everything)}
	if block != nil {
		args[2] = int64(*block)
	}
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err = db.InTx(ctx, options, "read domains of agents", func(tx pgx.Tx) error {
		var b pgx.Batch
		proofs := proofsThen(db, &b, args)
		if err := tx.SendBatch(ctx, &b).Close(); err != nil {
			return err
		}
		for _, token := range tokens {
			for _, p := range proofs[token] {
				if p.Result != repute.DomainProven {
					continue
				}
				d := ProvenDomain{TokenID: token, Domain: p.Domain}
				if err := d.read(ctx, tx, chainID, p.SHA256[:]); err != nil {
					return fmt.Errorf("domain %s: %w", p.Domain, err)
				}
				out = append(out, d)
			}
		}
		return nil
	})
	return out, err
}

// read sets Named and Owners from the domain's file, whose content has the sha256 sum.
func (d *ProvenDomain) read(ctx context.Context, tx pgx.Tx, chainID uint64, sum []byte) error {
	var content []byte
	var owners [][]byte
	err := tx.QueryRow(ctx, `
		select coalesce((
			select content from parses where sha256 = $1 and kind = 'registration' order by parser_version desc limit 1),
			'null'),
			array(select distinct a.owner from links l
				join chains c on (c.chain_id, c.identity) = (l.chain_id, l.registry)
				join agents a on (a.chain_id, a.token_id) = (l.chain_id, l.token_id)
				join uris u on u.id = a.uri_id
				join domains w on (w.sha256, w.domain) = (u.sha256, $2)
				where l.sha256 = $1 and `+docdb.DeniedDocument("u", "a")+` is null limit $3)`,
		sum, d.Domain, maxDomainOwners).Scan(&content, &owners)
	if err != nil {
		return err
	}
	for _, raw := range owners {
		d.Owners = append(d.Owners, common.BytesToAddress(raw))
	}
	slices.SortFunc(d.Owners, common.Address.Cmp)
	r, err := docjson.DecodeRegistration(content)
	if err == nil && r != nil {
		d.Named = r.Payees(chainID)
	}
	return err
}
