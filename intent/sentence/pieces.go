package sentence

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

const (
	// maxPieces is how many pieces the model was trained to read; the rest of a text is ignored.
	maxPieces = 128
	// maxBytes and maxRunes bound a text before it is split. No piece has more than 16 characters,
	// so 128 pieces never need more, unless the text has characters that no piece has.
	maxBytes = 4 << 10
	maxRunes = 2 << 10
	// space replaces spaces and starts each text.
	space = "▁"
	// unknown is the piece of characters that no other piece has.
	unknown = 0
	// reserved is how many of the first pieces are symbols that never match a text.
	reserved = 6
)

// piece is one entry of the vocabulary.
type piece struct {
	id    int
	score float64 // logarithm of its probability
}

// vocabulary splits texts into pieces.
type vocabulary struct {
	pieces  map[string]piece
	lengths []int // characters of each piece, by its id
	longest int   // characters
}

// add appends a piece. Of pieces with the same text the last one matches.
func (v *vocabulary) add(text string, id int, score float64) {
	length := utf8.RuneCountInString(text)
	v.lengths = append(v.lengths, length)
	if id >= reserved {
		v.pieces[text] = piece{id, score}
		v.longest = max(v.longest, length)
	}
}

// normalized returns the text as the vocabulary writes it, with single spaces. Control characters
// count as spaces: the vocabulary has none.
func normalized(text string) string {
	text = norm.NFKC.String(strings.ToValidUTF8(head(text, maxBytes), " "))
	words := strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
	if len(words) == 0 {
		return ""
	}
	return space + strings.Join(words, space)
}

// head returns at most the first bytes of a text, without a partial character at the end.
func head(text string, bytes int) string {
	if len(text) <= bytes {
		return text
	}
	for bytes > 0 && !utf8.RuneStart(text[bytes]) {
		bytes--
	}
	return text[:bytes]
}

// split returns the ids of the most probable sequence of pieces, at most maxPieces.
func (v *vocabulary) split(text string) []int {
	text = normalized(text)
	starts := make([]int, 0, len(text)+1) // of each character, in bytes
	for at := range text {
		if starts = append(starts, at); len(starts) > maxRunes {
			return v.trace(v.best(text, starts))
		}
	}
	return v.trace(v.best(text, append(starts, len(text))))
}

// best returns for each character the piece that ends before it in the most probable sequence.
// As in the reference implementation, a score of zero marks an end that no piece reaches yet.
func (v *vocabulary) best(text string, starts []int) []int {
	scores, pieces := make([]float64, len(starts)), make([]int, len(starts))
	reach := func(end int, p piece, from float64) {
		if score := p.score + from; scores[end] == 0 || score >= scores[end] {
			scores[end], pieces[end] = score, p.id
		}
	}
	for start := range len(starts) - 1 {
		found := false
		for end := start + 1; end <= min(start+v.longest, len(starts)-1); end++ {
			if p, ok := v.pieces[text[starts[start]:starts[end]]]; ok {
				reach(end, p, scores[start])
				found = true
			}
		}
		if !found {
			reach(start+1, piece{id: unknown}, scores[start])
		}
	}
	return pieces
}

// trace follows the best pieces from the end of the text and returns them in order. Neighboring
// unknown pieces become one.
func (v *vocabulary) trace(pieces []int) []int {
	var reversed []int
	for end := len(pieces) - 1; end > 0; end -= v.lengths[pieces[end]] {
		id := pieces[end]
		if n := len(reversed); id == unknown && n > 0 && reversed[n-1] == unknown {
			continue
		}
		reversed = append(reversed, id)
	}
	out := make([]int, 0, min(len(reversed), maxPieces))
	for i := len(reversed) - 1; i >= 0 && len(out) < maxPieces; i-- {
		out = append(out, reversed[i])
	}
	return out
}
