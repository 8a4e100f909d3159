package historydb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/column"
)

// Measure is what a series is of.
type Measure string

// Measures.
const (
	MeasureScore     Measure = "score"     // the newest final score
	MeasureRatings   Measure = "ratings"   // live ratings that were given
	MeasureReviewers Measure = "reviewers" // distinct clients of these
)

// Step is the length of a bucket. All buckets begin in UTC, and weeks on Mondays, as in ISO 8601.
type Step string

// Steps.
const (
	StepHour Step = "hour"
	StepDay  Step = "day"
	StepWeek Step = "week"
)

// length returns the duration of a step, 0 for an unknown one.
func (s Step) length() time.Duration {
	return map[Step]time.Duration{StepHour: time.Hour, StepDay: 24 * time.Hour, StepWeek: 7 * 24 * time.Hour}[s]
}

// begin returns the start of the bucket that a time is in. The zero time is a Monday at midnight, UTC.
func (s Step) begin(t time.Time) time.Time { return t.UTC().Truncate(s.length()) }

const (
	// MaxBuckets is how many buckets a series may have.
	MaxBuckets = 1000
	// defaultBuckets is how many it has when no start is given.
	defaultBuckets = 30
)

// SeriesFilter selects a series.
type SeriesFilter struct {
	Measure Measure
	Every   Step
	// From and To bound the buckets: the first one has From, and the last one begins before To. The zero To means the
	// bucket of the view's block, the zero From thirty buckets up to the last one.
	From, To time.Time
	Tag      *string // only ratings with exactly this tag1; nil for all
	At       repute.At
}

// Check returns what is wrong with the filter.
func (f SeriesFilter) Check() error {
	switch f.Measure {
	case MeasureScore, MeasureRatings, MeasureReviewers:
	default:
		return repute.Invalid("measure", fmt.Sprintf("%.50q is no measure", string(f.Measure)),
			"score, ratings or reviewers")
	}
	switch {
	case f.Every.length() == 0:
		return repute.Invalid("every", fmt.Sprintf("%.50q is no length of a bucket", string(f.Every)),
			"hour, day or week")
	case f.Measure == MeasureScore && f.Tag != nil:
		return repute.Invalid("tag", "is given with measure=score, which is one for all tags",
			"leave out tag, or ask for ratings or reviewers")
	case !f.From.IsZero() && !f.To.IsZero():
		_, err := f.window(time.Time{})
		return err
	}
	return nil
}

// Most returns how many buckets the series has at most, before the newest block is known.
func (f SeriesFilter) Most() int {
	switch {
	case f.From.IsZero():
		return defaultBuckets
	case f.To.IsZero():
		return MaxBuckets
	}
	w, err := f.window(time.Time{})
	if err != nil {
		return MaxBuckets
	}
	return w.buckets()
}

// window are the buckets of a series: the first begins at from, the last one ends at to.
type window struct {
	from, to time.Time
	step     time.Duration
}

// window returns the buckets of the filter when the newest block of the view has a time.
func (f SeriesFilter) window(newest time.Time) (w window, err error) {
	w.step = f.Every.length()
	switch {
	case !f.To.IsZero():
		w.to = f.Every.begin(f.To.Add(-time.Nanosecond)).Add(w.step)
	case newest.IsZero():
		return w, repute.Invalid("to", "is not given, and the time of the newest block is not known",
			"give from and to as times, e.g. 2026-01-31")
	default:
		w.to = f.Every.begin(newest).Add(w.step)
	}
	w.from = w.to.Add(-defaultBuckets * w.step)
	if !f.From.IsZero() {
		w.from = f.Every.begin(f.From)
	}
	n := int64(w.to.Sub(w.from) / w.step)
	switch {
	case n <= 0 || !f.To.IsZero() && !f.From.Before(f.To):
		return w, repute.Invalid("from", "is not before the end of the series",
			"a time before to, and before the newest block")
	case n > MaxBuckets:
		return w, repute.Invalid("from", fmt.Sprintf("%d buckets are too many", n),
			fmt.Sprintf("at most %d: a later from, an earlier to, or longer buckets by every", MaxBuckets))
	}
	return w, nil
}

