package searchdb

import (
	"cmp"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"repute"
	"repute/store/searchtext"
)

// checkText returns a text to search for as it is compared with documents, or what is wrong with
// it.
func checkText(s string) (string, error) {
	const hint = "two or more letters or digits in one word, e.g. weather"
	if !utf8.ValidString(s) {
		return "", repute.Invalid("q", "not UTF-8", hint)
	}
	if utf8.RuneCountInString(s) > maxSearchLength {
		return "", repute.Invalid("q", fmt.Sprintf("longer than %d characters", maxSearchLength), "fewer words")
	}
	if strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) && !unicode.IsSpace(r) }) {
		return "", repute.Invalid("q", "holds a control character", hint)
	}
	s = searchtext.Folded(s, maxSearchFolded)
	if longestWord(s) < searchtext.MinSearchText && !isAgentID(s) && !searchtext.IsPlace(s) {
		return "", repute.Invalid("q", "no word of it has two letters or digits", hint)
	}
	if len(strings.Fields(s)) > maxSearchWords {
		return "", repute.Invalid("q", fmt.Sprintf("more than %d words", maxSearchWords), "fewer words")
	}
	return s, nil
}

// checkValue returns a value to filter by as it is stored, or what is wrong with it.
func checkValue(field, s string) (string, error) {
	if s == "" {
		return "", nil
	}
	v := searchtext.Lowered(s, len(s)+utf8.UTFMax)
	if v == "" || len(v) > searchtext.MaxSearchValue || !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
		return "", repute.Invalid(field, "not a value that is searched",
			fmt.Sprintf("1 to %d bytes of text, e.g. one of /agents/facets; values of a list are divided by commas",
				searchtext.MaxSearchValue))
	}
	return v, nil
}

// checkList returns the values of a list divided by commas; nil for "".
func checkList(field, s string) (values []string, err error) {
	if s == "" {
		return nil, nil
	}
	parts := strings.Split(s, ",")
	if len(parts) > maxSearchWords {
		return nil, repute.Invalid(field, fmt.Sprintf("more than %d values", maxSearchWords), "fewer values")
	}
	for _, part := range parts {
		v, err := checkValue(field, cmp.Or(part, " "))
		if err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	return values, nil
}
