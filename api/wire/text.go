package wire

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ethereum/go-ethereum/common/hexutil"

	"repute/internal/httpapi"
)

// text makes bytes of the chain showable: invalid UTF-8 and NUL become U+FFFD.
// The hex form of the raw bytes comes with it when that changed anything.
func text(raw string) (shown string, hex *Hex) {
	shown = httpapi.Clean(raw)
	if shown != raw {
		hex = OrNull(Hex(hexutil.Encode([]byte(raw))))
	}
	return shown, hex
}

// PlainText is the value as text when it is valid UTF-8 without control
// characters, else nil.
func PlainText(value []byte) *string {
	s := string(value)
	if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool {
		return unicode.IsControl(r) && r != '\n' && r != '\t' && r != '\r'
	}) {
		return nil
	}
	return &s
}