// buckets returns how many buckets the window has.
func (w window) buckets() int { return int(w.to.Sub(w.from) / w.step) }

// Series are the values of an agent over time.
type Series struct {
	Agent    repute.AgentID
	Measure  Measure
	Every    Step
	From, To time.Time // start of the first bucket, and end of the last one
	Points   []Point   // one for each bucket, in order
	// Undated is how many ratings are in no bucket of any series, because the time of their block is unknown.
	Undated int64
	AsOf    repute.AsOf
}

// Point is the value of one bucket.
type Point struct {
	Start time.Time
	Count int64 // of ratings or reviewers
	// Score is the final score at the end of the bucket, nil before the first one and for other measures.
	Score *Score
	// Carried says that no final score was stored in the bucket: Score is the last one before.
	Carried bool
}

// Score is a final score, and the epoch that it is of.
type Score struct {
	Epoch            uint64
	Status           repute.Status
	Score, Low, High repute.Points
}

// ReadSeries returns a series of an agent. repute.ErrNotFound as in query.Agent.
func ReadSeries(ctx context.Context, db *store.DB, id repute.AgentID, f SeriesFilter) (out Series, err error) {
	if err := f.Check(); err != nil {
		return out, err
	}
	err = chaindb.ViewAgent(ctx, db, "read series", id, f.At, func(ctx context.Context, s chaindb.Subject) error {
		newest, err := newestTime(ctx, s)
		if err != nil {
			return err
		}
		w, err := f.window(newest)
		if err != nil {
			return err
		}
		out = Series{Agent: s.ID, AsOf: s.AsOf}
		return f.fill(ctx, s.Tx, []*Series{&out}, []window{w}, s.Block)
	})
	return out, err
}

// SeriesByAgents returns the series of each agent at the newest block. At of the filter is not used.
func SeriesByAgents(ctx context.Context, db *store.DB, ids []repute.AgentID,
	f SeriesFilter) (out map[column.AgentKey]Series, err error) {
	if err := f.Check(); err != nil {
		return nil, err
	}
	err = chaindb.View(ctx, db, "read series", func(ctx context.Context, tx pgx.Tx) error {
		chains, err := chaindb.ReadChains(ctx, tx, nil)
		if err != nil {
			return err
		}
		newest := map[uint64]repute.AsOf{}
		for _, c := range chains {
			newest[c.ID] = c.Latest()
		}
		list, windows := make([]*Series, len(ids)), make([]window, len(ids))
		for i, id := range ids {
			list[i] = &Series{Agent: id, AsOf: newest[id.ChainID]}
			if windows[i], err = f.window(newest[id.ChainID].Block.Time); err != nil {
				return err
			}
		}
		err = f.fill(ctx, tx, list, windows, chaindb.Everything)
		out = make(map[column.AgentKey]Series, len(list))
		for _, s := range list {
			out[column.KeyOf(s.Agent)] = *s
		}
		return err
	})
	return out, err
}

// newestTime returns the time of the view's block, or of the newest stored block below it that has one.
func newestTime(ctx context.Context, s chaindb.Subject) (time.Time, error) {
	if !s.AsOf.Block.Time.IsZero() {
		return s.AsOf.Block.Time, nil
	}
	var at time.Time
	err := s.Tx.QueryRow(ctx, `
		select time from blocks where chain_id = $1 and number <= $2 and time is not null order by number desc limit 1`,
		s.ID.ChainID, s.Block).Scan((*column.Time)(&at))
	if errors.Is(err, pgx.ErrNoRows) {
		return time.Time{}, nil
	}
	return at, err
}

