// Package finder keeps what services offer in memory and finds what fits a text: the intents of manifests, and the
// skills, tools and OASF classes that documents of agents name.
//
// A Finder follows the database. Until it has read all intents, and while its model is unavailable, it searches by
// words, which the database does. What it finds is read from the database again before it is returned, so that an
// answer never has what was removed or denied meanwhile.
package finder

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/ethereum/go-ethereum/common"

	"repute/intent"
	"repute/store"
	"repute/store/column"
	"repute/store/manifestdb"
)

const (
	// mostMatches is how many matches a search ranks at most; package intent allows no more.
	mostMatches = 100
	// mostQuestion is how many bytes of a text are embedded.
	mostQuestion = 1000
)

// Finder finds offers by their meaning. It is safe for concurrent use. Make one with New, and have Run keep it up to
// date.
type Finder struct {
	db       *store.DB
	embedder intent.Embedder
	// background embeds what is followed, and embedder what is searched for.
	background intent.Embedder
	index      *intent.Index
	opts       Options
	log        *slog.Logger
	loaded     atomic.Bool // all intents are in the index

	mu      sync.RWMutex
	domains map[string][]string // ids of the intents of a domain
	intents map[string]manifestdb.IntentKey
	offers  map[string]*offer
}

// offer is what documents of agents offer alike.
type offer struct {
	manifestdb.Offer
	documents []common.Hash // that make it, at most mostDocuments
}

// New returns a Finder whose texts are embedded by e. It reads nothing before Run.
func New(db *store.DB, e intent.Embedder, o Options) (*Finder, error) {
	index, err := intent.New(e)
	if err != nil {
		return nil, err
	}
	o = o.withDefaults()
	background := e
	if o.Rest > 0 {
		background = paced{e, o.Rest}
	}
	return &Finder{db: db, embedder: e, background: background, index: index, opts: o, log: o.Log,
		domains: map[string][]string{},
		intents: map[string]manifestdb.IntentKey{}, offers: map[string]*offer{}}, nil
}

// Loaded reports whether searches compare meanings already.
func (x *Finder) Loaded() bool { return x.loaded.Load() }

// Find returns the offers of a filter, the best matches of its text first, and at most mostMatches of a text. Without
// a text it lists the intents of manifests.
func (x *Finder) Find(ctx context.Context, f manifestdb.IntentFilter) (manifestdb.FoundIntents, error) {
	if strings.TrimSpace(column.CleanText(f.Text)) == "" || !x.Loaded() {
		return manifestdb.Intents(ctx, x.db, f)
	}
	found, err := x.meaning(ctx, f)
	if err != nil && found == nil && ctx.Err() == nil {
		x.log.Warn("finder: searched by words alone", "error", err)
		return manifestdb.Intents(ctx, x.db, f)
	}
	if err != nil {
		return manifestdb.FoundIntents{}, err
	}
	return *found, nil
}

// meaning searches the index. The answer is nil where the model failed, and not the database. A bare name is never
// sure: a few words without a sentence around them resemble texts that have nothing to do with them.
func (x *Finder) meaning(ctx context.Context, f manifestdb.IntentFilter) (*manifestdb.FoundIntents, error) {
	if err := store.CheckLimit(f.Limit); err != nil {
		return &manifestdb.FoundIntents{}, err
	}
	narrowed := narrows(f)
	for {
		var allowed map[string]bool
		if narrowed {
			var err error
			if allowed, err = x.allowed(ctx, f); err != nil {
				return &manifestdb.FoundIntents{}, err
			}
		}
		result, err := x.index.Search(ctx, query(f, allowed))
		if err != nil {
			return nil, err
		}
		items, kept, err := x.read(ctx, f, result.Matches)
		if err != nil {
			return &manifestdb.FoundIntents{}, err
		}
		limit := min(f.Limit, mostMatches)
		if len(kept) < min(limit, 2) && len(kept) < len(result.Matches) && !narrowed {
			narrowed = true // what may not be shown hides the rest: leave it out before the search
			continue
		}
		r := intent.NewResult(kept, limit)
		return &manifestdb.FoundIntents{Items: items[:len(r.Matches)], By: manifestdb.ByMeaning, Margin: r.Margin,
			Sure: r.Sure && items[0].Description != ""}, nil
	}
}

