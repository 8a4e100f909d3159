package store

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// What is searched and what is searched for take the same way into words, so that
// they meet: folded, parted at everything that is no letter or digit, and where a
// script puts no space between words in pairs of characters.

// folded is lowered without accents and other forms of the same letters: zurich is
// Zürich, strasse is Straße. Marks that other scripts spell with stay.
func folded(s string, bytes int) string {
	s = norm.NFKD.String(cleanText(s[:min(len(s), 2*bytes)]))
	s = strings.Map(func(r rune) rune {
		if isAccent(r) {
			return -1
		}
		return r
	}, s)
	return lowered(norm.NFC.String(cases.Fold().String(s)), bytes)
}

// isAccent tells the marks of Latin, Greek and Cyrillic letters.
func isAccent(r rune) bool { return r >= 0x300 && r <= 0x36f }

// asWords is a folded text as what the index of words reads: letters and digits, and
// pairs of characters, with spaces between them, in American spelling.
func asWords(s string) string {
	var out []string
	for _, word := range strings.FieldsFunc(s, isNoLetter) {
		out = append(out, pieces(american(word))...)
	}
	return strings.Join(out, " ")
}

// pieces parts a word into runs of characters that need no spaces, each as all pairs
// of neighbours, and runs of others.
func pieces(word string) (out []string) {
	letters := []rune(word)
	for len(letters) > 0 {
		dense := isDense(letters[0])
		n := slices.IndexFunc(letters, func(r rune) bool { return isDense(r) != dense && !unicode.IsMark(r) })
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

// isDense tells the characters of scripts that put no space between words, or join
// particles to them.
func isDense(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Bopomofo) || r == 'ー' || r == '々'
}

// asQuery is a folded text in Postgres's words of a web search. What asWords parts is
// found where the parts follow each other.
func asQuery(text string) string {
	var out []string
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		sign := text[:len(text)-len(strings.TrimPrefix(text, "-"))]
		text = text[len(sign):]
		body, rest, phrase := strings.TrimPrefix(text, `"`), "", strings.HasPrefix(text, `"`)
		if phrase {
			body, rest, _ = strings.Cut(body, `"`)
		} else if i := strings.IndexAny(text, ` "`); i >= 0 {
			body, rest = text[:i], text[i:]
		}
		text = rest
		parts := asWords(body)
		if phrase || strings.Contains(parts, " ") {
			parts = `"` + parts + `"`
		}
		if strings.Trim(parts, `"`) != "" {
			out = append(out, sign+parts)
		}
	}
	return strings.Join(out, " ")
}

// hasOperators tells a text in the words of a query language.
func hasOperators(text string) bool {
	words := strings.Fields(text)
	return strings.Contains(text, `"`) || slices.Contains(words, "or") ||
		slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, "-") })
}

// trigram is how many letters the index of parts of words needs. A shorter word is
// found whole, because all rows hold its two letters somewhere, and of dense scripts
// the index of words knows every pair of characters.
const trigram = 3

// hasTrigram tells whether the index of parts of words narrows a text down.
func hasTrigram(text string) bool {
	run := 0
	for _, r := range text {
		if run++; isNoLetter(r) || isDense(r) {
			run = 0
		}
		if run == trigram {
			return true
		}
	}
	return false
}

// longestWord counts the letters and digits of the longest word.
func longestWord(s string) (longest int) {
	run := 0
	for _, r := range s {
		if run++; isNoLetter(r) {
			run = 0
		}
		longest = max(longest, run)
	}
	return longest
}

func isNoLetter(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r)
}
