package intent_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"repute"
	"repute/intent"
)

// letters is an embedder whose vectors count the letters of a text: simple enough to predict.
type letters struct{}

func (letters) Dim() int   { return 26 }
func (letters) ID() string { return "letters" }

func (letters) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		vectors[i] = make([]float32, 26)
		for _, r := range strings.ToLower(text) {
			if r >= 'a' && r <= 'z' {
				vectors[i][r-'a']++
			}
		}
	}
	return vectors, ctx.Err()
}

func lettersIndex(t testing.TB, items ...intent.Item) *intent.Index {
	t.Helper()
	index, err := intent.New(letters{})
	if err != nil {
		t.Fatal(err)
	}
	if err := index.Add(t.Context(), items...); err != nil {
		t.Fatal(err)
	}
	return index
}

// ids returns the IDs of matches in order.
func ids(r intent.Result) []string {
	var out []string
	for _, m := range r.Matches {
		out = append(out, m.ID)
	}
	return out
}

func TestFilter(t *testing.T) {
	index := lettersIndex(t, intent.Item{ID: "1", Kind: intent.KindTool, Name: "aaa"},
		intent.Item{ID: "2", Kind: intent.KindSkill, Name: "aab"},
		intent.Item{ID: "3", Kind: intent.KindTool, Name: "abb"})
	skills := func(e intent.Entry) bool { return e.Kind == intent.KindSkill }
	if r := search(t, index, intent.Query{Text: "aaa", Filter: skills}); !slices.Equal(ids(r), []string{"2"}) {
		t.Errorf("skills: %+v", r)
	}
	tools := func(e intent.Entry) bool { return e.Kind == intent.KindTool }
	if r := search(t, index, intent.Query{Text: "aaa", Filter: tools, Limit: 1}); !slices.Equal(ids(r),
		[]string{"1"}) ||
		r.Margin >= r.Matches[0].Score {
		t.Errorf("the margin is not that to the second tool: %+v", r)
	}
	r := search(t, index, intent.Query{Text: "aaa", Filter: func(intent.Entry) bool { return false }})
	if len(r.Matches) != 0 || r.Sure || r.Margin != 0 {
		t.Errorf("nothing is allowed: %+v", r)
	}
}

// TestExamples finds an item by what callers say, which its name does not tell.
func TestExamples(t *testing.T) {
	q := readQuality(t)
	plain, taught := q.items()[:12], q.items()[:12]
	at := slices.IndexFunc(taught, func(i intent.Item) bool { return i.ID == "transfer_funds" })
	taught[at].Examples = []string{"", "pay the rent of my flat", "give a colleague 20 euros"}
	query := intent.Query{Text: "pay my landlord 900 dollars"}
	before, after := search(t, newIndex(t, plain...), query), search(t, newIndex(t, taught...), query)
	if slices.Index(ids(before), "transfer_funds") == 0 || slices.Index(ids(after), "transfer_funds") != 0 {
		t.Errorf("without examples %v, with examples %v", ids(before), ids(after))
	}
}

func TestReplaceAndRemove(t *testing.T) {
	index := lettersIndex(t, intent.Item{ID: "1", Name: "aaa"}, intent.Item{ID: "2", Name: "bbb"})
	if err := index.Add(t.Context(), intent.Item{ID: "1", Name: "zzz"}); err != nil {
		t.Fatal(err)
	}
	r := search(t, index, intent.Query{Text: "aaa"})
	if index.Len() != 2 || r.Matches[0].Similarity != 0 || r.Matches[0].Words != 0 {
		t.Errorf("%d items, %+v", index.Len(), r)
	}
	index.Remove("1", "1", "unknown")
	if r := search(t, index, intent.Query{Text: "zzz"}); !slices.Equal(ids(r), []string{"2"}) || index.Len() != 1 {
		t.Errorf("%d items, %+v", index.Len(), r)
	}
}

