package config

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"repute"
)

const (
	identityHex   = "0x8004a169fb4a3325136eb29fa0ceb6d2e539a432"
	reputationHex = "0x8004baa17c55a88189ae136b182e5fda19de9b63"
)

// customChain is the entry of a chain nobody knows, with more lines.
func customChain(lines ...string) string {
	entry := []string{"chains:", "  - id: 31337", "    identity: \"" + identityHex + "\"",
		"    reputation: \"" + reputationHex + "\""}
	for _, l := range lines {
		entry = append(entry, "    "+l)
	}
	return strings.Join(entry, "\n") + "\n"
}

func followedOf(t *testing.T, file string, args ...string) ([]Followed, error) {
	t.Helper()
	c, err := loadWith(t, file, args...)
	if err != nil {
		return nil, err
	}
	return c.Followed()
}

func TestSeveralEndpoints(t *testing.T) {
	want := []string{"http://a.example", "wss://b.example"}
	for name, args := range map[string]struct {
		file string
		args []string
	}{
		"list":  {customChain("rpc: [http://a.example, wss://b.example]"), nil},
		"flags": {"", []string{"--chain", "base", "--rpc", want[0], "--rpc", want[1]}},
		"flags over the file": {customChain("rpc: http://c.example"),
			[]string{"--chain", "31337", "--rpc", want[0], "--rpc", want[1]}},
	} {
		chains, err := followedOf(t, args.file, args.args...)
		if err != nil || len(chains) != 1 || !slices.Equal(chains[0].RPC, want) {
			t.Errorf("%s: got %+v, %v", name, chains, err)
		}
	}
	chains, err := followedOf(t, customChain("rpc: http://a.example"))
	if err != nil || !slices.Equal(chains[0].RPC, want[:1]) {
		t.Errorf("a single string: got %+v, %v", chains, err)
	}
}

// Unusable URLs are refused before anything is opened, without showing a key.
func TestEndpointsAreCheckedFirst(t *testing.T) {
	const key = "s3cretkey"
	for name, args := range map[string][]string{
		"no scheme":      {"--chain", "base", "--rpc", "node.example/" + key},
		"scheme":         {"--chain", "base", "--rpc", "ftp://node.example/" + key},
		"the second one": {"--chain", "base", "--rpc", "http://a.example", "--rpc", "://" + key},
		"twice":          {"--chain", "base", "--rpc", "http://a.example/" + key, "--rpc", "http://a.example/" + key},
		"before a chain": {"--rpc", "http://a.example/" + key, "--chain", "base"},
	} {
		_, err := followedOf(t, "", args...)
		var input *repute.InputError
		if !errors.As(err, &input) || input.Field != "rpc" || input.Hint == "" || strings.Contains(err.Error(), key) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestValidationsOption(t *testing.T) {
	one := repute.Chain{}.Identity
	one[0] = 1
	for line, want := range map[string]struct {
		trusted int
		listed  bool
	}{
		"validations: any":                             {0, false},
		"validations: listed":                          {0, true},
		"validations: [\"" + one.Hex() + "\"]":         {1, false},
		"validations: [listed, \"" + one.Hex() + "\"]": {1, true},
	} {
		chains, err := followedOf(t, customChain("rpc: http://a.example", "finality_depth: 12", line))
		if err != nil || len(chains[0].Validations) != want.trusted || chains[0].Listed != want.listed ||
			chains[0].Depth != 12 {
			t.Errorf("%s: got %+v, %v", line, chains, err)
		}
	}
	for _, line := range []string{"validations: all", "validations: [any, listed]", "validations: [\"0x12\"]"} {
		if chains, err := followedOf(t, customChain("rpc: http://a.example", line)); !errors.Is(err,
			repute.ErrInvalid) ||
			!strings.Contains(err.Error(), "validations") {
			t.Errorf("%s: got %+v, %v", line, chains, err)
		}
	}
	// A word alone leaves a known deployment its own list; an empty list empties it.
	preset, _ := preset("base")
	for line, want := range map[string]int{"validations: listed": len(preset.Validations), "validations: []": 0} {
		chains, err := followedOf(t, "chains:\n  - name: base\n    rpc: http://a.example\n    "+line+"\n")
		if err != nil || len(chains[0].Validations) != want {
			t.Errorf("%s: got %+v, %v, want %d addresses", line, chains, err, want)
		}
	}
}
