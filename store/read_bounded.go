package store

import (
	"fmt"
	"unicode/utf8"
)

// Whoever writes to the chain decides how long a text is: answers hold its head.
const (
	// maxListed is how many bytes of a text an answer holds, except an agent's own
	// URI where one agent is asked for.
	maxListed = 2048
	// maxMetadata and maxMetadataValue bound the keys an agent is shown with, and
	// the bytes of each value.
	maxMetadata      = 200
	maxMetadataValue = 4096
	// maxTags bounds the tags a reputation lists.
	maxTags = 100
)

// headOf selects what is shown of a text, and one byte more: it tells that the
// text goes on.
func headOf(column string, bytes int) string {
	return fmt.Sprintf("substring(%s for %d)", column, bytes+1)
}

// head is the text that was selected by headOf, without a broken character at its
// end. Where the text goes on partial is set.
func head(text []byte, bytes int, partial *bool) []byte {
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

func headText(text []byte, partial *bool) string { return string(head(text, maxListed, partial)) }
