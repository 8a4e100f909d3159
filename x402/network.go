package x402

import (
	"strconv"
	"strings"
)

// slug is a chain's name in version 1.
type slug struct {
	name    string
	chainID uint64
}

// slugs returns the networks that version 1 knows by name: those of x402's own clients. The list
// is closed, as version 1 is.
func slugs() []slug {
	return []slug{{"base", 8453}, {"base-sepolia", 84532}, {"ethereum", 1}, {"polygon", 137}, {"polygon-amoy", 80002},
		{"avalanche", 43114}, {"avalanche-fuji", 43113}, {"abstract", 2741}, {"abstract-testnet", 11124},
		{"iotex", 4689}, {"sei", 1329}, {"sei-testnet", 1328}, {"peaq", 3338}, {"story", 1513}, {"educhain", 656476},
		{"skale-base-sepolia", 1444673419}, {"celo", 42220}}
}

// Network returns a chain's name in version 2, by CAIP-2: eip155:8453.
func Network(chainID uint64) string { return "eip155:" + strconv.FormatUint(chainID, 10) }

// Slug returns a chain's name in version 1, "" where it has none.
func Slug(chainID uint64) string {
	for _, s := range slugs() {
		if s.chainID == chainID {
			return s.name
		}
	}
	return ""
}

// ChainOf reads the name of a network, by CAIP-2 or as in version 1, in either version of the protocol. The error is a
// *Refusal with ReasonInvalidNetwork.
func ChainOf(network string) (uint64, error) {
	if digits, ok := strings.CutPrefix(network, "eip155:"); ok {
		id, err := strconv.ParseUint(digits, 10, 63)
		if err == nil && id > 0 && digits[0] != '0' && digits[0] != '+' {
			return id, nil
		}
	}
	for _, s := range slugs() {
		if s.name == network {
			return s.chainID, nil
		}
	}
	return 0, Refuse(ReasonInvalidNetwork,
		"%.60q is no network: a name of version 1, or eip155: and the chain's number",
		network)
}
