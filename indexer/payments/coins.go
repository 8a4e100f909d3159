package payments

import (
	_ "embed"
	"encoding/json"
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"repute"
)

//go:embed coins.json
var coinsJSON []byte

// Coins returns the stablecoins in which payments on a chain count without configuration: those in
// which the x402 protocol settles. Other chains have none.
func Coins(chainID uint64) ([]repute.Stablecoin, error) {
	var list []struct {
		ChainID  uint64         `json:"chainId"`
		Address  common.Address `json:"address"`
		Symbol   string         `json:"symbol"`
		Decimals uint8          `json:"decimals"`
	}
	if err := json.Unmarshal(coinsJSON, &list); err != nil {
		return nil, fmt.Errorf("list of stablecoins: %w", err)
	}
	var out []repute.Stablecoin
	for _, c := range list {
		if c.ChainID == chainID {
			out = append(out, repute.Stablecoin{ChainID: c.ChainID, Address: c.Address, Symbol: c.Symbol,
				Decimals: c.Decimals})
		}
	}
	return out, nil
}
