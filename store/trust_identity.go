package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
)

// TrustIdentity is what an agent's registration file, and the domains it names, say of who
// the agent is.
type TrustIdentity struct {
	Document      repute.Document      // without its problems
	Gone          bool                 // its host took the document away, or failed for a week: what it said is not what it says
	ParserVersion int                  // of what read the document, 0 where nothing did
	Proofs        []repute.DomainProof // in order of the domains; Domain, Verdict and SHA256 alone
}

// TrustIdentities gives, of agents of a chain, what their files say: of the URIs they had at
// block, or have now where block is nil, as read last. Agents that do not exist are left out.
// use is called for one after the other, and what it is given is not kept in memory.
func (db *DB) TrustIdentities(ctx context.Context, chainID uint64, tokens []repute.TokenID, block *uint64, use func(repute.TokenID, TrustIdentity)) error {
	args := []any{chainID, tokenArray(tokens), int64(everything)}
	if block != nil {
		args[2] = int64(*block)
	}
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	return db.inTx(ctx, options, "read identities", func(tx pgx.Tx) error {
		proofs, err := db.proofsThen(ctx, tx, args)
		if err != nil {
			return fmt.Errorf("proofs of domains: %w", err)
		}
		rows, err := tx.Query(ctx, urisThen+`
			select a.token_id, octet_length(u.uri) = 0, u.sha256 is not null and not `+standing("u")+`, coalesce(p.parser_version, 0),
				u.source, u.sha256, null::bigint, u.fetched_at, u.reason, u.detail, u.next_due, u.dead, `+deniedDocument("u", "a")+`,
				p.registration, '[]'::jsonb, 0::bigint, p.errors
			from a
			join uris u on u.id = a.uri_id
			left join lateral (select * from parses where sha256 = u.sha256 order by parser_version desc limit 1) p on true`, args...)
		if err != nil {
			return err
		}
		var token tokenNum
		var empty, gone bool
		var version int
		var d documentRow
		_, err = pgx.ForEachRow(rows, append([]any{&token, &empty, &gone, &version}, d.into()...), func() (err error) {
			t := TrustIdentity{Gone: gone, ParserVersion: version, Proofs: proofs[repute.TokenID(token)]}
			if t.Document, err = d.document(empty); err == nil {
				use(repute.TokenID(token), t)
			}
			return err
		})
		return err
	})
}

// urisThen is a relation a of agents $2 of chain $1 with the URIs they had at block $3.
const urisThen = `
	with a as (
		select $1::bigint as chain_id, k.token_id, s.uri_id
		from unnest($2::numeric[]) as k(token_id)
		cross join lateral (
			select uri_id from agent_states
			where chain_id = $1 and token_id = k.token_id and from_block <= $3 order by from_block desc limit 1) s)`

func (db *DB) proofsThen(ctx context.Context, tx pgx.Tx, args []any) (map[repute.TokenID][]repute.DomainProof, error) {
	rows, err := tx.Query(ctx, urisThen+proofsOfAgents(), args...)
	if err != nil {
		return nil, err
	}
	out := map[repute.TokenID][]repute.DomainProof{}
	var p proofRow
	_, err = pgx.ForEachRow(rows, p.into(), func() error {
		proof := p.proof(db.Options().SharedHosts)
		out[repute.TokenID(p.token)] = append(out[repute.TokenID(p.token)],
			repute.DomainProof{Domain: proof.Domain, Verdict: proof.Verdict, SHA256: proof.SHA256})
		return nil
	})
	return out, err
}

// RegistrationParse is what a version of the parser read in the bytes of a registration
// file, and whether they had no errors. repute.ErrNotFound: it did not read them, or that is
// no longer kept.
func (db *DB) RegistrationParse(ctx context.Context, sum common.Hash, version int) (r *repute.Registration, sound bool, err error) {
	var body []byte
	err = db.readers.QueryRow(ctx, `select registration, errors = 0 from parses where sha256 = $1 and parser_version = $2`, sum[:], version).Scan(&body, &sound)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, false, fmt.Errorf("parse %d of %s: %w", version, sum, repute.ErrNotFound)
	}
	if err != nil {
		return nil, false, failed("read parse", err)
	}
	r, err = decodeRegistration(body)
	return r, sound, failed("read parse", err)
}
