package api

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ethereum/go-ethereum/common/hexutil"
)

// text makes bytes of the chain showable: invalid UTF-8 and NUL become U+FFFD.
// The hex form of the raw bytes comes with it when that changed anything.
func text(raw string) (shown string, hex *Hex) {
	shown = clean(raw)
	if shown != raw {
		hex = orNull(Hex(hexutil.Encode([]byte(raw))))
	}
	return shown, hex
}

// clean is text for strings whose raw bytes nobody needs.
func clean(s string) string {
	const replacement = string(utf8.RuneError)
	return strings.ReplaceAll(strings.ToValidUTF8(s, replacement), "\x00", replacement)
}

// plainText is the value as text when it is valid UTF-8 without control
// characters, else nil.
func plainText(value []byte) *string {
	s := string(value)
	if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool {
		return unicode.IsControl(r) && r != '\n' && r != '\t' && r != '\r'
	}) {
		return nil
	}
	return &s
}
