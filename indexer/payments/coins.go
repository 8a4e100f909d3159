package payments

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"

	"repute"
)

//go:embed coins.json
var coinsJSON []byte

// Coins returns the stablecoins in which payments on a chain count without configuration: those in
// which the x402 protocol settles. Other chains have none.
func Coins(chainID uint64) ([]repute.Stablecoin, error) {
	var all []repute.Stablecoin
	if err := json.Unmarshal(coinsJSON, &all); err != nil {
		return nil, fmt.Errorf("list of stablecoins: %w", err)
	}
	return slices.DeleteFunc(all, func(c repute.Stablecoin) bool { return c.ChainID != chainID }), nil
}
