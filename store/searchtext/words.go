package searchtext

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"repute/store/column"
)

// What is searched and what is searched for take the same way into words, so that
// they meet: folded, parted at everything that is no letter or digit, and where a
// script puts no space between words in pairs of characters.

// Folded is Lowered without accents and with one form per letter: zurich finds Zürich, strasse
// finds Straße. Marks that other scripts need stay.
func Folded(s string, bytes int) string {
	s = norm.NFKD.String(column.CleanText(s[:min(len(s), 2*bytes)]))
	s = strings.Map(func(r rune) rune {
		if isAccent(r) {
			return -1
		}
		return r
	}, s)
	return Lowered(norm.NFC.String(cases.Fold().String(s)), bytes)
}

// isAccent reports whether r is a mark of Latin, Greek and Cyrillic letters.
func isAccent(r rune) bool { return r >= 0x300 && r <= 0x36f }

// AsWords returns a folded text as the index of words reads it: words in American spelling and
// pairs of characters, separated by spaces.
func AsWords(s string) string {
	var out []string
	for _, word := range strings.FieldsFunc(s, IsNoLetter) {
		out = append(out, pieces(american(word))...)
	}
	return strings.Join(out, " ")
}

// pieces splits a word into runs of characters of scripts without spaces, each as all pairs of
// neighbors, and other runs.
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

// IsDense reports whether r belongs to a script that puts no space between words or joins particles
// to them.
func IsDense(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Bopomofo) ||
		r == 'ー' || r == '々'
}

// IsNoLetter reports whether r separates words.
func IsNoLetter(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r)
}