// fill reads the points of series in their windows.
func (f SeriesFilter) fill(ctx context.Context, tx pgx.Tx, list []*Series, windows []window, block int64) error {
	ids := make([]repute.AgentID, len(list))
	byKey := make(map[column.AgentKey]*Series, len(list))
	for i, s := range list {
		s.Measure, s.Every, s.From, s.To = f.Measure, f.Every, windows[i].from, windows[i].to
		s.Points = make([]Point, windows[i].buckets())
		for n := range s.Points {
			s.Points[n].Start = s.From.Add(time.Duration(n) * windows[i].step)
		}
		ids[i], byKey[column.KeyOf(s.Agent)] = s.Agent, s
	}
	chains, tokens := column.KeyColumns(ids)
	from, to := make([]time.Time, len(chains)), make([]time.Time, len(chains))
	for i := range chains {
		s := byKey[column.AgentKey{Chain: chains[i], Token: repute.TokenID(tokens[i])}]
		from[i], to[i] = s.From, s.To
	}
	args := []any{chains, tokens, block, from, to, string(f.Every)}
	if f.Measure == MeasureScore {
		return readScores(ctx, tx, byKey, args)
	}
	return f.readCounts(ctx, tx, byKey, block, args)
}

// place returns the index of the point of the bucket that begins at a time, -1 for none.
func (s *Series) place(start time.Time) int {
	n := int(start.Sub(s.From) / s.Every.length())
	if start.Before(s.From) || n >= len(s.Points) {
		return -1
	}
	return n
}

// liveByHour is the statement that counts for each bucket the ratings that are live at the newest block: those given in
// its hours (table hours, series 2), less those of them that were revoked later. It reads a row for each hour and one
// for each revoked rating, because an agent may have hundreds of thousands of ratings. Buckets begin and end at whole
// hours.
const liveByHour = `
	select k.chain_id, k.token_id, x.bucket, x.n
	from unnest($1::bigint[], $2::numeric[], $3::timestamptz[], $4::timestamptz[]) as k(chain_id, token_id, begins, ends)
	cross join lateral (
		select date_trunc($5, y.time, 'UTC') as bucket, sum(y.n)::bigint as n from (
			select case when h.hour > 0 then to_timestamp(h.hour * 3600) end as time, h.began as n from hours h
			where h.chain_id = k.chain_id and h.series = 2 and h.token_id = k.token_id
			union all
			select b.time, -1 from feedback f left join blocks b on (b.chain_id, b.number) = (f.chain_id, f.block)
			where f.chain_id = k.chain_id and f.token_id = k.token_id and f.revoked_block is not null) y
		where y.time is null or y.time >= k.begins and y.time < k.ends
		group by 1) x`

// readCounts counts for each bucket the ratings that are live at a block, or their clients. args[2] MUST be the block,
// which liveByHour does not take.
func (f SeriesFilter) readCounts(ctx context.Context, tx pgx.Tx, byKey map[column.AgentKey]*Series, block int64,
	args []any) error {
	if f.Measure == MeasureRatings && f.Tag == nil && block == chaindb.Everything {
		return addCounts(ctx, tx, byKey, liveByHour, slices.Delete(args, 2, 3))
	}
	what, tag := "count(*)", ""
	if f.Measure == MeasureReviewers {
		what = "count(distinct f.client)"
	}
	if f.Tag != nil {
		hash := column.Keccak(*f.Tag)
		args = append(args, hash[:])
		tag = " and f.tag1 = (select id from tags where hash = $7)"
	}
	return addCounts(ctx, tx, byKey, `
		select k.chain_id, k.token_id, x.bucket, x.n
		from unnest($1::bigint[], $2::numeric[], $4::timestamptz[], $5::timestamptz[]) as k(chain_id, token_id, begins, ends)
		cross join lateral (
			select date_trunc($6, b.time, 'UTC') as bucket, `+what+` as n
			from feedback f left join blocks b on (b.chain_id, b.number) = (f.chain_id, f.block)
			where f.chain_id = k.chain_id and f.token_id = k.token_id and f.block <= $3
				and (f.revoked_block is null or f.revoked_block > $3)`+tag+`
				and (b.time is null or b.time >= k.begins and b.time < k.ends)
			group by 1) x`, args)
}

