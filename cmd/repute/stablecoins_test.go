package main

import (
	"strings"
	"testing"
)

func TestStablecoins(t *testing.T) {
	const custom = "stablecoins: [{address: '0x00000000000000000000000000000000000000aa', symbol: USDX, decimals: 18}]"
	chains, err := followedOf(t, customChain("rpc: http://a.example", custom))
	if err != nil || len(chains[0].Coins) != 1 || chains[0].Coins[0].Decimals != 18 || chains[0].Coins[0].Symbol != "USDX" {
		t.Errorf("%+v, %v", chains, err)
	}
	for _, c := range []struct{ from, to, field string }{
		{"00aa'", "'", "stablecoins[0].address"},
		{"USDX", "''", "stablecoins[0].symbol"},
		{", decimals: 18", "", "stablecoins[0].decimals"},
		{"18", "37", "stablecoins[0].decimals"},
	} {
		_, err := followedOf(t, customChain("rpc: http://a.example", strings.Replace(custom, c.from, c.to, 1)))
		if err == nil || !strings.Contains(err.Error(), c.field) {
			t.Errorf("%s: %v", c.field, err)
		}
	}
}
