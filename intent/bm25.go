package intent

import (
	"cmp"
	"math"
	"slices"
)

const (
	saturation   = 1.2  // k1: how soon further occurrences of a word stop counting
	normalizing  = 0.75 // b: how much longer texts are discounted
	maxTerms     = 64   // different words of a query that are looked up
	wordsWeight  = 0.15 // what words add at most to a similarity
	wordsHalfway = 4    // the BM25 score that adds half of it
)

// posting says how often a word occurs in the item of a slot.
type posting struct{ slot, count int32 }

// term is one word with its items, ordered by slot.
type term struct {
	word     string
	postings []posting
}

// lexicon finds items by their words.
type lexicon struct {
	terms   map[string]*term
	used    [][]*term // by slot, for removal
	lengths []int32   // words of each slot
	total   int64     // words of all slots
	items   int
}

// put stores the words of a slot that has none. The words may be empty.
func (l *lexicon) put(slot int32, words []string) {
	for int(slot) >= len(l.lengths) {
		l.lengths, l.used = append(l.lengths, 0), append(l.used, nil)
	}
	counts := make(map[string]int32)
	for _, word := range words {
		counts[word]++
	}
	for word, count := range counts {
		t := l.terms[word]
		if t == nil {
			t = &term{word: word}
			l.terms[word] = t
		}
		at, _ := t.find(slot)
		t.postings = slices.Insert(t.postings, at, posting{slot, count})
		l.used[slot] = append(l.used[slot], t)
	}
	l.lengths[slot] = int32(len(words))
	l.total += int64(len(words))
	l.items++
}

// remove removes the words of a slot. A word without items is forgotten, so that items that come and go leave no memory
// behind.
func (l *lexicon) remove(slot int32) {
	for _, t := range l.used[slot] {
		if at, ok := t.find(slot); ok {
			t.postings = slices.Delete(t.postings, at, at+1)
		}
		if len(t.postings) == 0 {
			delete(l.terms, t.word)
		}
	}
	l.total -= int64(l.lengths[slot])
	l.items--
	l.used[slot], l.lengths[slot] = nil, 0
}

// find returns where the posting of a slot is or belongs.
func (t *term) find(slot int32) (int, bool) {
	return slices.BinarySearchFunc(t.postings, slot, func(p posting, s int32) int { return cmp.Compare(p.slot, s) })
}

// scores adds the BM25 score of each item to out, by slot. out MUST have a place for every slot. A word that a query
// repeats counts once.
func (l *lexicon) scores(words []string, out []float32) {
	if l.total == 0 {
		return
	}
	mean := float64(l.total) / float64(l.items)
	seen := make(map[string]bool)
	for _, word := range words {
		t := l.terms[word]
		if t == nil || seen[word] {
			continue
		}
		if seen[word] = true; len(seen) > maxTerms {
			return
		}
		frequency := float64(len(t.postings))
		rarity := math.Log(1 + (float64(l.items)-frequency+.5)/(frequency+.5))
		for _, p := range t.postings {
			count := float64(p.count)
			length := 1 - normalizing + float64(normalizing*float64(l.lengths[p.slot]))/mean
			out[p.slot] += float32(rarity * count * (saturation + 1) / (count + float64(saturation*length)))
		}
	}
}

// bonus returns what a BM25 score adds to a similarity. It rises with the score and never reaches wordsWeight, so that
// words alone cannot outweigh the meaning.
func bonus(score float64) float64 { return wordsWeight * score / (score + wordsHalfway) }
