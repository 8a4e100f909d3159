package address

import (
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"pgregory.net/rapid"
)

// TestCheck accepts every address of the EVM in its three forms, and none of which one letter's case was changed.
func TestCheck(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a := common.BytesToAddress(rapid.SliceOfN(rapid.ByteMin(1), 20, 20).Draw(t, "address")).Hex()
		lower, upper := "0x"+strings.ToLower(a[2:]), "0X"+strings.ToUpper(a[2:])
		for _, s := range []string{a, lower, upper} {
			if got := Check(s); got != OK {
				t.Fatalf("%s: %d", s, got)
			}
		}
		at := rapid.IntRange(2, len(a)-1).Draw(t, "at")
		changed := a[:at] + swap(a[at:at+1]) + a[at+1:]
		if changed != a && changed != lower && "0X"+changed[2:] != upper && Check(changed) != Checksum {
			t.Fatalf("%s of %s: %d", changed, a, Check(changed))
		}
		if got := Check(a[:len(a)-1]); got != NoHex {
			t.Fatalf("a digit less: %d", got)
		}
	})
}

// swap changes the letter case of a text.
func swap(s string) string {
	if up := strings.ToUpper(s); up != s {
		return up
	}
	return strings.ToLower(s)
}

// Addresses that nobody has the key of, values of templates and other lengths are found in every form; what no network
// is known to forbid is taken.
func TestFaults(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]Fault{
		"0x" + strings.Repeat("0", 40):          Nobody,
		"0X" + strings.Repeat("0", 64):          Nobody,
		"0x" + strings.Repeat("0", 36) + "dEaD": Nobody,
		strings.Repeat("1", 32):                 Nobody,
		strings.Repeat("1", 33):                 OK,
		"0x" + strings.Repeat("0", 39) + "1":    OK,
		"0x" + strings.Repeat("aB", 32):         OK, // 32 bytes have no checksum
		"YOUR_WALLET":                           NoText,
		"0x1234...abcd":                         NoText,
		"0x<address>":                           NoText,
		"a b":                                   NoText,
		"0x":                                    NoHex,
		"0x" + strings.Repeat("g", 40):          NoHex,
		"0x" + strings.Repeat("0", 41):          NoHex,
		"0x" + strings.Repeat("é", 20):          NoHex,
		"shop.eth":                              OK,
		"":                                      OK,
	} {
		if got := Check(s); got != want {
			t.Errorf("%s: %d, want %d", s, got, want)
		}
	}
}