// addCounts sets the points that a statement counts.
func addCounts(ctx context.Context, tx pgx.Tx, byKey map[column.AgentKey]*Series, sql string, args []any) error {
	rows, _ := tx.Query(ctx, sql, args...)
	var k column.AgentKey
	var bucket *time.Time
	var n int64
	_, err := pgx.ForEachRow(rows, []any{&k.Chain, (*column.TokenNum)(&k.Token), &bucket, &n}, func() error {
		s := byKey[k]
		if bucket == nil {
			s.Undated = n
		} else if i := s.place(bucket.UTC()); i >= 0 {
			s.Points[i].Count = n
		}
		return nil
	})
	return err
}

// finalRow is the last final score of a bucket.
type finalRow struct {
	bucket *time.Time // nil: before the first bucket
	score  Score
	// afterPruned says that other final scores between this one and the last of the bucket before may have been pruned.
	afterPruned bool
}

// readScores sets the final score at the end of each bucket. A final score is stored where it differs from the one
// before, so that one lasts until the next.
func readScores(ctx context.Context, tx pgx.Tx, byKey map[column.AgentKey]*Series, args []any) error {
	rows, _ := tx.Query(ctx, `
		select k.chain_id, k.token_id, x.bucket, x.epoch, x.status, x.score, x.low, x.high, coalesce(x.first <= d.position, false)
		from unnest($1::bigint[], $2::numeric[], $4::timestamptz[], $5::timestamptz[]) as k(chain_id, token_id, begins, ends)
		cross join lateral (
			select distinct on (y.bucket) y.*, min(y.run) over (partition by y.bucket) as first from (
				select case when r.block_time >= k.begins then date_trunc($6, r.block_time, 'UTC') end as bucket,
					s.run, r.epoch, s.status, s.score, s.low, s.high
				from trust_finals s join trust_runs r on (r.chain_id, r.run) = (s.chain_id, s.run)
				where s.chain_id = k.chain_id and s.token_id = k.token_id and r.closed_at is not null and r.boundary <= $3
					and r.block_time < k.ends) y
			order by y.bucket, y.run desc) x
		left join cursors d on (d.job, d.chain_id, d.part) = ('pruned finals', k.chain_id, 0)
		order by k.chain_id, k.token_id, x.bucket nulls first`, args...)
	found := map[column.AgentKey][]finalRow{}
	var k column.AgentKey
	var r finalRow
	into := []any{&k.Chain, (*column.TokenNum)(&k.Token), &r.bucket, &r.score.Epoch, &r.score.Status, &r.score.Score,
		&r.score.Low, &r.score.High, &r.afterPruned}
	_, err := pgx.ForEachRow(rows, into, func() error {
		found[k] = append(found[k], r)
		return nil
	})
	for k, s := range byKey {
		s.carry(found[k])
	}
	return err
}

// carry sets the scores of all buckets: that of a row in its bucket and in those after it, up to the next row. Between
// two rows of which others may have been pruned nothing is carried.
func (s *Series) carry(rows []finalRow) {
	for i, r := range rows {
		first, end := 0, len(s.Points)
		if r.bucket != nil {
			first = max(0, s.place(r.bucket.UTC()))
			s.Points[first].Score = &r.score
			first++
		}
		if i+1 < len(rows) {
			if end = max(0, s.place(rows[i+1].bucket.UTC())); rows[i+1].afterPruned {
				continue
			}
		}
		for n := first; n < end; n++ {
			s.Points[n].Score, s.Points[n].Carried = &r.score, true
		}
	}
}
