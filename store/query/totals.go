package query

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store/column"
)

// Counting reads every agent. A count that takes longer than costly is cached, so that counting
// takes at most one part in countingShare of the time, however often it is requested.
const (
	costly        = 200 * time.Millisecond
	countingShare = 20
)

// totals caches counts that are expensive to compute.
type totals struct {
	counting sync.Mutex // held while counting; others use the cached counts

	mu    sync.Mutex // guards what follows
	known map[uint64]repute.ChainStatus
	until time.Time
}

// get returns Agents, Feedback, URIs and URIsDue of each chain, of tx's snapshot or, where counting
// is expensive, of an earlier one. The map MUST NOT be changed.
func (t *totals) get(ctx context.Context, tx pgx.Tx) (map[uint64]repute.ChainStatus, error) {
	known, fresh := t.last()
	if fresh {
		return known, nil
	}
	if t.counting.TryLock() {
		defer t.counting.Unlock()
	} else if known != nil {
		return known, nil
	}
	start := time.Now()
	counted, err := countTotals(ctx, tx)
	if err != nil {
		return nil, err
	}
	t.keep(counted, time.Since(start))
	return counted, nil
}

// last returns the cached counts and whether they may still be used.
func (t *totals) last() (known map[uint64]repute.ChainStatus, fresh bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.known, time.Now().Before(t.until)
}

// keep caches counts for as long as the time that counting took demands.
func (t *totals) keep(counted map[uint64]repute.ChainStatus, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known, t.until = nil, time.Time{}
	if took > costly {
		t.known, t.until = counted, time.Now().Add(countingShare*took)
	}
}

// countTotals counts within tx's snapshot.
func countTotals(ctx context.Context, tx pgx.Tx) (map[uint64]repute.ChainStatus, error) {
	empty := column.SHA256("")
	rows, _ := tx.Query(ctx, `
		select a.chain_id, a.n, a.feedback, a.uris, coalesce(d.n, 0)
		from (
			select chain_id, count(*) as n, sum(feedback)::bigint as feedback, count(distinct uri_id)
				filter (where uri_id <> coalesce((select id from uris where hash = $1), 0)) as uris
			from agents group by chain_id) a
		left join (
			select a.chain_id, count(distinct u.id) as n from uris u join agents a on a.uri_id = u.id
			where u.next_due <= now() group by a.chain_id) d using (chain_id)`, empty[:])
	out := map[uint64]repute.ChainStatus{}
	var chain uint64
	var s repute.ChainStatus
	_, err := pgx.ForEachRow(rows, []any{&chain, &s.Agents, &s.Feedback, &s.URIs, &s.URIsDue}, func() error {
		out[chain] = s
		return nil
	})
	return out, err
}
