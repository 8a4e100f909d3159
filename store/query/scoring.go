package query

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store/column"
	"repute/store/scoredb"
)

// lateAfter is how long a change may have no effect on scores before scoring counts as late.
const lateAfter = time.Minute

// readScoring returns how far scores are, per chain.
func readScoring(ctx context.Context, tx pgx.Tx) (map[uint64]repute.Scoring, error) {
	rows, _ := tx.Query(ctx, `
		select c.chain_id, coalesce(r.run, 0), coalesce(r.epoch, 0), coalesce(r.boundary, 0), r.started_at, r.closed_at is
			not null,
			(select count(*) from trust_roots t where t.chain_id = c.chain_id and t.set_name = $1 and (t.expires_at is null
				or t.expires_at > now())),
			w.n, w.since, f.begun, coalesce(k.coverage, '{}'), coalesce(k.rated, 0), coalesce(k.thin, 0),
			coalesce(k.verified_to, 0), coalesce(k.verified_to > 0 and k.boundary <= k.verified_to, false),
			coalesce(k.readings, ''),
			case when r.run is null then (c.imported or c.finalized_block between 1 and c.cursor_block) and c.cursor_block >= c.start_block
				else coalesce(f.begun, r.started_at) < now() - $2::interval or coalesce(w.urgent < now() - $2::interval, false) end
		from chains c
		left join cursors f on (f.job, f.chain_id, f.part) = ('marks', c.chain_id, 0)
		left join lateral (select * from trust_runs r where r.chain_id = c.chain_id order by run desc limit 1) r on true
		left join lateral (select coverage, rated, thin, verified_to, boundary, readings from trust_runs k
			where k.chain_id = c.chain_id and k.closed_at is not null order by run desc limit 1) k on true
		cross join lateral (select count(*) n, min(since) since, min(since) filter (where cause = $3) urgent
			from trust_stale s where s.chain_id = c.chain_id) w`, repute.DefaultRoots, lateAfter, scoredb.CauseEvent)
	out := map[uint64]repute.Scoring{}
	var chain uint64
	var s repute.Scoring
	var coverage []byte
	var rated, thin int64
	var readings string
	_, err := pgx.ForEachRow(rows, []any{&chain, &s.Run, &s.Epoch, &s.Block, (*column.Time)(&s.WalkedAt), &s.Final,
		&s.Roots, &s.Stale, (*column.Time)(&s.StaleSince), (*column.Time)(&s.LookedAt), &coverage, &rated, &thin,
		&s.VerifiedTo, &s.Verified, &readings, &s.Late}, func() error {
		s.Coverage = repute.Coverage{}
		if err := json.Unmarshal(coverage, &s.Coverage); err != nil {
			return fmt.Errorf("coverage of chain %d: %w", chain, err)
		}
		s.Coverage.Rated, s.Coverage.Thin = rated, thin
		var err error
		if s.Sources, err = repute.ParseSourceStates(readings); err != nil {
			return fmt.Errorf("chain %d: %w", chain, err)
		}
		out[chain] = s
		return nil
	})
	return out, err
}