// narrows reports whether a filter has conditions that the index does not know.
func narrows(f manifestdb.IntentFilter) bool {
	return isPaid(f) || f.Tier != nil || f.MinScore != nil
}

// isPaid reports whether a filter has conditions that offers of agents, which have no prices, never meet.
func isPaid(f manifestdb.IntentFilter) bool {
	return f.Protocol != "" || f.Network != "" || f.MaxPrice != nil
}

// query returns the search of a filter; a nil set allows all.
func query(f manifestdb.IntentFilter, allowed map[string]bool) intent.Query {
	text := f.Text[:min(len(f.Text), mostQuestion)]
	q := intent.Query{Text: text, Limit: mostMatches}
	if f.Kind != "" || allowed != nil {
		q.Filter = func(e intent.Entry) bool {
			return (f.Kind == "" || string(e.Kind) == f.Kind) && (allowed == nil || allowed[e.ID])
		}
	}
	return q
}

// allowed returns the ids of the items that pass a filter. It ignores the filter's text.
func (x *Finder) allowed(ctx context.Context, f manifestdb.IntentFilter) (map[string]bool, error) {
	keys, err := manifestdb.Allowed(ctx, x.db, f)
	if err != nil {
		return nil, err
	}
	out := make(map[string]bool, len(keys))
	for k := range keys {
		out[intentID(k)] = true
	}
	if isPaid(f) || f.Tier != nil {
		return out, nil
	}
	var scored map[common.Hash]bool
	if f.MinScore != nil {
		if scored, err = manifestdb.ScoredDocuments(ctx, x.db, *f.MinScore); err != nil {
			return nil, err
		}
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	for id, o := range x.offers {
		if scored == nil || slices.ContainsFunc(o.documents, func(sum common.Hash) bool { return scored[sum] }) {
			out[id] = true
		}
	}
	return out, nil
}

// read returns what matches are, as the database has it now, and the matches that may be shown.
func (x *Finder) read(ctx context.Context, f manifestdb.IntentFilter, matches []intent.Match) (
	items []manifestdb.FoundIntent, kept []intent.Match, err error) {
	keys, offers := x.known(matches)
	intents, err := manifestdb.IntentsByKey(ctx, x.db, slices.Collect(maps.Values(keys)))
	if err != nil {
		return nil, nil, err
	}
	agents, err := x.agents(ctx, f, offers)
	if err != nil {
		return nil, nil, err
	}
	for i, m := range matches {
		found, ok := intents[keys[i]]
		if o, isOffer := offers[i]; isOffer {
			by, shown := agents[i]
			found, ok = manifestdb.FoundIntent{Kind: o.Kind, Name: o.Name, Description: o.Description,
				Parameters: o.Tags,
				Agent:      &by.Best, Agents: by.Count}, shown
		}
		if ok {
			found.Rank, found.Similarity = m.Score, m.Similarity
			items, kept = append(items, found), append(kept, m)
		}
	}
	return items, kept, nil
}

// known returns the intents and the offers of matches, by their places.
func (x *Finder) known(matches []intent.Match) (keys map[int]manifestdb.IntentKey, offers map[int]offer) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	keys, offers = map[int]manifestdb.IntentKey{}, map[int]offer{}
	for i, m := range matches {
		if key, ok := x.intents[m.ID]; ok {
			keys[i] = key
		} else if o := x.offers[m.ID]; o != nil {
			offers[i] = *o
		}
	}
	return keys, offers
}

// agents returns who makes offers, by their places.
func (x *Finder) agents(ctx context.Context, f manifestdb.IntentFilter, offers map[int]offer) (
	map[int]manifestdb.Offering, error) {
	var places []int
	var documents []common.Hash
	for i, o := range offers {
		for _, sum := range o.documents {
			places, documents = append(places, i), append(documents, sum)
		}
	}
	if places == nil {
		return nil, nil
	}
	return manifestdb.OfferingAgents(ctx, x.db, places, documents, f.MinScore)
}
