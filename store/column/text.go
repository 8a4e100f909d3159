package column

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/ethereum/go-ethereum/crypto"
)

// Keccak returns the Keccak-256 hash of a string, by which tags are found.
func Keccak(s string) [32]byte { return crypto.Keccak256Hash([]byte(s)) }

// SHA256 returns the SHA-256 hash of a string, by which URIs are found.
func SHA256(s string) [32]byte { return sha256.Sum256([]byte(s)) }

// LongestHost is the length in bytes of the longest name in the DNS.
const LongestHost = 253

// PlainText returns s as text that Postgres accepts, at most longest bytes long: text from outside
// that a column refuses MUST NOT stop a chain.
func PlainText(s string, longest int) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, ""), "\x00", "")
	return strings.ToValidUTF8(s[:min(len(s), longest)], "")
}

// EscapeNUL replaces the one character that json.Marshal may write and jsonb cannot hold. A
// backslash before the escape is doubled in JSON, so escapes are read pair by pair. json.Marshal
// itself replaces invalid UTF-8, and a Go string holds no lone surrogate.
func EscapeNUL(b []byte) []byte {
	if !bytes.Contains(b, []byte(`\u0000`)) {
		return b
	}
	for i := 0; i < len(b); i++ {
		if b[i] != '\\' {
			continue
		}
		if bytes.HasPrefix(b[i:], []byte(`\u0000`)) {
			copy(b[i:], `\ufffd`)
		}
		i++ // the escaped character
	}
	return b
}

// CleanText returns s without the bytes that a text column refuses.
func CleanText(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// Texts on the chain may be of any length: answers hold their heads.
const (
	// MaxListed is how many bytes of a text or a metadata value an answer holds. The URI of an
	// agent that is asked for by itself is not cut.
	MaxListed = 2048
	// MaxMetadata is the most metadata keys of an agent in an answer.
	MaxMetadata = 200
	// MaxTags is the most tags that a reputation lists.
	MaxTags = 100
)

// HeadOf returns the SQL of the first MaxListed bytes of a column and one byte more, by which Head
// sees that the text is longer.
func HeadOf(column string) string {
	return fmt.Sprintf("substring(%s for %d)", column, MaxListed+1)
}

// Head returns a text selected by HeadOf without its last character where that is incomplete, and
// sets partial when the text is longer.
func Head(text []byte, bytes int, partial *bool) []byte {
	if len(text) <= bytes {
		return text
	}
	*partial = true
	n := bytes
	for n > bytes-utf8.UTFMax && !utf8.RuneStart(text[n]) {
		n--
	}
	if !utf8.RuneStart(text[n]) {
		n = bytes // not UTF-8: no character is cut
	}
	return text[:n]
}

// HeadText is Head for MaxListed bytes, as a string.
func HeadText(text []byte, partial *bool) string { return string(Head(text, MaxListed, partial)) }

// WithoutContent returns what is shown of a URI whose document is denied. A data: URI is the
// document from its comma on, and a URI that is JSON is nothing but the document.
func WithoutContent(uri string) string {
	s := strings.TrimSpace(strings.TrimPrefix(uri, "\ufeff"))
	const scheme = "data:"
	switch {
	case strings.HasPrefix(s, "{"), strings.HasPrefix(s, "["):
		return ""
	case len(s) < len(scheme) || !strings.EqualFold(s[:len(scheme)], scheme):
		return uri
	}
	if comma := strings.IndexByte(s, ','); comma >= 0 {
		return s[:comma+1]
	}
	return scheme
}
