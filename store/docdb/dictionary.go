package docdb

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/column"
)

// Interned holds the ids of the tags and URIs of a batch.
type Interned struct {
	Tags, URIs map[string]int64
	// agents are the ids of URIs that agents use as their own.
	agents map[string]int64
}

// dictionary caches the ids of interned strings. A committed id never changes, so an entry is never
// wrong; a cache is emptied when it is full. The cache of agents' URIs also says that their
// documents were scheduled or read lately, so it is emptied every hour.
type dictionary struct {
	mu                 sync.Mutex
	tags, uris, agents map[[32]byte]int64
	agentsSince        time.Time
}

// plannedFor is how long an agent's URI counts as scheduled without a query.
const plannedFor = time.Hour

// dictionaryLimit is the most entries of each cache, about 15 MB.
const dictionaryLimit = 200_000

// newDictionary returns empty caches.
func newDictionary() *dictionary {
	return &dictionary{tags: map[[32]byte]int64{}, uris: map[[32]byte]int64{}, agents: map[[32]byte]int64{}}
}

// word is a string to be interned with its hash.
type word struct {
	hash  [32]byte
	value string
}

// Intern returns ids of every tag and URI of the records, and of the empty ones. It runs outside
// the batch's transaction, in short statements, so that two chains never wait for each other on a
// shared row. A string whose batch fails later stays stored, which does no harm.
func Intern(ctx context.Context, db *store.DB, records []repute.Record) (Interned, error) {
	ids := Interned{Tags: map[string]int64{"": 0}, URIs: map[string]int64{"": 0}, agents: map[string]int64{}}
	for i := range records {
		ids.collect(records[i].Event)
	}
	dict := store.Kept(db, newDictionary)
	err := dict.resolve(ctx, db, dict.tags, ids.Tags, column.Keccak, findTags, insertTags)
	if err != nil {
		return Interned{}, store.Failed("intern tags", err)
	}
	dict.expire(time.Now())
	// A second lookup finds the URIs that were scheduled, whether or not they still are.
	find := findAgentURIs
	err = dict.resolve(ctx, db, dict.agents, ids.agents, column.SHA256,
		func(ctx context.Context, db *store.DB, words []word) (map[[32]byte]int64, error) {
			return find(ctx, db, words)
		},
		func(ctx context.Context, db *store.DB, words []word) error {
			find = findURIs
			return insertAgentURIs(ctx, db, words)
		})
	if err != nil {
		return Interned{}, store.Failed("intern uris of agents", err)
	}
	maps.DeleteFunc(ids.URIs, func(uri string, _ int64) bool { _, ok := ids.agents[uri]; return ok })
	err = dict.resolve(ctx, db, dict.uris, ids.URIs, column.SHA256, findURIs, insertURIs)
	maps.Copy(ids.URIs, ids.agents)
	return ids, store.Failed("intern uris", err)
}

// expire empties the cache of agents' URIs when it is older than plannedFor.
func (d *dictionary) expire(now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now.Sub(d.agentsSince) > plannedFor {
		clear(d.agents)
		d.agentsSince = now
	}
}

// collect adds the strings of one event, without ids yet.
func (ids Interned) collect(e repute.Event) {
	switch e := e.(type) {
	case repute.Registered:
		ids.agents[e.URI] = 0
	case repute.URIUpdated:
		ids.agents[e.URI] = 0
	case repute.NewFeedback:
		ids.Tags[e.Tag1], ids.Tags[e.Tag2] = 0, 0
		ids.URIs[e.URI] = 0
	case repute.ResponseAppended:
		ids.URIs[e.URI] = 0
	case repute.ValidationRequest:
		ids.URIs[e.URI] = 0
	case repute.ValidationResponse:
		ids.Tags[e.Tag] = 0
		ids.URIs[e.URI] = 0
	}
}

// resolve sets ids from the cache, then from the table, and inserts strings that are new. They are
// inserted in the order of their hashes, so that two writers of the same strings cannot deadlock.
func (d *dictionary) resolve(ctx context.Context, db *store.DB, cache map[[32]byte]int64, ids map[string]int64,
	hash func(string) [32]byte,
	find func(context.Context, *store.DB, []word) (map[[32]byte]int64, error),
	insert func(context.Context, *store.DB, []word) error) error {
	missing := d.cached(cache, ids, hash)
	if len(missing) == 0 {
		return nil
	}
	for attempt := 0; ; attempt++ {
		found, err := find(ctx, db, missing)
		if err != nil {
			return err
		}
		missing = d.settle(cache, ids, missing, found)
		if len(missing) == 0 {
			return nil
		}
		if attempt > 0 {
			return pgx.ErrNoRows
		}
		if err := insert(ctx, db, missing); err != nil {
			return err
		}
	}
}

// cached sets the ids that the cache holds and returns the other strings, ordered by hash.
func (d *dictionary) cached(cache map[[32]byte]int64, ids map[string]int64, hash func(string) [32]byte) []word {
	d.mu.Lock()
	defer d.mu.Unlock()
	var missing []word
	for s := range ids {
		h := hash(s)
		if id, ok := cache[h]; ok {
			ids[s] = id
			continue
		}
		missing = append(missing, word{h, s})
	}
	slices.SortFunc(missing, func(a, b word) int { return bytes.Compare(a.hash[:], b.hash[:]) })
	return missing
}

