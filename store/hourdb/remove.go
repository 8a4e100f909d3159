package hourdb

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"repute/store"
)

// all is the block that all events are above.
const all = -1

// takeOut returns the SQL that takes the rows of relation gone out of hours. What has no event left is deleted.
func takeOut() string {
	const same = `(h.chain_id, h.series, h.token_id, h.hour) = ($1, g.series, g.token_id, g.hour)`
	const emptied = `(h.began, h.ended) = (g.began, g.ended)`
	return `dropped as (delete from hours h using gone g where ` + same + ` and ` + emptied + `)
		update hours h set began = h.began - g.began, ended = h.ended - g.ended, sum = h.sum - g.sum, net = h.net - g.net
		from gone g where ` + same + ` and not ` + emptied
}

// Rewind takes out the events above a block of agents, which MUST be all agents with such events. Their rows and the
// blocks MUST still be stored.
func Rewind(ctx context.Context, tx pgx.Tx, chainID uint64, agents string, above uint64) error {
	_, err := tx.Exec(ctx, "with gone as ("+addedUp()+"), "+takeOut(), chainID, agents, above)
	return store.Failed("rewind hours", err)
}

// Forget takes out the events of agents, a numeric[] parameter. The rows of agents and the blocks MUST still be stored,
// with the times by which the events were added.
func Forget(ctx context.Context, tx pgx.Tx, chainID uint64, agents string) error {
	rows, _ := tx.Query(ctx, fmt.Sprintf(`
		with taken as (
			delete from hours where ctid = any(array(select o.id from unnest($2::numeric[]) u(t)
				cross join unnest(array[%d, %d]::smallint[]) s(series) cross join lateral (
				select ctid id from hours where chain_id = $1 and series = s.series and token_id = u.t offset 0) o))
			returning series, hour, began, ended, sum, net
		), gone as (
			select e.series, %s as token_id, e.hour, sum(e.began)::bigint as began, sum(e.ended)::bigint as ended,
				sum(e.sum) as sum, sum(e.net) as net
			from (select * from taken union all
				select x.series, %s, x.began, x.ended, x.sum, x.net from (%s) x
				left join blocks b on b.chain_id = $1 and b.number = x.block) e group by 1, 2, 3
		), %s returning h.series, h.hour`, Ratings, Validations, Whole, hourOfBlock, registered(), takeOut()),
		chainID, agents, all)
	var touchedSeries, touchedHours []int64
	var series, hour int64
	_, err := pgx.ForEachRow(rows, []any{&series, &hour}, func() error {
		touchedSeries, touchedHours = append(touchedSeries, series), append(touchedHours, hour)
		return nil
	})
	if err != nil || len(touchedHours) == 0 {
		return store.Failed("take agents out of hours", err)
	}
	return setOldest(ctx, tx, chainID, agents, touchedSeries, touchedHours)
}

// setOldest finds the oldest event of rows of the whole chain that lost events of agents. It is not older than the one
// before.
func setOldest(ctx context.Context, tx pgx.Tx, chainID uint64, agents string, series, hours []int64) error {
	_, err := tx.Exec(ctx, fmt.Sprintf(`
		update hours h set oldest = case h.series when %d then (
			select %s from agents a left join blocks b on b.chain_id = $1 and b.number = a.registered_block
			where a.chain_id = $1 and a.registered_block >= h.oldest / %d and %s = h.hour and a.token_id <> all($2::numeric[])
			order by a.registered_block, a.registered_log limit 1)
		else (
			select y.oldest from hours y where y.chain_id = $1 and y.series = h.series and y.hour = h.hour and y.token_id <> %[5]s
			order by y.oldest limit 1) end
		from unnest($3::bigint[], $4::bigint[]) u(s, h)
		where h.chain_id = $1 and h.series = u.s and h.token_id = %[5]s and h.hour = u.h`,
		Registrations, placeOf("a.registered_block", "a.registered_log"), logs, hourOfBlock, Whole),
		chainID, agents, series, hours)
	return store.Failed("find oldest events of hours", err)
}

// Recount computes the hours of agents, a numeric[] parameter, again from their rows.
func Recount(ctx context.Context, tx pgx.Tx, chainID uint64, agents string) error {
	if err := Forget(ctx, tx, chainID, agents); err != nil {
		return err
	}
	return add(ctx, tx, chainID, agents)
}

// add adds the events of agents that have no hours.
func add(ctx context.Context, tx pgx.Tx, chainID uint64, agents string) error {
	_, err := tx.Exec(ctx, insert+" select $1::bigint, g.* from ("+addedUp()+") g"+addTo, chainID, agents, all)
	return store.Failed("add agents to hours", err)
}

// Retime calls change, which may give blocks another time, and moves the events of these blocks to their new hours.
func Retime(ctx context.Context, tx pgx.Tx, chainID uint64, blocks []uint64, change func() error) error {
	var agents string
	err := tx.QueryRow(ctx, `
		select coalesce(array_agg(distinct e.token_id), '{}')::text from unnest($2::bigint[]) u(n)
		cross join lateral (select token_id from events where chain_id = $1 and block = u.n and token_id is not null offset 0) e`,
		chainID, blocks).Scan(&agents)
	if err != nil {
		return store.Failed("find events of blocks", err)
	}
	if err := Forget(ctx, tx, chainID, agents); err != nil {
		return err
	}
	if err := change(); err != nil {
		return err
	}
	return add(ctx, tx, chainID, agents)
}
