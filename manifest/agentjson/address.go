package agentjson

import (
	"strings"

	"repute"
)

// Lengths of addresses in hex with 0x: of the EVM and of chains with 32 bytes, such as Aptos.
const (
	evmAddress  = 2 + 40
	longAddress = 2 + 64
)

// address reports what is wrong with an address to which money goes. Networks have many forms; only those that begin
// with 0x can be checked further.
func (o *object) address(name, s string) {
	lower := strings.ToLower(s)
	digits, isHex := strings.CutPrefix(lower, "0x")
	switch {
	case s == "":
	case isNobody(lower):
		o.r.add(CodeZeroAddress, o.at(name), "%.*q is nobody's", maxQuotedValue, s)
	case strings.ContainsAny(s, " \t\r\n<>{}$…") || strings.Contains(s, "...") || strings.Contains(lower, "your"):
		o.r.add(CodeAddress, o.at(name), "%.*q is no address", maxQuotedValue, s)
	case !isHex:
	case len(s) != evmAddress && len(s) != longAddress || strings.Trim(digits, "0123456789abcdef") != "":
		o.r.add(CodeAddress, o.at(name), "%.*q is not 0x and 40 or 64 hex digits", maxQuotedValue, s)
	case len(s) == evmAddress && s != lower && s != "0x"+strings.ToUpper(digits):
		if _, err := repute.ParseAddress("", s); err != nil {
			o.r.add(CodeChecksum, o.at(name), "%.*q has a wrong EIP-55 checksum", maxQuotedValue, s)
		}
	}
}

// isNobody reports whether an address in lower case is one whose key nobody has: zero, the system program of Solana,
// or the address to which tokens are burnt.
func isNobody(lower string) bool {
	digits, isHex := strings.CutPrefix(lower, "0x")
	switch {
	case isHex && (len(lower) == evmAddress || len(lower) == longAddress):
		return strings.Trim(digits, "0") == "" || strings.TrimLeft(digits, "0") == "dead"
	case len(lower) == 32:
		return strings.Trim(lower, "1") == ""
	}
	return false
}
