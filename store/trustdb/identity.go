package trustdb

import (
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/column"
	"repute/store/docdb"
	"repute/store/docjson"
)

// Identity is what an agent's registration file, and the domains that it names, prove about who the
// agent is.
type Identity struct {
	Document repute.Document // without its problems
	// Gone says that the host removed the document, or failed for a week, so that it no longer
	// counts.
	Gone          bool
	ParserVersion int                  // of what read the document, 0 where nothing did
	Proofs        []repute.DomainProof // in order of the domains; Domain, Verdict and SHA256 alone
}

// ReadIdentities calls use with the identity of each agent: from the URIs that the agents had at
// block, or have now for nil, as they were read last. Agents that do not exist are left out. The
// identities are not kept in memory.
func ReadIdentities(ctx context.Context, db *store.DB, chainID uint64, tokens []repute.TokenID, block *uint64,
	use func(repute.TokenID, Identity)) error {
	args := []any{chainID, column.TokenArray(tokens), int64(chaindb.Everything)}
	if block != nil {
		args[2] = int64(*block)
	}
	var b pgx.Batch
	proofs := proofsThen(db, &b, args)
	query := b.Queue(urisThen+`
		select a.token_id, octet_length(u.uri) = 0, u.sha256 is not null and not `+docdb.StillServed("u")+`, coalesce(p.parser_version, 0),
			u.source, u.sha256, null::bigint, u.fetched_at, u.reason, u.detail, u.next_due, u.dead, `+docdb.DeniedDocument("u", "a")+`,
			p.content, '[]'::jsonb, 0::bigint, p.errors
		from a
		join uris u on u.id = a.uri_id
		left join lateral (select * from parses where sha256 = u.sha256 and kind = 'registration' order by parser_version
			desc limit 1) p on true`, args...)
	var token column.TokenNum
	var empty, gone bool
	var version int
	var d docdb.DocumentRow
	into := append([]any{&token, &empty, &gone, &version}, d.Into()...)
	query.Query(eachRow("documents", into, func() (err error) {
		t := Identity{Gone: gone, ParserVersion: version, Proofs: proofs[repute.TokenID(token)]}
		if t.Document, err = d.Document(empty); err == nil {
			use(repute.TokenID(token), t)
		}
		return err
	}))
	return db.ReadBatch(ctx, "read identities", &b)
}

// Documented returns the agents of a chain whose present URI has a document that was read. ReadIdentities finds nothing
// but the wallet about others.
func Documented(ctx context.Context, db *store.DB, chainID uint64) (map[repute.TokenID]bool, error) {
	rows, _ := db.Pool().Query(ctx, `
		select a.token_id from agents a join uris u on u.id = a.uri_id where a.chain_id = $1 and u.sha256 is not null`, chainID)
	out, err := column.CollectTokens(rows)
	return out, store.Failed("agents with documents", err)
}

// urisThen is the SQL of relation a: agents $2 of chain $1 with the URIs they had at block $3.
const urisThen = `
	with a as (
		select $1::bigint as chain_id, k.token_id, s.uri_id
		from unnest($2::numeric[]) as k(token_id)
		cross join lateral (
			select uri_id from agent_states
			where chain_id = $1 and token_id = k.token_id and from_block <= $3 order by from_block desc limit 1) s)`

// proofsThen returns the proofs of the domains that the agents' files name, which the batch reads.
func proofsThen(db *store.DB, b *pgx.Batch, args []any) map[repute.TokenID][]repute.DomainProof {
	out := map[repute.TokenID][]repute.DomainProof{}
	var p docdb.ProofRow
	b.Queue(urisThen+docdb.ProofsOfAgents(), args...).Query(eachRow("proofs of domains", p.Into(), func() error {
		proof := p.Proof(db.Options().SharedHosts)
		out[repute.TokenID(p.Token)] = append(out[repute.TokenID(p.Token)],
			repute.DomainProof{Domain: proof.Domain, Result: proof.Result, SHA256: proof.SHA256})
		return nil
	}))
	return out
}

// RegistrationParse returns what a version of the parser read in a registration file, and whether
// the file had no errors. repute.ErrNotFound when that version did not read it, or the result is no
// longer stored.
func RegistrationParse(ctx context.Context, db *store.DB, sum common.Hash, version int) (r *repute.Registration,
	sound bool, err error) {
	var body []byte
	err = db.Readers().QueryRow(ctx, `
		select content, errors = 0 from parses where sha256 = $1 and kind = 'registration' and parser_version = $2`, sum[:], version).Scan(&body, &sound)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, false, fmt.Errorf("parse %d of %s: %w", version, sum, repute.ErrNotFound)
	}
	if err != nil {
		return nil, false, store.Failed("read parse", err)
	}
	r, err = docjson.DecodeRegistration(body)
	return r, sound, store.Failed("read parse", err)
}
