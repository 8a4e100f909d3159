package rundb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/column"
)

// SaveModule stores an agent or replaces the stored one.
func SaveModule(ctx context.Context, db *store.DB, m repute.Module) error {
	var chain *int64
	var registry []byte
	var token *column.TokenNum
	if m.Agent != nil {
		id, t := int64(m.Agent.ChainID), column.TokenNum(m.Agent.TokenID)
		chain, registry, token = &id, m.Agent.Registry[:], &t
	}
	var signer []byte
	if m.Proof.Signer != (common.Address{}) {
		signer = m.Proof.Signer[:]
	}
	_, err := db.Pool().Exec(ctx, `
		insert into modules (slug, url, chain_id, registry, token_id, manifest, dry_run, proof_kind, proof_host,
			proof_signer, proof_at)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
		on conflict (slug) do update set url = excluded.url, chain_id = excluded.chain_id, registry = excluded.registry,
			token_id = excluded.token_id, manifest = excluded.manifest, dry_run = excluded.dry_run,
			proof_kind = excluded.proof_kind, proof_host = excluded.proof_host, proof_signer = excluded.proof_signer, proof_at = excluded.proof_at`,
		m.Slug, m.URL, chain, registry, token, m.Manifest, m.DryRun, string(m.Proof.Kind),
		column.CleanText(m.Proof.Host),
		signer, column.MaybeTime(m.Proof.At))
	return store.Failed("save agent "+m.Slug, err)
}

// RemoveModule deletes an agent; its runs stay. repute.ErrNotFound when there is none.
func RemoveModule(ctx context.Context, db *store.DB, slug string) error {
	tag, err := db.Pool().Exec(ctx, `delete from modules where slug = $1`, column.CleanText(slug))
	if err == nil && tag.RowsAffected() == 0 {
		return repute.Unknown("agent %q", slug)
	}
	return store.Failed("remove agent", err)
}

// Modules returns all agents ordered by slug.
func Modules(ctx context.Context, db *store.DB) ([]repute.Module, error) {
	rows, _ := db.Readers().Query(ctx, selectModules+`order by slug`)
	list, err := pgx.CollectRows(rows, scanModule)
	return list, store.Failed("read agents", err)
}

// Module returns the agent of a slug. repute.ErrNotFound when there is none.
func Module(ctx context.Context, db *store.DB, slug string) (repute.Module, error) {
	rows, _ := db.Readers().Query(ctx, selectModules+`where slug = $1`, column.CleanText(slug))
	m, err := pgx.CollectExactlyOneRow(rows, scanModule)
	if errors.Is(err, pgx.ErrNoRows) {
		return m, &repute.MissingError{What: fmt.Sprintf("agent %q", slug), Why: "is not registered here",
			Hint: "GET /v1/agents, openfi_list_agents and repute agent list name those that are"}
	}
	return m, store.Failed("read agent", err)
}

// selectModules begins the statements that scanModule reads.
const selectModules = `select slug, url, chain_id, registry, token_id, manifest, dry_run, added_at, proof_kind, proof_host, proof_signer, proof_at from modules `

// scanModule reads a row of selectModules.
func scanModule(row pgx.CollectableRow) (m repute.Module, err error) {
	var chain *int64
	var registry, signer, manifest []byte
	var token *column.TokenNum
	var proven *time.Time
	err = row.Scan(&m.Slug, &m.URL, &chain, &registry, &token, &manifest, &m.DryRun, &m.Added, &m.Proof.Kind,
		&m.Proof.Host, &signer, &proven)
	m.Manifest, m.Added = json.RawMessage(manifest), m.Added.UTC()
	m.Proof.Signer, m.Proof.At = common.BytesToAddress(signer), column.TimeOf(proven)
	if err != nil || chain == nil {
		return m, err
	}
	m.Agent = &repute.AgentID{ChainID: uint64(*chain), Registry: common.BytesToAddress(registry),
		TokenID: repute.TokenID(*token)}
	return m, nil
}
