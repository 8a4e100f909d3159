package repute_test

import (
	"errors"
	"testing"

	"repute"
)

func TestParseAgentRef(t *testing.T) {
	const registry = "0x8004A169FB4a3325136EB29fA0ceB6D2e539a432"
	good := []struct {
		in    string
		chain uint64
		token string
		full  bool
	}{
		{"0", 0, "0", false},
		{"8453:22", 8453, "22", false},
		{"eip155:1:" + registry + ":7", 1, "7", true},
		{"eip155:1:0x8004a169fb4a3325136eb29fa0ceb6d2e539a432:7", 1, "7", true},
		{"eip155:1/erc721:" + registry + "/7", 1, "7", true},
		{"1:115792089237316195423570985008687907853269984665640564039457584007913129639935", 1,
			"115792089237316195423570985008687907853269984665640564039457584007913129639935", false},
	}
	for _, c := range good {
		ref, err := repute.ParseAgentRef(c.in)
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		if ref.ChainID != c.chain || ref.TokenID.Dec() != c.token || (ref.Registry != nil) != c.full {
			t.Errorf("%s: got %+v", c.in, ref)
		}
	}
	bad := []string{"", "-1", "+1", "01", "1:", ":1", "0:1", "1:2:3", "0x1", "1e3", "eip155:1:0x12:7",
		"eip155::" + registry + ":7",
		"solana:1:" + registry + ":7", "115792089237316195423570985008687907853269984665640564039457584007913129639936",
		"9223372036854775808:1", "eip155:1:0x8004a169FB4a3325136EB29fA0ceB6D2e539a432:7", "1 ", "١",
		"eip155:1/erc721:" + registry, "solana:1/erc721:" + registry + "/7", "1/erc721:" + registry + "/7",
		"eip155:1/erc721:" + registry + "/7/8"}
	for _, in := range bad {
		if ref, err := repute.ParseAgentRef(in); !errors.Is(err, repute.ErrInvalid) {
			t.Errorf("%q: got %+v, %v, want ErrInvalid", in, ref, err)
		}
	}
}

func FuzzParseAgentRef(f *testing.F) {
	f.Add("eip155:1:0x8004A169FB4a3325136EB29fA0ceB6D2e539a432:7")
	f.Add("8453:22")
	f.Add("eip155:1/erc721:0x8004A169FB4a3325136EB29fA0ceB6D2e539a432/7")
	f.Fuzz(func(t *testing.T, s string) {
		ref, err := repute.ParseAgentRef(s)
		if err != nil || ref.Registry == nil {
			return
		}
		id := repute.AgentID{ChainID: ref.ChainID, Registry: *ref.Registry, TokenID: ref.TokenID}
		again, err := repute.ParseAgentRef(id.String())
		if err != nil || again.ChainID != ref.ChainID || *again.Registry != *ref.Registry ||
			again.TokenID != ref.TokenID {
			t.Fatalf("%q → %q → %+v, %v", s, id, again, err)
		}
	})
}
