package intent_test

import (
	"cmp"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"repute/intent"
	"repute/intent/sentence"
)

// quality is testdata/quality.json: items, texts that mean one of them in other words, and texts
// that mean none.
type quality struct {
	Intents []struct {
		ID, Description string
		Parameters      []string
	}
	Queries []struct{ Text, Want string }
	Outside []string
}

func readQuality(t testing.TB) quality {
	t.Helper()
	b, err := os.ReadFile("testdata/quality.json")
	if err != nil {
		t.Fatal(err)
	}
	var q quality
	if err := json.Unmarshal(b, &q); err != nil {
		t.Fatal(err)
	}
	return q
}

// items returns the intents as items whose ID is their name.
func (q quality) items() []intent.Item {
	var items []intent.Item
	for _, i := range q.Intents {
		items = append(items, intent.Item{ID: i.ID, Kind: intent.KindIntent, Name: i.ID, Description: i.Description,
			Parameters: i.Parameters})
	}
	return items
}

func newIndex(t testing.TB, items ...intent.Item) *intent.Index {
	t.Helper()
	e, err := sentence.New()
	if err != nil {
		t.Fatal(err)
	}
	index, err := intent.New(e)
	if err != nil {
		t.Fatal(err)
	}
	if err := index.Add(t.Context(), items...); err != nil {
		t.Fatal(err)
	}
	return index
}

func search(t testing.TB, index *intent.Index, q intent.Query) intent.Result {
	t.Helper()
	r, err := index.Search(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// counts are of the queries of one way to rank.
type counts struct{ first, three int }

// count ranks all matches by one of their numbers and counts where the wanted one is. A match
// without any score is not found.
func (c *counts) count(matches []intent.Match, want string, by func(intent.Match) float64) {
	ranked := slices.Clone(matches)
	slices.SortStableFunc(ranked, func(a, b intent.Match) int {
		return cmp.Or(cmp.Compare(by(b), by(a)), cmp.Compare(a.ID, b.ID))
	})
	at := slices.IndexFunc(ranked, func(m intent.Match) bool { return m.ID == want && by(m) > 0 })
	if at == 0 {
		c.first++
	}
	if at >= 0 && at < 3 {
		c.three++
	}
}

// rankings are the counts of the same queries, ranked by words, by meaning and by both.
type rankings struct{ words, meaning, both counts }

func (r *rankings) count(matches []intent.Match, want string) {
	r.words.count(matches, want, func(m intent.Match) float64 { return m.Words })
	r.meaning.count(matches, want, func(m intent.Match) float64 { return m.Similarity })
	r.both.count(matches, want, func(m intent.Match) float64 { return m.Score })
}

// log reports the counts as shares of n queries.
func (r *rankings) log(t *testing.T, n int) {
	for _, c := range []struct {
		name string
		counts
	}{{"words", r.words}, {"meaning", r.meaning}, {"both", r.both}} {
		t.Logf("%-8s P@1 %.2f, R@3 %.2f", c.name, float64(c.first)/float64(n), float64(c.three)/float64(n))
	}
}

// TestQuality searches all queries once and judges ranks and decisions.
func TestQuality(t *testing.T) {
	if testing.Short() {
		t.Skip("computes for long")
	}
	q := readQuality(t)
	index := newIndex(t, q.items()...)
	var results []intent.Result
	for _, query := range q.Queries {
		results = append(results, search(t, index, intent.Query{Text: query.Text, Limit: len(q.Intents)}))
	}
	t.Run("ranks", func(t *testing.T) { testRanks(t, q, results) })
	t.Run("sure", func(t *testing.T) { testSure(t, q, results) })
	t.Run("outside", func(t *testing.T) {
		sure := 0
		for _, text := range q.Outside {
			if r := search(t, index, intent.Query{Text: text}); r.Sure {
				sure++
				t.Logf("%q is sure of %s with %v, margin %v", text, r.Matches[0].ID, r.Matches[0].Score, r.Margin)
			}
		}
		t.Logf("of %d texts that fit nothing %d are sure", len(q.Outside), sure)
		if sure > len(q.Outside)/5 {
			t.Error("too many are sure")
		}
	})
}

// testRanks compares words, meanings and both. Its bounds are some queries below what was measured,
// so that a worse model or weight fails.
func testRanks(t *testing.T, q quality, results []intent.Result) {
	var r rankings
	for i, query := range q.Queries {
		r.count(results[i].Matches, query.Want)
	}
	n := len(q.Queries)
	r.log(t, n)
	if r.meaning.first < n*60/100 || r.meaning.three < n*85/100 {
		t.Errorf("meanings rank worse than measured: %+v of %d", r.meaning, n)
	}
	if r.both.first < r.meaning.first-3 || r.both.three < r.meaning.three-2 {
		t.Errorf("words make meanings worse: %+v, without %+v", r.both, r.meaning)
	}
	if r.both.first < r.words.first+n/4 {
		t.Errorf("meanings add little to words: %+v, without %+v", r.both, r.words)
	}
}

// testSure counts how often a match that is called sure is wrong.
func testSure(t *testing.T, q quality, results []intent.Result) {
	sure, wrong := 0, 0
	for i, query := range q.Queries {
		if r := results[i]; r.Sure {
			if sure++; r.Matches[0].ID != query.Want {
				wrong++
				t.Logf("%q is sure of %s with %v, margin %v", query.Text, r.Matches[0].ID, r.Matches[0].Score, r.Margin)
			}
		}
	}
	t.Logf("of %d queries %d are sure, %d of them wrong", len(q.Queries), sure, wrong)
	if sure < len(q.Queries)/3 || wrong > sure/6 {
		t.Error("matches are sure too seldom, or wrong too often")
	}
}

// TestRareWords shows what words are for: names that the model barely tells apart.
func TestRareWords(t *testing.T) {
	var items []intent.Item
	for _, name := range []string{"48213", "48231", "42813", "48123", "84213", "48321", "41283", "48132"} {
		items = append(items, intent.Item{ID: name, Kind: intent.KindTool, Name: "query_" + name,
			Description: "Read records of the ledger " + name + " of a bank."})
	}
	index := newIndex(t, items...)
	var r rankings
	for _, item := range items {
		query := intent.Query{Text: "in " + item.ID + ", what did my bank write yesterday"}
		r.count(search(t, index, query).Matches, item.ID)
	}
	r.log(t, len(items))
	if r.meaning.first > len(items)/2 || r.both.first < r.meaning.first+len(items)/3 || r.words.first != len(items) {
		t.Errorf("rare words do not help: %+v", r)
	}
}
