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
