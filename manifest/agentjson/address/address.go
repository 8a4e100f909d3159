// Package address checks addresses to which money goes. Networks have many forms; only those that begin with 0x can be
// checked as a whole.
package address

import (
	"strings"

	"repute"
)

// Fault is what is wrong with an address.
type Fault int

// Faults of an address.
const (
	OK       Fault = iota
	Nobody         // zero, burnt or a system's: nobody has its key
	NoText         // no network has such an address
	NoHex          // begins with 0x and is not 40 or 64 hex digits
	Checksum       // mixed letter case that is not the checksum of EIP-55
)

// Lengths of addresses in hex with 0x: of the EVM and of chains with 32 bytes, such as Aptos.
const (
	evm  = 2 + 40
	long = 2 + 64
)

// systemProgram is the length of the address of Solana's system program, which has no owner: only ones.
const systemProgram = 32

// Check returns what is wrong with an address.
func Check(s string) Fault {
	digits, hex := cutHexPrefix(s)
	if hex && (len(s) == evm || len(s) == long) && isHex(digits) {
		return checkHex(s, digits)
	}
	lower := strings.ToLower(s)
	switch {
	case len(s) == systemProgram && strings.Trim(s, "1") == "":
		return Nobody
	case strings.ContainsAny(s, " \t\r\n<>{}$…") || strings.Contains(s, "...") || strings.Contains(lower, "your"):
		return NoText
	case hex:
		return NoHex
	}
	return OK
}

// checkHex finds an address whose key nobody has, because it is zero or tokens are burnt there, and one with a wrong
// checksum.
func checkHex(s, digits string) Fault {
	rest := strings.TrimLeft(digits, "0")
	if rest == "" || strings.EqualFold(rest, "dead") {
		return Nobody
	}
	mixed := strings.ContainsAny(digits, "abcdef") && strings.ContainsAny(digits, "ABCDEF")
	if len(s) != evm || !mixed {
		return OK
	}
	if _, err := repute.ParseAddress("", s); err != nil {
		return Checksum
	}
	return OK
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
