package approval

import (
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"repute/contracts"
	"repute/store"
	"repute/store/walletdb"
)

// ListedFunction is the function that an entry of a treasury's allow-list names for calldata of
// a target; nil where none does.
func ListedFunction(ctx context.Context, db *store.DB, chainID uint64, target common.Address,
	data []byte) (*contracts.Function, error) {
	if len(data) < 4 {
		return nil, nil
	}
	text, err := walletdb.ReadCallFunction(ctx, db, chainID, target, [4]byte(data))
	if err != nil || text == "" {
		return nil, err
	}
	f, err := contracts.ParseFunction(text)
	if err != nil {
		return nil, fmt.Errorf("stored function of %s: %w", target, err)
	}
	return f, nil
}
