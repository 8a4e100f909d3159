package hourdb

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store/column"
)

// Difference is an hour of an agent whose stored row differs from the stored events.
type Difference struct {
	Agent  repute.TokenID
	Series Series
	Hour   int64
	// Stored and Right are what began and ended and the two sums, as the row has them and as the events give them;
	// "none": there is no row.
	Stored, Right string
}

// Differences compares the hours of agents of a chain with what Recount would store, and returns up to limit that
// differ. agents is an array of token ids as Postgres writes it. The rows of the whole chain are not compared.
func Differences(ctx context.Context, tx pgx.Tx, chainID uint64, agents string, limit int) ([]Difference, error) {
	const numbers = "concat_ws(' ', began, ended, trim_scale(sum), trim_scale(net)) as numbers"
	rows, _ := tx.Query(ctx, fmt.Sprintf(`
		select token_id, series, hour, coalesce(s.numbers, 'none'), coalesce(r.numbers, 'none')
		from (select series, token_id, hour, %[1]s from hours where chain_id = $1 and token_id = any($2::numeric[])) s
		full join (select series, token_id, hour, %[1]s from (%[2]s) h where token_id <> %[3]s) r using (series, token_id, hour)
		where s.numbers is distinct from r.numbers order by token_id, series, hour limit $4`, numbers, addedUp(), Whole),
		chainID, agents, -1, limit)
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (d Difference, err error) {
		return d, row.Scan((*column.TokenNum)(&d.Agent), &d.Series, &d.Hour, &d.Stored, &d.Right)
	})
}
