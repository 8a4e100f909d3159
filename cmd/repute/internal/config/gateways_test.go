package config

import (
	"errors"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"repute"
)

// Feedback gateways stand in the list of a chain's contracts and leave the rest of the list as it is.
func TestGateways(t *testing.T) {
	t.Parallel()
	gateway := common.Address{19: 9}
	preset, _ := preset("base")
	for line, validations := range map[string]int{
		`["gateway ` + gateway.Hex() +
			` 41000000"]`: len(preset.Validations),
		`[listed, "gateway ` + gateway.Hex() +
			` 41000000"]`: len(preset.Validations),
		`["` + common.Address{1}.Hex() + `", "gateway ` + strings.ToLower(gateway.Hex()) + ` 41000000"]`: 1,
	} {
		chains, err := followedOf(t, "chains:\n  - name: base\n    rpc: http://a.example\n    validations: "+line+"\n")
		if err != nil || len(chains[0].Validations) != validations || len(chains[0].Gateways) != 1 ||
			chains[0].Gateways[0] != (repute.WatchedContract{Address: gateway, From: 41_000_000}) {
			t.Errorf("%s: %+v, %v", line, chains, err)
		}
	}
	for line, want := range map[string]string{
		`["gateway ` + gateway.Hex() + `"]`:            "three parts",
		`["gateway"]`:                                  "three parts",
		`["gateway 0x12 5"]`:                           "address",
		`["gateway ` + common.Address{}.Hex() + ` 5"]`: "zero address",
		`["gateway ` + gateway.Hex() + ` -5"]`:         "no block number",
		`["gateway ` + gateway.Hex() + ` 5", "gateway ` + gateway.Hex() + ` 6"]`: "stands twice",
		`["gateway ` + preset.Reputation.Hex() + ` 5"]`:                          "another contract",
	} {
		_, err := followedOf(t, "chains:\n  - name: base\n    rpc: http://a.example\n    validations: "+line+"\n")
		if !errors.Is(err, repute.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
}

// An entry that only the database can complete keeps the gateways that are stored.
func TestGatewaysOfStoredChains(t *testing.T) {
	t.Parallel()
	stored := repute.Chain{ID: 77, Name: "own", Identity: common.Address{1}, Reputation: common.Address{2},
		Gateways: []repute.WatchedContract{{Address: common.Address{3}, From: 5}}}
	c := Config{Chains: []ChainConfig{{Name: "own", RPC: URLs{"http://a.example"}}}}
	c.Complete(stored)
	chains, err := c.Followed()
	if err != nil || len(chains) != 1 || len(chains[0].Gateways) != 1 || chains[0].Gateways[0] != stored.Gateways[0] {
		t.Errorf("%+v, %v", chains, err)
	}
}