// TestSureNeedsMargin has two items with equal scores, ordered by ID, and then one alone.
func TestSureNeedsMargin(t *testing.T) {
	index := lettersIndex(t, intent.Item{ID: "b", Name: "pay"}, intent.Item{ID: "a", Name: "pay"},
		intent.Item{ID: "c", Name: "xxx"})
	r := search(t, index, intent.Query{Text: "pay"})
	if !slices.Equal(ids(r), []string{"a", "b", "c"}) || r.Margin != 0 || r.Sure {
		t.Errorf("%+v", r)
	}
	index.Remove("b")
	if r := search(t, index, intent.Query{Text: "pay", Limit: 1}); !r.Sure || len(r.Matches) != 1 {
		t.Errorf("%+v", r)
	}
	if r := search(t, index, intent.Query{Text: "qqq"}); r.Sure {
		t.Errorf("%+v", r)
	}
}

func TestRefusals(t *testing.T) {
	index := lettersIndex(t)
	vectors, err := intent.Vectors(t.Context(), letters{}, intent.Item{Name: "a"})
	if err != nil {
		t.Fatal(err)
	}
	good := vectors[0][0]
	change := func(f func(*intent.Vector)) []intent.Vector { v := good; f(&v); return []intent.Vector{v} }
	item, nan := intent.Item{ID: "1", Name: "a"}, float32(math.NaN())
	for name, c := range map[string]struct {
		err  error
		kind error
	}{
		"no id":        {index.Put(intent.Item{}, vectors[0]), repute.ErrInvalid},
		"add no id":    {index.Add(t.Context(), item, intent.Item{}), repute.ErrInvalid},
		"no vectors":   {index.Put(item, nil), repute.ErrInvalid},
		"many vectors": {index.Put(item, slices.Repeat(vectors[0], 10)), repute.ErrInvalid},
		"other model":  {index.Put(item, change(func(v *intent.Vector) { v.Model = "other" })), repute.ErrConflict},
		"other length": {index.Put(item, change(func(v *intent.Vector) { v.Scale *= 2 })), repute.ErrInvalid},
		"NaN length":   {index.Put(item, change(func(v *intent.Vector) { v.Scale = nan })), repute.ErrInvalid},
		"other dim": {index.Put(item, change(func(v *intent.Vector) { v.Values = v.Values[:5] })),
			repute.ErrInvalid},
	} {
		if !errors.Is(c.err, c.kind) {
			t.Errorf("%s: %v", name, c.err)
		}
	}
	for _, q := range []intent.Query{{}, {Text: " \x00\n"}, {Text: "a", Limit: -1}, {Text: "a", Limit: 101}} {
		if _, err := index.Search(t.Context(), q); !errors.Is(err, repute.ErrInvalid) {
			t.Errorf("%+v: %v", q, err)
		}
	}
	if index.Len() != 0 {
		t.Errorf("%d items are stored", index.Len())
	}
}

// broken is an embedder that breaks its contract.
type broken struct {
	letters
	vectors [][]float32
	err     error
}

func (b broken) Embed(context.Context, []string) ([][]float32, error) { return b.vectors, b.err }

func TestBrokenEmbedder(t *testing.T) {
	nan := make([]float32, 26)
	nan[3] = float32(math.NaN())
	down := errors.New("down")
	for name, b := range map[string]broken{"none": {},
		"two":   {vectors: [][]float32{make([]float32, 26), make([]float32, 26)}},
		"short": {vectors: [][]float32{make([]float32, 25)}}, "NaN": {vectors: [][]float32{nan}}, "down": {err: down}} {
		index, err := intent.New(b)
		if err != nil {
			t.Fatal(err)
		}
		err = index.Add(t.Context(), intent.Item{ID: "1", Name: "a"})
		if err == nil || !strings.Contains(err.Error(), "letters") || errors.Is(err, down) != (b.err != nil) ||
			index.Len() != 0 {
			t.Errorf("%s: add: %v, %d items", name, err, index.Len())
		}
		if _, err := index.Search(t.Context(), intent.Query{Text: "a"}); err == nil {
			t.Errorf("%s: search does not fail", name)
		}
	}
}

// counting is an embedder that counts texts, and fails on demand.
type counting struct {
	letters
	texts int
	err   error
}

