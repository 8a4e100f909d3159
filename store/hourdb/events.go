package hourdb

import (
	"fmt"
	"strings"

	"repute"
)

// ScaleOf returns the SQL of 10 to the power of minus decimals, exactly: power of Postgres rounds.
func ScaleOf(decimals string) string {
	powers := []string{"1"}
	for n := range repute.MaxDecimals {
		powers = append(powers, "0."+strings.Repeat("0", n)+"1")
	}
	return "(array[" + strings.Join(powers, ", ") + "])[" + decimals + " + 1]"
}

// hourOfBlock is the SQL of the hour of the block in relation b.
const hourOfBlock = "coalesce(extract(epoch from b.time)::bigint / 3600, 0)"

// placeOf returns the SQL of placeAt.
func placeOf(block, log string) string {
	return block + " * " + fmt.Sprint(logs) + " + least(" + log + ", " + fmt.Sprint(logs-1) + ")"
}

// rowsAbove returns the SQL of the rows of a table of agents $2 of chain $1 whose block is above $3. Each agent is
// looked up through an index, whatever the statistics of the table say.
func rowsAbove(table, block string) string {
	return `unnest($2::numeric[]) u(t) cross join lateral (
		select * from ` + table + ` where chain_id = $1 and token_id = u.t and ` + block + ` > $3 offset 0)`
}

// registered returns the SQL of the registrations of agents $2 of chain $1 above block $3.
func registered() string {
	return fmt.Sprintf(`select %d as series, a.token_id, a.registered_block as block, a.registered_log as log, 1 as began,
		0 as ended, 0::numeric as sum, 0::numeric as net from %s a`, Registrations, rowsAbove("agents", "registered_block"))
}

// happened returns the SQL of all that hours count of agents $2 of chain $1 above block $3. The net sum of ratings is
// without revoked ones.
func happened() string {
	value := "f.value * " + ScaleOf("f.decimals")
	const trusted = "join chains c on c.chain_id = $1 and q.contract = any(c.validations)"
	return strings.Join([]string{registered(),
		fmt.Sprintf("select %d, f.token_id, f.block, f.log_index, 1, 0, %s, %s from %s f", Ratings, value, value,
			rowsAbove("feedback", "block")),
		fmt.Sprintf("select %d, f.token_id, f.revoked_block, f.revoked_log, 0, 1, 0, -%s from %s f", Ratings, value,
			rowsAbove("feedback", "revoked_block")),
		fmt.Sprintf("select %d, q.token_id, q.block, q.log_index, 1, 0, 0, 0 from %s q %s", Validations,
			rowsAbove("validation_requests", "block"), trusted),
		fmt.Sprintf(`select %d, q.token_id, x.block, x.log_index, 0, 1, x.response, 0 from unnest($2::numeric[]) u(t)
		cross join lateral (select * from validation_requests where chain_id = $1 and token_id = u.t offset 0) q %s
		cross join lateral (select * from validation_responses where chain_id = $1 and contract = q.contract
			and request_hash = q.request_hash and block > $3 offset 0) x`, Validations, trusted)}, "\n\t\tunion all ")
}

// addedUp returns the SQL of rows of hours: what happened, added up for each agent and for the whole chain.
func addedUp() string {
	return fmt.Sprintf(`select e.series, coalesce(e.token_id, %s) as token_id, e.hour, min(e.place) as oldest,
		sum(e.began)::bigint as began, sum(e.ended)::bigint as ended, sum(e.sum) as sum, sum(e.net) as net
	from (select x.*, %s as place, %s as hour from (%s) x left join blocks b on b.chain_id = $1 and b.number = x.block) e
	group by grouping sets ((e.series, e.token_id, e.hour), (e.series, e.hour))
	having e.series <> %d or grouping(e.token_id) = 1`, Whole, placeOf("x.block", "x.log"), hourOfBlock, happened(),
		Registrations)
}
