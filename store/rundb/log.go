package rundb

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/column"
)

// LogPlace is a position in an agent's log. The zero value is its beginning.
type LogPlace struct {
	// At is the time of the event that ended the attempt.
	At time.Time
	// Root is the id of the root run.
	Root string
	// Number is the number of the event within the root run.
	Number int64
}

// LoggedRun is one attempt of a run that ended. It never changes, whatever becomes of the run
// later.
type LoggedRun struct {
	LogPlace
	// Run is the id of the run.
	Run string
	// Attempt is the number of the attempt, from 1.
	Attempt int
	// Status is the one with which the attempt ended.
	Status repute.RunStatus
	// Settled says that no entry can be added before this one any more.
	Settled bool
}

// logSettles is the age after which no transaction that ends a run can still be open.
const logSettles = "20 seconds"

// ReadLog returns the ended attempts of an agent's runs after a position, the oldest first.
func ReadLog(ctx context.Context, db *store.DB, slug string, after LogPlace, most int) ([]LoggedRun, error) {
	rows, _ := db.Readers().Query(ctx, `
		select e.at, e.root_id, e.number, e.run_id, coalesce((e.data->>'attempt')::int, 1), coalesce(e.data->>'status', ''),
			e.at < now() - interval '`+logSettles+`'
		from run_events e join runs r on r.id = e.run_id
		where e.kind = 'run.finished' and r.slug = $1 and ($2::timestamptz is null or (e.at, e.root_id, e.number) > ($2,
			$3, $4))
		order by e.at, e.root_id, e.number limit $5`, column.CleanText(slug), column.MaybeTime(after.At), column.CleanText(after.Root), after.Number, most)
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (l LoggedRun, err error) {
		err = row.Scan(&l.At, &l.Root, &l.Number, &l.Run, &l.Attempt, &l.Status, &l.Settled)
		l.At = l.At.UTC()
		return l, err
	})
	return list, store.Failed("read the log of an agent", err)
}
