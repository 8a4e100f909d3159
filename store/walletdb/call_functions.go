package walletdb

import (
	"context"
	"errors"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/jackc/pgx/v5"

	"repute/store"
)

// CallFunction is the text of the function that a pair of a treasury's allow-list names.
type CallFunction struct {
	Target   common.Address
	Selector [4]byte
	Text     string // name and arguments, with types and names
}

// callFunctionJSON is a CallFunction in column functions of table acts: target and selector in hex.
type callFunctionJSON struct {
	Target   string `json:"target"`
	Selector string `json:"selector"`
	Text     string `json:"text,omitempty"`
}

// ReadCallFunction returns the text of the function that an allow-list names for a target and a
// selector, as the act wrote it that ended last; empty where none does.
func ReadCallFunction(ctx context.Context, db *store.DB, chainID uint64, target common.Address,
	selector [4]byte) (text string, err error) {
	pair := callFunctionJSON{Target: hexutil.Encode(target[:]), Selector: hexutil.Encode(selector[:])}
	err = db.Pool().QueryRow(ctx, `
		select f->>'text' from acts cross join jsonb_array_elements(functions) with ordinality as e(f, n)
		where chain_id = $1 and functions @> jsonb_build_array($2::jsonb) and f @> $2::jsonb
		order by ended_at desc, n desc limit 1`, int64(chainID), pair).Scan(&text)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil
	}
	return text, store.Failed("read function of a call", err)
}
