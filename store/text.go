package store

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

// LongestHost is what DNS allows.
const LongestHost = 253

// PlainText makes foreign bytes storable as text of at most longest bytes: a
// string that Postgres refuses must not stop a chain.
func PlainText(s string, longest int) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, ""), "\x00", "")
	return strings.ToValidUTF8(s[:min(len(s), longest)], "")
}

// EscapeNUL replaces the one character that json.Marshal may write and jsonb
// cannot hold. (Invalid UTF-8 it replaces itself, and a lone surrogate cannot
// come out of a Go string.) A backslash in front of the escape is doubled in
// JSON, so escapes are read pair by pair.
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

// CleanText makes a foreign string fit for a text column.
func CleanText(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// Texts on the chain may be of any length: answers hold their heads.
const (
	// MaxListed is how many bytes of a text or a metadata value an answer holds, except an
	// agent's own URI where one agent is asked for.
	MaxListed = 2048
	// MaxMetadata bounds the metadata keys of an agent.
	MaxMetadata = 200
	// MaxTags bounds the tags a reputation lists.
	MaxTags = 100
)

// HeadOf selects what is shown of a text, MaxListed bytes, and one byte more: it tells that
// the text goes on.
func HeadOf(column string) string {
	return fmt.Sprintf("substring(%s for %d)", column, MaxListed+1)
}

// Head is the text that was selected by HeadOf, without a broken character at its
// end. Where the text goes on partial is set.
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

// HeadText returns the first MaxListed characters of a text and sets partial when there are more.
func HeadText(text []byte, partial *bool) string { return string(Head(text, MaxListed, partial)) }

// WithoutContent is what is shown of a URI whose document is denied. A data: URI is the
// document from its comma on, and JSON written where a URI belongs is nothing else.
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
