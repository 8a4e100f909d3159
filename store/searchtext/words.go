package searchtext

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"repute/store"
)

// What is searched and what is searched for take the same way into words, so that
// they meet: folded, parted at everything that is no letter or digit, and where a
// script puts no space between words in pairs of characters.

// Folded is lowered without accents and other forms of the same letters: zurich is
// Zürich, strasse is Straße. Marks that other scripts spell with stay.
func Folded(s string, bytes int) string {
	s = norm.NFKD.String(store.CleanText(s[:min(len(s), 2*bytes)]))
	s = strings.Map(func(r rune) rune {
		if isAccent(r) {
			return -1
		}
		return r
	}, s)
	return Lowered(norm.NFC.String(cases.Fold().String(s)), bytes)
}

// isAccent tells the marks of Latin, Greek and Cyrillic letters.
func isAccent(r rune) bool { return r >= 0x300 && r <= 0x36f }

// AsWords is a folded text as what the index of words reads: letters and digits, and
// pairs of characters, with spaces between them, in American spelling.
func AsWords(s string) string {
	var out []string
	for _, word := range strings.FieldsFunc(s, IsNoLetter) {
		out = append(out, pieces(american(word))...)
	}
	return strings.Join(out, " ")
}

// pieces parts a word into runs of characters that need no spaces, each as all pairs
// of neighbours, and runs of others.
func pieces(word string) (out []string) {
	letters := []rune(word)
	for len(letters) > 0 {
		dense := IsDense(letters[0])
		n := slices.IndexFunc(letters, func(r rune) bool { return IsDense(r) != dense && !unicode.IsMark(r) })
		if n < 0 {
			n = len(letters)
		}
		run := letters[:n]
		letters = letters[n:]
		if !dense || n == 1 {
			out = append(out, string(run))
			continue
		}
		for i := range n - 1 {
			out = append(out, string(run[i:i+2]))
		}
	}
	return out
}

// IsDense tells the characters of scripts that put no space between words, or join
// particles to them.
func IsDense(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Bopomofo) || r == 'ー' || r == '々'
}

// IsNoLetter reports whether r separates words.
func IsNoLetter(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r)
}
