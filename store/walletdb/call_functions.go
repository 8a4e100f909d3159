package walletdb

import (
	"context"
	"errors"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute/store"
)

// CallFunction is the text of the function that a pair of a treasury's allow-list names.
type CallFunction struct {
	Target   common.Address
	Selector [4]byte
	Text     string // name and arguments, with types and names
}

// addCallFunctions stores the texts of functions that an act put on an allow-list. They
// replace earlier texts of the same target and selector.
func addCallFunctions(ctx context.Context, tx pgx.Tx, act string, chainID int64, list []CallFunction) error {
	for _, f := range list {
		_, err := tx.Exec(ctx, `
			insert into call_functions (chain_id, target, selector, text, act) values ($1, $2, $3, $4, $5)
			on conflict (chain_id, target, selector) do update set text = excluded.text, act = excluded.act`,
			chainID, f.Target[:], f.Selector[:], f.Text, act)
		if err != nil {
			return err
		}
	}
	return nil
}

// ReadCallFunction is the text of the function that an allow-list names for a target and a
// selector; empty where none does.
func ReadCallFunction(ctx context.Context, db *store.DB, chainID uint64, target common.Address, selector [4]byte) (text string, err error) {
	err = db.Pool().QueryRow(ctx, `select text from call_functions where chain_id = $1 and target = $2 and selector = $3`,
		int64(chainID), target[:], selector[:]).Scan(&text)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil
	}
	return text, store.Failed("read function of a call", err)
}
