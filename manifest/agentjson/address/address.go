// Package address checks addresses to which money goes. Networks have many forms; only those that begin with 0x can be
// checked as a whole.
//
// Check finds what nobody should pay to: addresses that nobody has the key of, values of templates, and capitals that
// are no checksum. OK means that nothing is known against an address, and not that it is one.
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
	hex := len(s) >= 2 && strings.EqualFold(s[:2], "0x")
	if hex && (len(s) == evm || len(s) == long) && strings.Trim(s[2:], "0123456789abcdefABCDEF") == "" {
		return checkHex(s, s[2:])
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
