package intent

import (
	"context"
	"fmt"
	"sync"

	"github.com/ethereum/go-ethereum/common/lru"

	"repute"
)

// maxQueries is how many vectors of queries are kept: with 512 dimensions about one megabyte.
const maxQueries = 1024

// Entry is what an Index keeps of an item.
type Entry struct {
	ID   string
	Kind Kind
	Name string // at most 200 bytes
}

// entry is an Entry with the rows of its vectors. Entries of free slots have no rows.
type entry struct {
	Entry
	rows []int32
}

// Index holds items and searches them. It may be read and changed concurrently: a search sees each
// item whole or not at all, and waits only while an item is put or removed. Slots are numbers of items, which are used
// again after a removal.
type Index struct {
	embedder Embedder
	queries  *lru.Cache[string, Vector] // by text, for queries that are repeated

	mu      sync.RWMutex // guards all below
	slots   map[string]int32
	entries []entry // by slot
	free    []int32 // slots
	rows    rows
	lexicon lexicon
}

// New returns an empty index whose texts are embedded by e.
func New(e Embedder) (*Index, error) {
	if dim := e.Dim(); dim < 1 || dim > maxDim {
		return nil, repute.Invalid("embedder", fmt.Sprintf("has %d dimensions", dim), "1 to 4096 are allowed")
	}
	return &Index{embedder: e, queries: lru.NewCache[string, Vector](maxQueries), slots: make(map[string]int32),
		rows: rows{dim: e.Dim()}, lexicon: lexicon{terms: make(map[string]*term)}}, nil
}

// Len returns the number of items.
func (x *Index) Len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return len(x.slots)
}

// Add embeds items and stores them. Items with a known ID replace the stored ones. After an error
// none is stored.
func (x *Index) Add(ctx context.Context, items ...Item) error {
	for _, item := range items {
		if err := item.check(); err != nil {
			return err
		}
	}
	vectors, err := Vectors(ctx, x.embedder, items...)
	if err != nil {
		return err
	}
	for i, item := range items {
		if err := x.Put(item, vectors[i]); err != nil {
			return err
		}
	}
	return nil
}

// check returns an error unless the item can be stored.
func (i Item) check() error {
	if i.ID == "" {
		return repute.Invalid("id", "is empty", "give each item an id of its own")
	}
	return nil
}

// Put stores an item with vectors that Vectors returned, perhaps long ago. An item with the same ID
// is replaced. Vectors of another model than that of the index are refused. All checks come before the lock, so that an
// item that is refused leaves the stored one in place.
func (x *Index) Put(item Item, vectors []Vector) error {
	if err := item.check(); err != nil {
		return err
	}
	if n := len(vectors); n == 0 || n > 1+maxExamples {
		return repute.Invalid("vectors", fmt.Sprintf("%d are given", n), "pass those that Vectors returned")
	}
	for _, v := range vectors {
		if err := x.accepts(v); err != nil {
			return err
		}
	}
	words := item.words() // outside the lock: it is the slow part
	x.mu.Lock()
	defer x.mu.Unlock()
	x.remove(item.ID)
	slot := x.slot()
	e := entry{Entry: Entry{ID: item.ID, Kind: item.Kind, Name: clean(item.Name, maxName)}}
	for _, v := range vectors {
		e.rows = append(e.rows, x.rows.put(slot, v))
	}
	x.entries[slot], x.slots[item.ID] = e, slot
	x.lexicon.put(slot, words)
	return nil
}

// accepts returns an error unless the vector can be compared to those of the index.
func (x *Index) accepts(v Vector) error {
	if v.Model != x.embedder.ID() {
		return repute.Conflict("vector of model %q in an index of %q; embed the item again", v.Model, x.embedder.ID())
	}
	if len(v.Values) != x.rows.dim {
		return repute.Invalid("vector", fmt.Sprintf("has %d dimensions", len(v.Values)),
			fmt.Sprintf("%d are wanted", x.rows.dim))
	}
	return v.check()
}

// slot returns a free slot.
func (x *Index) slot() int32 {
	if n := len(x.free); n > 0 {
		slot := x.free[n-1]
		x.free = x.free[:n-1]
		return slot
	}
	x.entries = append(x.entries, entry{})
	return int32(len(x.entries) - 1)
}

// Remove removes items. Unknown IDs are ignored. The lock is released between two items, so that a long list does not
// hold up searches.
func (x *Index) Remove(ids ...string) {
	for _, id := range ids {
		x.mu.Lock()
		x.remove(id)
		x.mu.Unlock()
	}
}

// remove removes one item, if it exists. The caller holds the lock.
func (x *Index) remove(id string) {
	slot, ok := x.slots[id]
	if !ok {
		return
	}
	for _, row := range x.entries[slot].rows {
		x.rows.remove(row)
	}
	x.lexicon.remove(slot)
	x.entries[slot] = entry{}
	delete(x.slots, id)
	x.free = append(x.free, slot)
}
