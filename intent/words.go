package intent

import (
	"strings"
	"unicode"
)

// stopWords are frequent English words that say nothing about an item.
var stopWords = wordSet(`a about am an and any are as at be been but by can could d did do does for from get had has
	have he her him his how i if in into is it its just let ll m me my of on or our out please s she should so some
	t than that the their them then there these they this those to up us ve want was we were what when where which
	who will with would you your`)

// wordSet returns the set of the words in a text.
func wordSet(text string) map[string]bool {
	set := make(map[string]bool)
	for word := range strings.FieldsSeq(text) {
		set[word] = true
	}
	return set
}

// spaced returns a name as words: separators and changes from lower to upper case become spaces.
func spaced(name string) string {
	var b strings.Builder
	before := ' '
	for _, r := range name {
		switch {
		case strings.ContainsRune("_-./:", r):
			r = ' '
		case unicode.IsUpper(r) && unicode.IsLower(before):
			b.WriteByte(' ')
		}
		if r != ' ' || before != ' ' {
			b.WriteRune(r)
		}
		before = r
	}
	return strings.TrimSpace(b.String())
}

// stems returns the stems of all words of a text that are not stop words.
func stems(text string) []string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	kept := words[:0]
	for _, word := range words {
		if !stopWords[word] {
			kept = append(kept, stem(word))
		}
	}
	return kept
}

// suffixes are what stem removes, with what replaces it and how many bytes MUST remain.
var suffixes = []struct {
	end, with string
	least     int
}{
	{"sses", "ss", 2}, {"ies", "y", 2}, {"xes", "x", 2}, {"ches", "ch", 2}, {"shes", "sh", 2}, {"ss", "ss", 0},
	{"us", "us", 0}, {"s", "", 3},
}

// endings are what stem removes once the word is singular.
var endings = []struct {
	end   string
	least int
}{{"ings", 3}, {"ing", 3}, {"ment", 3}, {"ion", 4}, {"ed", 3}, {"er", 4}, {"e", 3}}

// stem returns a word without the ending of its plural, tense or noun. Different words may get the
// same stem; the two forms of one word get the same in most cases. It is for comparison alone and need not be a word.
// The rules apply in the order plural, ending, "at", double letter, y.
func stem(word string) string {
	for _, s := range suffixes {
		if rest, ok := strings.CutSuffix(word, s.end); ok && len(rest) >= s.least {
			word = rest + s.with
			break
		}
	}
	for _, s := range endings {
		if rest, ok := strings.CutSuffix(word, s.end); ok && len(rest) >= s.least {
			word = rest
			break
		}
	}
	if rest, ok := strings.CutSuffix(word, "at"); ok && len(rest) > 4 {
		word = rest // "reservation", "reserve"
	}
	if n := len(word); n > 3 && word[n-1] == word[n-2] && word[n-1] < 0x80 && word[n-1] != 's' && word[n-1] != 'l' {
		word = word[:n-1] // "shipped", "shipping"
	}
	if rest, ok := strings.CutSuffix(word, "y"); ok && len(rest) > 2 {
		word = rest + "i"
	}
	return word
}
