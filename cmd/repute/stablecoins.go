package main

import (
	"fmt"
	"strconv"
	"strings"

	"repute"
	"repute/indexer/payments"
)

// coinConfig is a token of a chain that payments count in, one US dollar each.
type coinConfig struct {
	Address  string `yaml:"address"`
	Symbol   string `yaml:"symbol"`
	Decimals *uint8 `yaml:"decimals"`
}

// maxCoins bounds the list of one chain: every payment asks the nodes about all of them.
const maxCoins = 20

// coins are those that are known of a chain, with what its entry adds or says otherwise.
func (cc chainConfig) coins(chain repute.Chain) ([]repute.Stablecoin, error) {
	list, err := payments.Coins(chain.ID)
	if err != nil {
		return nil, err
	}
	for i, c := range cc.Stablecoins {
		field := fmt.Sprintf("chains: %s: stablecoins[%d]", chain.Name, i)
		coin, err := c.coin(field, chain.ID)
		if err != nil {
			return nil, err
		}
		if at := coinAt(list, coin); at >= 0 {
			list[at] = coin
		} else {
			list = append(list, coin)
		}
	}
	if len(list) > maxCoins {
		return nil, repute.Invalid("chains: "+chain.Name+": stablecoins", strconv.Itoa(len(list))+" are too many", fmt.Sprintf("at most %d", maxCoins))
	}
	return list, nil
}

func coinAt(list []repute.Stablecoin, coin repute.Stablecoin) int {
	for i := range list {
		if list[i].Address == coin.Address {
			return i
		}
	}
	return -1
}

func (c coinConfig) coin(field string, chainID uint64) (coin repute.Stablecoin, err error) {
	a, err := repute.ParseAddress(field+".address", c.Address)
	switch symbol := strings.TrimSpace(c.Symbol); {
	case err != nil:
		return coin, err
	case symbol == "" || len(symbol) > 16 || strings.ContainsFunc(symbol, func(r rune) bool { return r <= ' ' || r > '~' }):
		return coin, repute.Invalid(field+".symbol", "no symbol", "1 to 16 letters, e.g. USDC")
	case c.Decimals == nil:
		return coin, repute.Invalid(field+".decimals", "not given", "what the token's decimals() says, e.g. 6: a wrong number counts payments a million times over")
	case *c.Decimals > 36:
		return coin, repute.Invalid(field+".decimals", fmt.Sprintf("%d", *c.Decimals), "0 to 36")
	}
	return repute.Stablecoin{ChainID: chainID, Address: a, Symbol: strings.TrimSpace(c.Symbol), Decimals: *c.Decimals}, nil
}
