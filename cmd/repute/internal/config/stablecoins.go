package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"repute"
	"repute/indexer/payments"
)

// maxCoins bounds the list of one chain: every payment asks the nodes about all of them.
const maxCoins = 20

// coins are those that are known of a chain, with what its entry adds or says otherwise.
func (cc ChainConfig) coins(chain repute.Chain) ([]repute.Stablecoin, error) {
	list, err := payments.Coins(chain.ID)
	if err != nil {
		return nil, err
	}
	for i, c := range cc.Stablecoins {
		field := fmt.Sprintf("chains: %s: stablecoins[%d]", chain.Name, i)
		coin, err := coinOf(field, c, chain.ID)
		if err != nil {
			return nil, err
		}
		isSame := func(known repute.Stablecoin) bool { return known.Address == coin.Address }
		if at := slices.IndexFunc(list, isSame); at >= 0 {
			list[at] = coin
		} else {
			list = append(list, coin)
		}
	}
	if len(list) > maxCoins {
		return nil, repute.Invalid("chains: "+chain.Name+": stablecoins", strconv.Itoa(len(list))+" are too many",
			fmt.Sprintf("at most %d", maxCoins))
	}
	return list, nil
}

// coinOf reads a token that payments count in, one US dollar each: "ADDRESS SYMBOL DECIMALS".
func coinOf(field, text string, chainID uint64) (coin repute.Stablecoin, err error) {
	const form = `the address, the symbol and what the token's decimals() says, e.g. "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913 USDC 6"`
	parts := strings.Fields(text)
	if len(parts) != 3 {
		return coin, repute.Invalid(field, fmt.Sprintf("%.80q has not three parts", text), form)
	}
	decimals, err := strconv.ParseUint(parts[2], 10, 8)
	if err != nil || decimals > 36 {
		return coin, repute.Invalid(field, fmt.Sprintf("%.20q is no number of decimals", parts[2]),
			form+"; a wrong number counts payments a million times over")
	}
	if symbol := parts[1]; len(symbol) > 16 ||
		strings.ContainsFunc(symbol, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return coin, repute.Invalid(field, fmt.Sprintf("%.40q is no symbol", symbol), form)
	}
	a, err := repute.ParseAddress(field, parts[0])
	return repute.Stablecoin{ChainID: chainID, Address: a, Symbol: parts[1], Decimals: uint8(decimals)}, err
}
