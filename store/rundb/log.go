package rundb

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
)

// LogPlace is a place in an agent's log. The zero value is its beginning.
type LogPlace struct {
	At     time.Time
	Root   string
	Number int64 // of the event
}

// LoggedRun is one attempt of a run that ended. It stays as it is whatever becomes of the
// run later.
type LoggedRun struct {
	LogPlace
	Run     string
	Attempt int
	Status  repute.RunStatus
	// Settled: nothing can come before it in the log any more.
	Settled bool
}

// logSettles is after how long no transaction is open any more that ends a run.
const logSettles = "20 seconds"

// ReadLog lists the attempts of an agent's runs that ended, the oldest first, after a place.
func ReadLog(ctx context.Context, db *store.DB, slug string, after LogPlace, most int) ([]LoggedRun, error) {
	rows, err := db.Readers().Query(ctx, `
		select e.at, e.root_id, e.number, e.run_id, coalesce((e.data->>'attempt')::int, 1), coalesce(e.data->>'status', ''),
			e.at < now() - interval '`+logSettles+`'
		from run_events e join runs r on r.id = e.run_id
		where e.kind = 'run.finished' and r.slug = $1 and ($2::timestamptz is null or (e.at, e.root_id, e.number) > ($2, $3, $4))
		order by e.at, e.root_id, e.number limit $5`, store.CleanText(slug), store.MaybeTime(after.At), store.CleanText(after.Root), after.Number, most)
	if err != nil {
		return nil, store.Failed("read the log of an agent", err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (l LoggedRun, err error) {
		err = row.Scan(&l.At, &l.Root, &l.Number, &l.Run, &l.Attempt, &l.Status, &l.Settled)
		l.At = l.At.UTC()
		return l, err
	})
	return list, store.Failed("read the log of an agent", err)
}
