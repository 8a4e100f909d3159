package answers

import (
	"errors"
	"strings"
	"testing"

	"repute"
)

const registry = "0x8004A169FB4a3325136EB29fA0ceB6D2e539a432"

func TestParseAgent(t *testing.T) {
	full := "eip155:8453:" + registry + ":22"
	cases := []struct {
		id, chain string
		want      string // chain:token, "" for an error
		field     string
	}{
		{full, "", "8453:22", ""},
		{strings.ToLower(full), "", "8453:22", ""},
		{full, "8453", "8453:22", ""},
		{full, "1", "", "chainId"},
		{"8453:22", "", "8453:22", ""},
		{"8453:0", "8453", "8453:0", ""},
		{"8453:22", "1", "", "chainId"},
		{"22", "", "0:22", ""},
		{"22", "8453", "8453:22", ""},
		{"22", "x", "", "chainId"},
		{"22", "0", "", "chainId"},
		{"22", "-1", "", "chainId"},
		{"", "", "", "id"},
		{"x", "", "", "id"},
		{"-1", "", "", "id"},
		{"01", "", "", "id"},
		{"1.5", "", "", "id"},
		{"0x16", "", "", "id"},
		{"8453:", "", "", "id"},
		{":22", "", "8453:22", "chainId"},
		{"8453:22:1", "", "", "id"},
		{"solana:1:" + registry + ":22", "", "", "id"},
		{"eip155:8453:0x8004:22", "", "", "registry"},
		{"eip155:8453:" + strings.Replace(registry, "4A169FB", "4a169FB", 1) + ":22", "", "", "registry"},
		{strings.Repeat("9", 78), "", "", "id"},
		{"115792089237316195423570985008687907853269984665640564039457584007913129639935", "",
			"0:115792089237316195423570985008687907853269984665640564039457584007913129639935", ""},
		{"115792089237316195423570985008687907853269984665640564039457584007913129639936", "", "", "id"},
		{"22\x00", "", "", "id"},
	}
	for _, c := range cases {
		ref, err := ParseAgent(c.id, c.chain)
		if c.field != "" && c.id != ":22" {
			checkField(t, c.id, err, c.field)
			continue
		}
		if c.id == ":22" { // an empty chain is no chain
			if err == nil && ref.ChainID != 0 {
				t.Errorf("%q: chain %d", c.id, ref.ChainID)
			}
			continue
		}
		got := repute.AgentID{ChainID: ref.ChainID, TokenID: ref.TokenID}
		if err != nil || got.Short() != c.want {
			t.Errorf("%q: got %s, %v; want %s", c.id, got.Short(), err, c.want)
		}
	}
}

func checkField(t *testing.T, input string, err error, field string) {
	t.Helper()
	var ie *repute.InputError
	if !errors.As(err, &ie) || !errors.Is(err, repute.ErrInvalid) {
		t.Errorf("%q: %v is no input error", input, err)
		return
	}
	if ie.Field != field || ie.Reason == "" || ie.Hint == "" {
		t.Errorf("%q: field %q (want %q), reason %q, hint %q", input, ie.Field, field, ie.Reason, ie.Hint)
	}
}

func TestParseAt(t *testing.T) {
	good := map[string]repute.At{
		"": {Finality: repute.Latest}, "latest": {Finality: repute.Latest}, "safe": {Finality: repute.Safe},
		"finalized": {Finality: repute.Finalized}, "0": {}, "12345": {Block: 12345},
	}
	for in, want := range good {
		if got, err := ParseAt(in); err != nil || got != want {
			t.Errorf("%q: %v, %v", in, got, err)
		}
	}
	for _, in := range []string{"pending", "earliest", "-1", "+1", "0x10", "1.0", "9223372036854775808", " 1",
		"LATEST"} {
		_, err := ParseAt(in)
		checkField(t, in, err, "at")
	}
}

func TestParseParameters(t *testing.T) {
	for _, in := range []string{"x", registry + ",", "," + registry, registry + ",0x12",
		strings.Repeat(registry+",", MaxClients) + registry} {
		_, err := ParseAddresses("clients", in)
		checkField(t, in, err, "clients")
	}
	twice, err := ParseAddresses("clients", registry+", "+strings.ToLower(registry))
	if err != nil || len(twice) != 2 || twice[0] != twice[1] {
		t.Errorf("one client twice: %v, %v", twice, err)
	}
	for _, in := range []string{"x", "1,", "1,,2", "0"} {
		_, err := ParseChains(in)
		checkField(t, in, err, "chainId")
	}
	for _, in := range [][2]string{{"name", ""}, {"id", "up"}, {"", "DESC"}} {
		_, _, err := ParseSort(in[0], in[1], false)
		var ie *repute.InputError
		if !errors.As(err, &ie) {
			t.Errorf("%v: %v", in, err)
		}
	}
}

// FuzzParseAgent: whatever parses is written back as an id that parses to the
// same, and whatever does not names its field.
func FuzzParseAgent(f *testing.F) {
	for _, s := range []string{"22", "8453:22", "eip155:8453:" + registry + ":22", ":", "::::", "eip155:::", "0",
		"1:\x00"} {
		f.Add(s, "")
		f.Add(s, "8453")
	}
	f.Fuzz(func(t *testing.T, id, chain string) {
		ref, err := ParseAgent(id, chain)
		if err != nil {
			if !errors.Is(err, repute.ErrInvalid) {
				t.Fatalf("%q %q: %v", id, chain, err)
			}
			return
		}
		text := ref.TokenID.Dec()
		if ref.ChainID != 0 {
			text = repute.AgentID{ChainID: ref.ChainID, TokenID: ref.TokenID}.Short()
		}
		again, err := ParseAgent(text, chain)
		if err != nil || again.ChainID != ref.ChainID || again.TokenID != ref.TokenID {
			t.Fatalf("%q %q: %v, then %q: %v, %v", id, chain, ref, text, again, err)
		}
	})
}

// FuzzParseAt: a view is a name or a block that fits the database.
func FuzzParseAt(f *testing.F) {
	for _, s := range []string{"", "latest", "safe", "1", "-0", "00", "9223372036854775807"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		at, err := ParseAt(s)
		switch {
		case err != nil && !errors.Is(err, repute.ErrInvalid):
			t.Fatalf("%q: %v", s, err)
		case err == nil && at.Block > 1<<63-1:
			t.Fatalf("%q: block %d", s, at.Block)
		}
	})
}
