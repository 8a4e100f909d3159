package config

import (
	"strings"
	"testing"
)

func TestStablecoins(t *testing.T) {
	const custom = "stablecoins: [0x00000000000000000000000000000000000000aa USDX 18]"
	chains, err := followedOf(t, customChain("rpc: http://a.example", custom))
	if err != nil || len(chains[0].Coins) != 1 || chains[0].Coins[0].Decimals != 18 ||
		chains[0].Coins[0].Symbol != "USDX" {
		t.Errorf("%+v, %v", chains, err)
	}
	for _, c := range []struct{ from, to, field string }{
		{"00aa ", " ", "stablecoins[0]: "},
		{"USDX", "ABCDEFGHIJKLMNOPQ", "is no symbol"},
		{" 18", "", "has not three parts"},
		{"18", "37", "is no number of decimals"},
	} {
		_, err := followedOf(t, customChain("rpc: http://a.example", strings.Replace(custom, c.from, c.to, 1)))
		if err == nil || !strings.Contains(err.Error(), c.field) {
			t.Errorf("%s: %v", c.field, err)
		}
	}
}
