package store

import (
	"fmt"
	"unicode/utf8"

	"repute"
)

// Texts on the chain may be of any length: answers hold their heads.
const (
	// maxListed is how many bytes of a text or a metadata value an answer holds, except an
	// agent's own URI where one agent is asked for.
	maxListed = 2048
	// maxMetadata bounds the metadata keys of an agent.
	maxMetadata = 200
	// maxTags bounds the tags a reputation lists.
	maxTags = 100
)

// headOf selects what is shown of a text, maxListed bytes, and one byte more: it tells that
// the text goes on.
func headOf(column string) string {
	return fmt.Sprintf("substring(%s for %d)", column, maxListed+1)
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

// cutField is headText that keeps which field was cut.
func cutField(text []byte, field string, cut *[]string, partial *bool) string {
	shown := headText(text, partial)
	if len(shown) < len(text) {
		*cut = append(*cut, field)
	}
	return shown
}

// cutURI is cutField of a URI behind which file is: what is denied is not shown in it.
func cutURI(uri []byte, file *repute.File, cut *[]string, partial *bool) string {
	return cutField([]byte(uriBeside(string(uri), file)), "uri", cut, partial)
}
