package verifydb

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/column"
	"repute/store/hourdb"
)

// WrongTotal is a stored count or sum that differs from the one computed from the stored events.
type WrongTotal struct {
	Agent repute.TokenID
	Table string
	Key   string // of the row: the column of agents, the series and hour, otherwise client, tags and decimals
	// Stored and Right are the stored value and the computed one; "none": there is no row.
	Stored, Right string
}

// Parts of the comparisons: $1 is the chain, and the agents are those in ($2, $3], a null $3 for all the rest.
const (
	liveRatings = `feedback where chain_id = $1 and revoked_block is null and ` + inPart
	inPart      = `token_id > $2::numeric and ($3::numeric is null or token_id <= $3)`
)

// totals are the comparisons of WrongTotals, one for each table.
func totals() []totalQuery {
	counts := func(table, live, gone, clients, answers string) string {
		return `select a.token_id, v.key, v.n::text as value from agents a ` + table + ` cross join lateral (values
			('feedback', ` + live + `), ('revoked', ` + gone + `), ('clients', ` + clients + `), ('validations', ` + answers + `)
			) v(key, n) where a.chain_id = $1 and a.` + inPart
	}
	return []totalQuery{
		{"agents", counts("", "a.feedback", "a.revoked", "a.clients", "a.validations"), counts(`
			left join (select token_id, count(*) filter (where revoked_block is null) live,
					count(*) filter (where revoked_block is not null) gone,
					count(distinct client) filter (where revoked_block is null) clients
				from feedback where chain_id = $1 and `+inPart+` group by 1) f using (token_id)
			left join (select r.token_id, count(*) n from validation_requests r join chains c on c.chain_id = r.chain_id
				where r.chain_id = $1 and r.`+inPart+` and r.contract = any(c.validations) and exists (
					select from validation_responses v where v.chain_id = $1 and v.contract = r.contract
						and v.request_hash = r.request_hash) group by 1) c using (token_id)`,
			"coalesce(f.live, 0)", "coalesce(f.gone, 0)", "coalesce(f.clients, 0)", "coalesce(c.n, 0)")},
		{"sums",
			`select token_id, concat_ws(' ', encode(client, 'hex'), tag1, tag2, decimals) as key, n || ' ' || sum as value
				from sums where chain_id = $1 and ` + inPart,
			`select token_id, concat_ws(' ', encode(client, 'hex'), tag1, tag2, decimals), count(*) || ' ' || sum(value)
				from ` + liveRatings + ` group by token_id, client, tag1, tag2, decimals`},
		{"agent_sums", `select token_id, concat_ws(' ', tag1, tag2, decimals) as key, n || ' ' || sum as value
				from agent_sums where chain_id = $1 and ` + inPart,
			`select token_id, concat_ws(' ', tag1, tag2, decimals), count(*) || ' ' || sum(value)
				from ` + liveRatings + ` group by token_id, tag1, tag2, decimals`},
		{"votes",
			`select token_id, concat_ws(' ', encode(client, 'hex'), tag1) as key, concat_ws(' ', idx, value, decimals) as value
				from votes where chain_id = $1 and ` + inPart,
			`select distinct on (token_id, client, tag1) token_id, concat_ws(' ', encode(client, 'hex'), tag1),
					concat_ws(' ', idx, value, decimals)
				from ` + liveRatings + ` order by token_id, client, tag1, idx desc`},
		{"agent_votes", `select token_id, concat_ws(' ', tag1, value, decimals) as key, n::text as value
				from agent_votes where chain_id = $1 and ` + inPart,
			`select token_id, concat_ws(' ', tag1, value, decimals), count(*)::text
				from (select distinct on (token_id, client, tag1) * from ` + liveRatings + `
					order by token_id, client, tag1, idx desc) v group by token_id, tag1, value, decimals`},
	}
}

// totalQuery has two queries with the columns token_id, key and value: what a table stores, and what follows from the
// events.
type totalQuery struct{ table, stored, right string }

// sql returns the statement that selects up to $4 numbers that differ.
func (q totalQuery) sql() string {
	return `select token_id, key, coalesce(s.value, 'none'), coalesce(r.value, 'none')
		from (` + q.stored + `) s full join (` + q.right + `) r(token_id, key, value) using (token_id, key)
		where s.value is distinct from r.value order by token_id, key limit $4`
}

// totalsPart is how many agents one call of WrongTotals compares: a statement then reads some ten thousand ratings.
const totalsPart = 2000

// WrongTotals compares the totals of the agents after a token id, nil for the first ones, with the stored events, on
// one snapshot. It returns up to limit that are wrong for each table, and where to continue; nil: all were compared.
func WrongTotals(ctx context.Context, db *store.DB, chainID uint64, after *repute.TokenID,
	limit int) (wrong []WrongTotal,
	next *repute.TokenID, err error) {
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err = db.InTx(ctx, options, "compare totals", func(tx pgx.Tx) error {
		// An agent can have hundreds of thousands of ratings, and no caller of a route waits.
		if _, err := tx.Exec(ctx, "set local statement_timeout = '120s'"); err != nil {
			return err
		}
		from := "-1"
		if after != nil {
			from = after.Dec()
		}
		var to *string
		err := tx.QueryRow(ctx, `select max(token_id)::text from (select token_id from agents
			where chain_id = $1 and token_id > $2::numeric order by token_id limit $3) a having count(*) = $3`,
			chainID, from, totalsPart).Scan(&to)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		for _, q := range totals() {
			some, err := readWrongTotals(ctx, tx, q, chainID, from, to, limit)
			if err != nil {
				return fmt.Errorf("%s: %w", q.table, err)
			}
			wrong = append(wrong, some...)
		}
		some, err := readWrongHours(ctx, tx, chainID, from, to, limit)
		if err != nil {
			return fmt.Errorf("hours: %w", err)
		}
		wrong = append(wrong, some...)
		if to != nil {
			next = new(repute.TokenID)
			return next.SetFromDecimal(*to)
		}
		return nil
	})
	return wrong, next, err
}

// readWrongHours compares the hours of the agents after one token id up to another.
func readWrongHours(ctx context.Context, tx pgx.Tx, chainID uint64, from string, to *string,
	limit int) ([]WrongTotal, error) {
	var agents *string
	err := tx.QueryRow(ctx, "select array_agg(token_id)::text from agents where chain_id = $1 and "+inPart,
		chainID, from,
		to).Scan(&agents)
	if err != nil || agents == nil {
		return nil, err
	}
	different, err := hourdb.Differences(ctx, tx, chainID, *agents, limit)
	wrong := make([]WrongTotal, len(different))
	for i, d := range different {
		wrong[i] = WrongTotal{d.Agent, "hours", fmt.Sprintf("%d %d", d.Series, d.Hour), d.Stored, d.Right}
	}
	return wrong, err
}

// readWrongTotals compares one table.
func readWrongTotals(ctx context.Context, tx pgx.Tx, q totalQuery, chainID uint64, from string, to *string,
	limit int) ([]WrongTotal, error) {
	rows, _ := tx.Query(ctx, q.sql(), chainID, from, to, limit)
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (w WrongTotal, err error) {
		w.Table = q.table
		return w, row.Scan((*column.TokenNum)(&w.Agent), &w.Key, &w.Stored, &w.Right)
	})
}
