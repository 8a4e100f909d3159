package finder

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/intent"
	"repute/store"
	"repute/store/changedata"
	"repute/store/column"
	"repute/store/manifestdb"
)

const (
	// atOnce is how many domains or documents are read and embedded before the next are.
	atOnce = 100
	// mostChanges is how many changes of the feed are read at once.
	mostChanges = 1000
	// mostDocuments bounds the documents of one offer that are kept. An OASF class may be named by all agents; those of
	// more documents are represented by these.
	mostDocuments = 256
	// mostOffers bounds the memory that documents of strangers can take: each takes about one kilobyte.
	mostOffers = 100_000
)

// Options of a Finder. Zero values are replaced by the defaults named.
type Options struct {
	Every time.Duration // between looks for changes, 2 s
	// Rest is how many times as long as a text took to embed the Finder pauses after it, while it follows the database.
	// It is for a model that computes in this process; 0 for none.
	Rest int
	Log  *slog.Logger // nil: discarded
}

// withDefaults replaces zero values by the named defaults.
func (o Options) withDefaults() Options {
	if o.Every <= 0 {
		o.Every = 2 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// progress is how far a Finder has read.
type progress struct {
	intents   uint64      // position of ChangedIntents
	change    string      // cursor of the change feed, from where documents of agents are followed
	documents common.Hash // the last document that was read
	complete  bool        // all documents were read once
	looked    time.Time   // when intents were last followed
}

// Run reads what is offered, and then what changes, until ctx ends, which is no error. While the database or the model
// is unavailable, it retries.
func (x *Finder) Run(ctx context.Context) error {
	var at progress
	for ctx.Err() == nil {
		if err := x.step(ctx, &at); err != nil && ctx.Err() == nil {
			x.log.Warn("finder: not up to date", "error", err)
		}
		repute.Pause(ctx, x.opts.Every)
	}
	return nil
}

// step reads what changed since the last step: first intents, which a search needs, then documents of agents.
func (x *Finder) step(ctx context.Context, at *progress) error {
	if err := x.followIntents(ctx, at); err != nil {
		return err
	}
	x.loaded.Store(true)
	if !at.complete {
		return x.readDocuments(ctx, at)
	}
	return x.followDocuments(ctx, at)
}

// followIntents replaces the intents of the domains that changed.
func (x *Finder) followIntents(ctx context.Context, at *progress) error {
	domains, next, err := manifestdb.ChangedIntents(ctx, x.db, at.intents)
	if err != nil {
		return err
	}
	for some := range slices.Chunk(domains, atOnce) {
		intents, err := manifestdb.IntentsOf(ctx, x.db, some, x.embedder.ID())
		if err != nil {
			return err
		}
		vectors, err := x.vectors(ctx, intents)
		if err != nil {
			return err
		}
		if err := x.putIntents(some, intents, vectors); err != nil {
			return err
		}
	}
	at.intents, at.looked = next, time.Now()
	return nil
}

// meanwhile follows the intents where a look is due. It is called between documents, of which thousands may follow each
// other and take minutes: changed intents do not wait for all of them.
func (x *Finder) meanwhile(ctx context.Context, at *progress) error {
	if time.Since(at.looked) < x.opts.Every {
		return nil
	}
	return x.followIntents(ctx, at)
}

// vectors returns the vector of each intent. Those that no process computed yet are computed and stored.
func (x *Finder) vectors(ctx context.Context, intents []manifestdb.StoredIntent) ([]intent.Vector, error) {
	out := make([]intent.Vector, len(intents))
	var missing []int
	var items []intent.Item
	for i, stored := range intents {
		if stored.Embedding == nil || out[i].UnmarshalBinary(stored.Embedding) != nil ||
			out[i].Model != x.embedder.ID() {
			missing, items = append(missing, i), append(items, itemOf(stored))
		}
	}
	made, err := intent.Vectors(ctx, x.background, items...)
	if err != nil {
		return nil, err
	}
	var save []manifestdb.StoredIntent
	for n, i := range missing {
		out[i] = made[n][0]
		if intents[i].Embedding, err = out[i].MarshalBinary(); err != nil {
			return nil, fmt.Errorf("encode a vector: %w", err)
		}
		save = append(save, intents[i])
	}
	if save == nil {
		return out, nil
	}
	return out, manifestdb.SaveEmbeddings(ctx, x.db, x.embedder.ID(), save)
}

// intentID is the id of an intent in the index.
func intentID(k manifestdb.IntentKey) string { return "intent:" + k.Name + "@" + k.Domain }

// itemOf is an intent for the index.
func itemOf(i manifestdb.StoredIntent) intent.Item {
	return intent.Item{ID: intentID(manifestdb.IntentKey{Domain: i.Domain, Name: i.Name}), Kind: intent.KindIntent,
		Name: i.Name, Description: i.Description, Parameters: i.Parameters}
}

// putIntents replaces the intents of domains.
func (x *Finder) putIntents(domains []string, intents []manifestdb.StoredIntent, vectors []intent.Vector) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, domain := range domains {
		x.index.Remove(x.domains[domain]...)
		for _, id := range x.domains[domain] {
			delete(x.intents, id)
		}
		delete(x.domains, domain)
	}
	for i, stored := range intents {
		item := itemOf(stored)
		if err := x.index.Put(item, vectors[i:i+1]); err != nil {
			return err
		}
		x.domains[stored.Domain] = append(x.domains[stored.Domain], item.ID)
		x.intents[item.ID] = manifestdb.IntentKey{Domain: stored.Domain, Name: stored.Name}
	}
	return nil
}

// readDocuments reads the offers of all documents that agents show. It continues where an error interrupted it. The
// cursor of the feed is taken before, so that no change in the meantime is missed.
func (x *Finder) readDocuments(ctx context.Context, at *progress) (err error) {
	if at.documents == (common.Hash{}) {
		if at.change, err = x.db.NewestChange(ctx); err != nil {
			return err
		}
	}
	for {
		documents, err := manifestdb.OffersAfter(ctx, x.db, at.documents, atOnce)
		if err != nil {
			return err
		}
		if len(documents) == 0 {
			at.complete = true
			return nil
		}
		if err := x.addOffers(ctx, documents); err != nil {
			return err
		}
		at.documents = documents[len(documents)-1].Sum
		if err := x.meanwhile(ctx, at); err != nil {
			return err
		}
	}
}

// followDocuments reads the documents of agents that the change feed names. Where the feed was pruned all documents are
// read again.
func (x *Finder) followDocuments(ctx context.Context, at *progress) error {
	for {
		changes, next, err := x.db.Changes(ctx, at.change, mostChanges, store.ChangeFilter{Kinds: []string{
			changedata.KindDocument, changedata.KindURI, changedata.KindRegistered, changedata.KindRepaired}})
		if errors.Is(err, repute.ErrGone) {
			at.complete, at.documents = false, common.Hash{}
			return nil
		}
		if err != nil || next == at.change {
			return err
		}
		named := map[column.AgentKey]bool{}
		var ids []repute.AgentID
		for _, c := range changes {
			if c.TokenID == nil || named[column.AgentKey{Chain: c.ChainID, Token: *c.TokenID}] {
				continue
			}
			named[column.AgentKey{Chain: c.ChainID, Token: *c.TokenID}] = true
			ids = append(ids, repute.AgentID{ChainID: c.ChainID, TokenID: *c.TokenID})
		}
		documents, err := manifestdb.OffersOf(ctx, x.db, ids)
		if err != nil {
			return err
		}
		if err := x.addOffers(ctx, documents); err != nil {
			return err
		}
		at.change = next
		if err := x.meanwhile(ctx, at); err != nil {
			return err
		}
	}
}

// offerID is the id of an offer in the index: documents that make the same offer share it.
func offerID(o manifestdb.Offer) string {
	sum := sha256.Sum256([]byte(o.Name + "\x00" + o.Description))
	return o.Kind + ":" + hex.EncodeToString(sum[:16])
}

// addOffers adds the offers of documents that are not in the index yet. The bytes of a document never change.
func (x *Finder) addOffers(ctx context.Context, documents []manifestdb.DocumentOffers) error {
	items := x.newItems(documents)
	vectors, err := intent.Vectors(ctx, x.background, items...)
	if err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for i, item := range items {
		if err := x.index.Put(item, vectors[i]); err != nil {
			return err
		}
	}
	for _, d := range documents {
		for _, o := range d.Offers {
			id := offerID(o)
			if x.offers[id] == nil && len(x.offers) < mostOffers {
				x.offers[id] = &offer{Offer: o}
			}
			known := x.offers[id]
			if known != nil && len(known.documents) < mostDocuments && !slices.Contains(known.documents, d.Sum) {
				known.documents = append(known.documents, d.Sum)
			}
		}
	}
	return nil
}

// newItems returns the offers of documents that are not in the index yet, each once, within mostOffers.
func (x *Finder) newItems(documents []manifestdb.DocumentOffers) (items []intent.Item) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	added := map[string]bool{}
	for _, d := range documents {
		for _, o := range d.Offers {
			id := offerID(o)
			if x.offers[id] != nil || added[id] || len(x.offers)+len(added) >= mostOffers {
				continue
			}
			added[id] = true
			items = append(items, itemOfOffer(id, o))
		}
	}
	return items
}

// itemOfOffer is an offer for the index. Of an OASF class, natural_language_processing/summarization, the last part
// says what it does: with the others, which many classes share, it would resemble texts that have nothing to do with
// it.
func itemOfOffer(id string, o manifestdb.Offer) intent.Item {
	item := intent.Item{ID: id, Kind: intent.Kind(o.Kind), Name: o.Name, Description: o.Description, Parameters: o.Tags}
	if at := strings.LastIndexByte(o.Name, '/'); at >= 0 && item.Kind == intent.KindClass {
		item.Name, item.Parameters = o.Name[at+1:], append([]string{o.Name[:at]}, o.Tags...)
	}
	return item
}
