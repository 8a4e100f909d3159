package intent

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"repute"
)

const (
	defaultLimit = 10
	maxLimit     = 100
	// sureScore and sureMargin are what the first match needs to be sure. In TestQuality about one
	// in ten matches above both is wrong, and more than half of the right ones are below one.
	sureScore  = 0.45
	sureMargin = 0.08
)

// Query is what to search for.
type Query struct {
	Text  string // in English; at most the first 4 KiB are read
	Limit int    // of matches: 0 for 10, at most 100
	// Filter reports whether an item may be found; nil allows all. It is called for each item, so
	// it MUST be fast, and it MUST NOT call the Index.
	Filter func(Entry) bool
}

// Match is an item that was found.
type Match struct {
	Entry
	Score      float64 // Similarity, and up to 0.15 for words in common
	Similarity float64 // -1 to 1: how close the meanings are
	Words      float64 // BM25 score, 0 without a word in common
}

// Result has the best matches, best first.
type Result struct {
	Matches []Match
	Margin  float64 // score of the first match minus that of the next item; its score if there is no next item
	// Sure reports whether the first match has a score of at least 0.45 and a margin of at least 0.08. Otherwise the
	// caller MUST ask which match is meant, or whether any is.
	Sure bool
}

// Search returns the items that fit a text best. Items with the same score are ordered by ID.
func (x *Index) Search(ctx context.Context, q Query) (Result, error) {
	text := clean(q.Text, maxQuery)
	if text == "" {
		return Result{}, repute.Invalid("text", "is empty", "say in a few words what is wanted")
	}
	if q.Limit < 0 || q.Limit > maxLimit {
		return Result{}, repute.Invalid("limit", fmt.Sprintf("is %d", q.Limit),
			fmt.Sprintf("0 to %d are allowed", maxLimit))
	}
	vector, err := x.vector(ctx, sentence(text))
	if err != nil {
		return Result{}, err
	}
	limit := cmp.Or(q.Limit, defaultLimit)
	return NewResult(x.matches(vector, stems(text), max(limit, 2), q.Filter), limit), nil
}

// vector returns the vector of a query, which is only computed if it is not among the last ones. Two searches for the
// same text at once may both compute it.
func (x *Index) vector(ctx context.Context, text string) (Vector, error) {
	if v, ok := x.queries.Get(text); ok {
		return v, nil
	}
	vectors, err := embed(ctx, x.embedder, []string{text})
	if err != nil {
		return Vector{}, err
	}
	x.queries.Add(text, vectors[0])
	return vectors[0], nil
}

// NewResult returns the first matches with the decision whether the first one is sure. The matches MUST be ordered, as
// Search returns them; a caller may have left some out. limit bounds what is listed; the margin is to the second match
// even if it is not listed.
func NewResult(matches []Match, limit int) Result {
	r := Result{Matches: matches[:min(len(matches), limit)]}
	if len(matches) == 0 {
		return r
	}
	r.Margin = matches[0].Score
	if len(matches) > 1 {
		r.Margin = rounded(matches[0].Score - matches[1].Score)
	}
	r.Sure = matches[0].Score >= sureScore && r.Margin >= sureMargin
	return r
}

// matches returns the best items that the filter allows. It holds the read lock for the whole comparison. Ties are
// ordered by id and not by slot, so that the order does not depend on when items were put.
func (x *Index) matches(query Vector, words []string, limit int, filter func(Entry) bool) []Match {
	x.mu.RLock()
	defer x.mu.RUnlock()
	allowed := x.allowed(filter)
	similarities, scores := make([]float32, len(x.entries)), make([]float32, len(x.entries))
	for slot := range similarities {
		similarities[slot] = -1
	}
	x.rows.similarities(query, allowed, similarities)
	x.lexicon.scores(words, scores)
	best := make([]Match, 0, limit+1)
	for slot, ok := range allowed {
		if !ok {
			continue
		}
		m := Match{Entry: x.entries[slot].Entry, Similarity: rounded(float64(similarities[slot])),
			Words: rounded(float64(scores[slot]))}
		m.Score = rounded(m.Similarity + bonus(m.Words))
		best = insert(best, m, limit)
	}
	return best
}

// allowed returns for each slot whether its item may be found.
func (x *Index) allowed(filter func(Entry) bool) []bool {
	allowed := make([]bool, len(x.entries))
	for slot, e := range x.entries {
		allowed[slot] = e.rows != nil && (filter == nil || filter(e.Entry))
	}
	return allowed
}

// insert adds a match to the best ones, if it is among the first limit.
func insert(best []Match, m Match, limit int) []Match {
	if len(best) == limit && byScore(best[limit-1], m) < 0 {
		return best
	}
	at, _ := slices.BinarySearchFunc(best, m, byScore)
	best = slices.Insert(best, at, m)
	return best[:min(len(best), limit)]
}

// byScore orders matches: higher scores first, then lower IDs.
func byScore(a, b Match) int {
	if a.Score != b.Score {
		return cmp.Compare(b.Score, a.Score)
	}
	return cmp.Compare(a.ID, b.ID)
}

// rounded returns x with six decimals. More would depend on how a processor rounds logarithms.
func rounded(x float64) float64 { return math.Round(float64(x*1e6)) / 1e6 }