func (c *counting) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	if c.err != nil {
		return nil, c.err
	}
	c.texts += len(texts)
	return c.letters.Embed(ctx, texts)
}

// TestQueriesAreKept embeds a query once, and again only after it failed or was long ago.
func TestQueriesAreKept(t *testing.T) {
	embedder := &counting{err: errors.New("down")}
	index, err := intent.New(embedder)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := index.Search(t.Context(), intent.Query{Text: "pay"}); !errors.Is(err, embedder.err) {
		t.Fatal(err)
	}
	embedder.err = nil
	for range 3 {
		search(t, index, intent.Query{Text: " pay "})
	}
	if embedder.texts != 1 {
		t.Errorf("embedded %d times", embedder.texts)
	}
	for i := range 1024 {
		search(t, index, intent.Query{Text: fmt.Sprint("pay ", i)})
	}
	search(t, index, intent.Query{Text: "pay"})
	if embedder.texts != 1+1024+1 {
		t.Errorf("embedded %d times", embedder.texts)
	}
}

// TestHistory checks that an index does not depend on what it held before: after any changes it
// answers as a new one with the same items.
func TestHistory(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		word := rapid.StringMatching(`[a-f]{1,3}`)
		text := rapid.Custom(func(t *rapid.T) string {
			return strings.Join(rapid.SliceOfN(word, 0, 6).Draw(t, "words"), " ")
		})
		index, items := lettersIndex(t), map[string]intent.Item{}
		for range rapid.IntRange(0, 30).Draw(rt, "changes") {
			id := fmt.Sprint(rapid.IntRange(0, 12).Draw(rt, "id"))
			if rapid.Bool().Draw(rt, "remove") {
				index.Remove(id)
				delete(items, id)
				continue
			}
			item := intent.Item{ID: id, Name: text.Draw(rt, "name"), Description: text.Draw(rt, "description"),
				Examples: rapid.SliceOfN(text, 0, 3).Draw(rt, "examples")}
			items[id] = item
			if err := index.Add(t.Context(), item); err != nil {
				rt.Fatal(err)
			}
		}
		fresh := lettersIndex(t)
		for _, item := range items {
			if err := fresh.Add(t.Context(), item); err != nil {
				rt.Fatal(err)
			}
		}
		q := intent.Query{Text: "x " + text.Draw(rt, "query"), Limit: 100}
		got, want := search(t, index, q), search(t, fresh, q)
		if fmt.Sprint(got) != fmt.Sprint(want) || len(got.Matches) != len(items) {
			rt.Fatalf("%v instead of %v", got, want)
		}
	})
}

// TestConcurrent changes an index while it is searched. Each version of an item has the same word in
// name and kind, so a search that saw half of a change would find a pair that does not fit.
func TestConcurrent(t *testing.T) {
	index := lettersIndex(t, intent.Item{ID: "fixed", Kind: "fixed", Name: "fixed"})
	var writers, readers sync.WaitGroup
	done := make(chan struct{})
	for w := range 2 {
		writers.Go(func() {
			for i := range 2000 {
				version := []string{"aaa", "bbb", "ccc"}[i%3]
				id := fmt.Sprint(w, i%5)
				if err := index.Add(t.Context(),
					intent.Item{ID: id, Kind: intent.Kind(version), Name: version}); err != nil {
					t.Error(err)
				}
				if i%4 == 0 {
					index.Remove(id)
				}
			}
		})
	}
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				for _, m := range search(t, index, intent.Query{Text: "bbb"}).Matches {
					if string(m.Kind) != m.Name || (m.Name == "bbb") != (m.Similarity > .99) ||
						(m.Name == "bbb") != (m.Words > 0) {
						t.Errorf("%+v", m)
					}
				}
			}
		})
	}
	writers.Wait()
	close(done)
	readers.Wait()
	if r := search(t, index, intent.Query{Text: "fixed"}); !r.Sure || r.Matches[0].ID != "fixed" {
		t.Errorf("%+v", r)
	}
}
