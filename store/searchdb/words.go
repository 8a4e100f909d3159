package searchdb

import (
	"slices"
	"strings"

	"repute/store/searchtext"
)

// asQuery is a folded text in Postgres's words of a web search. What searchtext.AsWords parts is
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
		parts := searchtext.AsWords(body)
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
		if run++; searchtext.IsNoLetter(r) || searchtext.IsDense(r) {
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
		if run++; searchtext.IsNoLetter(r) {
			run = 0
		}
		longest = max(longest, run)
	}
	return longest
}
