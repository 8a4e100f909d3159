package scoredb

import "repute"

// Totals of the newest scores of a chain by status are kept in cursors, because counting millions of scores takes
// seconds. The statements that store or delete scores change them too, so that a crash leaves both changes or neither,
// and lockScores keeps two transactions from changing them at once.

// Jobs of the rows in cursors whose position is how many agents of a chain have a score with a status.
const (
	ratedTotal = "rated agents"
	thinTotal  = "thin agents"
)

// addTotals returns the SQL that changes the totals of chain $1 by the rows of a part of a statement. Its columns old
// and new are the status of an agent's score before and after the statement, null for no score. lockScores MUST have
// been called: the statement changes the totals by what it saw before.
func addTotals(changed string) string {
	return `
	insert into cursors as c (job, chain_id, position)
	select job, $1::bigint, added from (
		select t.job, count(*) filter (where s.new = t.status) - count(*) filter (where s.old = t.status) as added
		from ` + changed + ` s cross join (values ('` + string(repute.Rated) + "', '" + ratedTotal + "'), ('" +
		string(repute.Thin) + "', '" + thinTotal + `')) t(status, job)
		group by t.job) n
	where added <> 0
	on conflict (job, chain_id, part) do update set position = c.position + excluded.position`
}

// totalOf returns the SQL of a total of chain $1.
func totalOf(job string) string {
	return "coalesce((select position from cursors where (job, chain_id, part) = ('" + job + "', $1, 0)), 0)"
}
