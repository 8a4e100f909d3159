package searchdb

import (
	"slices"
	"strings"

	"repute/store/searchtext"
)

// asQuery returns a folded text in the syntax of a Postgres web search. What searchtext.AsWords
// splits matches only where the parts follow each other.
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

// hasOperators reports whether a text uses the operators of the query language.
func hasOperators(text string) bool {
	words := strings.Fields(text)
	return strings.Contains(text, `"`) || slices.Contains(words, "or") ||
		slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, "-") })
}

// trigram is the fewest characters that the trigram index can find. A shorter word is searched as a
// whole word; of dense scripts the full-text index holds every pair of characters.
const trigram = 3

// hasTrigram reports whether the trigram index can narrow a text down.
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

// longestWord returns how many letters and digits the longest word has.
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
