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
	if s == "" {
		return
	}
	if digits, ok := cutHexPrefix(s); ok && (len(s) == evmAddress || len(s) == longAddress) && isHex(digits) {
		o.hexAddress(name, s, digits)
		return
	}
	lower := strings.ToLower(s)
	_, hex := cutHexPrefix(s)
	switch {
	case len(s) == systemProgram && strings.Trim(s, "1") == "":
		o.r.add(CodeZeroAddress, o.at(name), "%.*q is nobody's", maxQuotedValue, s)
	case strings.ContainsAny(s, " \t\r\n<>{}$…") || strings.Contains(s, "...") || strings.Contains(lower, "your"):
		o.r.add(CodeAddress, o.at(name), "%.*q is no address", maxQuotedValue, s)
	case hex:
		o.r.add(CodeAddress, o.at(name), "%.*q is not 0x and 40 or 64 hex digits", maxQuotedValue, s)
	}
}

// systemProgram is the length of the address of Solana's system program, which has no owner: only ones.
const systemProgram = 32

// hexAddress reports an address whose key nobody has, because it is zero or tokens are burnt there, and one with a
// wrong checksum.
func (o *object) hexAddress(name, s, digits string) {
	rest := strings.TrimLeft(digits, "0")
	if rest == "" || strings.EqualFold(rest, "dead") {
		o.r.add(CodeZeroAddress, o.at(name), "%.*q is nobody's", maxQuotedValue, s)
		return
	}
	mixed := strings.ContainsAny(digits, "abcdef") && strings.ContainsAny(digits, "ABCDEF")
	if len(s) != evmAddress || !mixed {
		return
	}
	if _, err := repute.ParseAddress("", s); err != nil {
		o.r.add(CodeChecksum, o.at(name), "%.*q has a wrong EIP-55 checksum", maxQuotedValue, s)
	}
}

// cutHexPrefix removes 0x, in either letter case.
func cutHexPrefix(s string) (digits string, ok bool) {
	if len(s) < 2 || s[0] != '0' || s[1]|0x20 != 'x' {
		return s, false
	}
	return s[2:], true
}

// isHex reports whether a text has only hex digits.
func isHex(s string) bool {
	for i := range len(s) {
		c := s[i] | 0x20
		if (s[i] < '0' || s[i] > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