// settle sets and caches the ids that were found, and returns the other strings.
func (d *dictionary) settle(cache map[[32]byte]int64, ids map[string]int64, words []word,
	found map[[32]byte]int64) []word {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(cache)+len(found) > dictionaryLimit {
		clear(cache)
	}
	var missing []word
	for _, w := range words {
		id, ok := found[w.hash]
		if !ok {
			missing = append(missing, w)
			continue
		}
		ids[w.value], cache[w.hash] = id, id
	}
	return missing
}

// findTags returns the ids of stored tags by hash.
func findTags(ctx context.Context, db *store.DB, words []word) (map[[32]byte]int64, error) {
	return findWords(ctx, db,
		`select t.hash, t.id from unnest($1::bytea[]) u(h) cross join lateral (select hash, id from tags where hash = u.h offset 0) t`, words)
}

// findURIs returns the ids of stored URIs by hash.
func findURIs(ctx context.Context, db *store.DB, words []word) (map[[32]byte]int64, error) {
	return findWords(ctx, db,
		`select t.hash, t.id from unnest($1::bytea[]) u(h) cross join lateral (select hash, id from uris where hash = u.h offset 0) t`, words)
}

// stale is the SQL of whether an agent's URI was read long ago, or is dead, so that another fetch
// could return something else. Without it an agent that gets such a URI now would wait for up to a
// month.
const stale = `(uris.kind in ('https', 'http', 'ipfs') and (uris.dead or uris.tried_at < now() - interval '1 day')
	and not (uris.source = 'ipfs' and uris.sha256 is not null) and coalesce(uris.next_due > now(), true))`

// findAgentURIs returns the ids of agents' URIs that need not become due: not those that no agent
// used before, nor stale ones.
func findAgentURIs(ctx context.Context, db *store.DB, words []word) (map[[32]byte]int64, error) {
	return findWords(ctx, db, `
		select t.hash, t.id from unnest($1::bytea[]) u(h) cross join lateral (
			select hash, id, uri = '' or rank < 2 and not `+stale+` as planned from uris where hash = u.h offset 0) t
		where t.planned`, words)
}

// findWords executes a query for ids by hash.
func findWords(ctx context.Context, db *store.DB, sql string, words []word) (map[[32]byte]int64, error) {
	rows, _ := db.Pool().Query(ctx, sql, hashesOf(words))
	found := make(map[[32]byte]int64, len(words))
	var hash []byte
	var id int64
	_, err := pgx.ForEachRow(rows, []any{&hash, &id}, func() error {
		found[[32]byte(hash)] = id
		return nil
	})
	return found, err
}

// insertTags stores new tags.
func insertTags(ctx context.Context, db *store.DB, words []word) error {
	_, err := db.Pool().Exec(ctx, `
		insert into tags (hash, value) select * from unnest($1::bytea[], $2::bytea[])
		on conflict (hash) do nothing`, hashesOf(words), valuesOf(words))
	return err
}

// insertURIs stores new URIs that no agent uses. PlanFiles schedules them.
func insertURIs(ctx context.Context, db *store.DB, words []word) error {
	kinds, hosts := classifyAll(db, words)
	_, err := db.Pool().Exec(ctx, `
		insert into uris (hash, uri, kind, host) select * from unnest($1::bytea[], $2::bytea[], $3::text[], $4::text[])
		on conflict (hash) do nothing`, hashesOf(words), valuesOf(words), kinds, hosts)
	return err
}

// insertAgentURIs makes URIs due at once that are new, stale, or used by an agent for the first
// time. URIs that cannot be fetched become due too: their one attempt records the reason. A file
// that was read for feedback is read again, because it was not parsed as a registration.
func insertAgentURIs(ctx context.Context, db *store.DB, words []word) error {
	kinds, hosts := classifyAll(db, words)
	_, err := db.Pool().Exec(ctx, `
		with planned as (
			insert into uris (hash, uri, kind, host, rank, next_due)
			select hash, uri, kind, host, 0, case when uri <> '' then now() end
			from unnest($1::bytea[], $2::bytea[], $3::text[], $4::text[]) u(hash, uri, kind, host)
			on conflict (hash) do update set next_due = excluded.next_due, rank = case when uris.rank > 1 then 0 else
				uris.rank end,
				attempts = 0, failures = 0, dead = uris.dead and uris.rank < 2,
				etag = case when uris.rank < 2 then uris.etag else '' end,
				last_modified = case when uris.rank < 2 then uris.last_modified else '' end
			where uris.rank > 1 or `+stale+`
			returning host, rank, next_due),
		due as (select host, rank from planned where next_due is not null)`+ScheduleHosts("due"),
		hashesOf(words), valuesOf(words), kinds, hosts)
	return err
}

// classifyAll returns kind and host of each URI, by Options.Classify.
func classifyAll(db *store.DB, words []word) (kinds, hosts []string) {
	kinds, hosts = make([]string, len(words)), make([]string, len(words))
	for i, w := range words {
		kinds[i], hosts[i] = db.Options().Classify(w.value)
		hosts[i] = column.PlainText(hosts[i], column.LongestHost)
	}
	return kinds, hosts
}

// hashesOf returns the hashes as a bytea[] parameter.
func hashesOf(words []word) [][]byte {
	out := make([][]byte, len(words))
	for i := range words {
		out[i] = words[i].hash[:]
	}
	return out
}

// valuesOf returns the strings as a bytea[] parameter.
func valuesOf(words []word) [][]byte {
	out := make([][]byte, len(words))
	for i := range words {
		out[i] = []byte(words[i].value)
	}
	return out
}
