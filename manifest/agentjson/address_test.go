package agentjson

import (
	"fmt"
	"strings"
	"testing"
)

func TestAddresses(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"0x71C7656EC7ab88b098defB751B7401B5f6d8976F": "",
		"0x71c7656ec7ab88b098defb751b7401b5f6d8976f": "",
		"0X71C7656EC7AB88B098DEFB751B7401B5F6D8976F": "",
		"0x71C7656EC7ab88b098defB751B7401B5f6d8976f": "WJ593",
		"0x0000000000000000000000000000000000000000": "WJ614",
		"0x000000000000000000000000000000000000dEaD": "WJ614",
		"0x" + strings.Repeat("0", 64):               "WJ614",
		"11111111111111111111111111111111":           "WJ614",
		"0x" + strings.Repeat("ab", 32):              "", // of 32 bytes, as Aptos has them
		"0x71C7656EC7ab88b098defB751B7401B5f6d8976":  "WJ615",
		"0x71C7656EC7ab88b098defB751B7401B5f6d8976G": "WJ615",
		"0x...":          "WJ615",
		"0xYOUR_ADDRESS": "WJ615",
		"<wallet>":       "WJ615",
		"your-wallet":    "WJ615",
		"GA5ZSEJYB37JRC5AVCIA5MOP4RHTM335X2KGX3IHOJAPP5RE34K4KZVN": "", // Stellar
		"EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v":             "", // Solana
		"alice.eth": "",
	} {
		_, problems := Parse([]byte(fmt.Sprintf(`{"version":"1.0","origin":"example.com","payout_address":%q}`,
			address)), Options{})
		got := ""
		if len(problems) > 0 {
			got = problems[0].Code
		}
		if got != want || len(problems) > 1 {
			t.Errorf("%s: %v, want %q", address, codes(problems), want)
		}
	}
}
