package scoredb

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
)

// KeepInputs stores inputs of scores, each under its sha256, for as long as something names them.
// One that was stored before may be about to be pruned, so SaveScores checks.
func KeepInputs(ctx context.Context, db *store.DB, bodies ...[]byte) error {
	_, err := db.Pool().Exec(ctx, `
		insert into trust_inputs (hash, body)
		select distinct on (b) sha256(b), b from unnest($1::bytea[]) b order by b on conflict do nothing`, bodies)
	return store.Failed("keep inputs of scores", err)
}

// KeepInput stores one input and keeps it for inputAge although nothing names it yet. It returns
// the sha256.
func KeepInput(ctx context.Context, db *store.DB, body []byte) (common.Hash, error) {
	_, err := db.Pool().Exec(ctx, `
		insert into trust_inputs as i (hash, body) values (sha256($1), $1)
		on conflict (hash) do update set kept_at = now() where i.kept_at < now() - interval '1 minute'`, body)
	return sha256.Sum256(body), store.Failed("keep input of scores", err)
}

// ReadInput returns a stored input. repute.ErrNotFound when it was never stored or is no longer.
func ReadInput(ctx context.Context, db *store.DB, hash common.Hash) (body []byte, err error) {
	err = db.Readers().QueryRow(ctx, "select body from trust_inputs where hash = $1", hash.Bytes()).Scan(&body)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, fmt.Errorf("input of scores %s: %w", hash, repute.ErrNotFound)
	}
	return body, store.Failed("read input of scores", err)
}
