package subgraphdb

import (
	"fmt"
	"strings"

	"repute/store/hourdb"
)

// Series: what happened over time. Points are the events themselves, aggregations their sums by hour or day up to the
// end of each, as the subgraph has them. Points are computed from the tables of events when they are asked for and read
// in the order of an index by block. Aggregations add up the stored hours of package hourdb.

// events is a kind of event of a table that points have.
type events struct {
	// from are the tables, and chain is the column of the chain in them.
	from, chain string
	// token, block and log say which agent an event belongs to and where on the chain it is.
	token, block, log string
	// values are what a point has, by name.
	values []value
}

// value is a column of a series.
type value struct{ name, sql string }

// registrations are the registrations of agents.
func registrations() []events {
	return []events{{from: "agents a", chain: "a.chain_id", token: "a.token_id", block: "a.registered_block",
		log: "a.registered_log"}}
}

// ratings are ratings and revocations.
func ratings() []events {
	one := "f.value * " + hourdb.ScaleOf("f.decimals")
	return []events{
		{from: "feedback f", chain: "f.chain_id", token: "f.token_id", block: "f.block", log: "f.log_index",
			values: []value{{"value", one}, {"delta", one}, {"counted", one}, {"revocation", "false"}, {"created", "1"},
				{"revoked", "0"}}},
		{from: "feedback f", chain: "f.chain_id", token: "f.token_id", block: "f.revoked_block", log: "f.revoked_log",
			values: []value{{"value", one}, {"delta", "-(" + one + ")"}, {"counted", "0::numeric"},
				{"revocation", "true"}, {"created", "0"}, {"revoked", "1"}}},
	}
}

// validations are requests and answers of contracts on the allow-list.
func validations() []events {
	const trusted = "validation_requests q join chains c on c.chain_id = q.chain_id and q.contract = any(c.validations)"
	return []events{
		{from: trusted, chain: "q.chain_id", token: "q.token_id", block: "q.block", log: "q.log_index",
			values: []value{{"score", "0"}, {"requests", "1"}, {"responses", "0"}}},
		{from: trusted +
			" join validation_responses x on (x.chain_id, x.contract, x.request_hash) = (q.chain_id, q.contract, q.request_hash)",
			chain: "q.chain_id", token: "q.token_id", block: "x.block", log: "x.log_index",
			values: []value{{"score", "x.response"}, {"requests", "0"}, {"responses", "1"}}},
	}
}

// listed returns the SQL of columns, each after a comma.
func listed(values []value) string {
	var b strings.Builder
	for _, v := range values {
		b.WriteString(", " + v.sql + " as " + v.name)
	}
	return b.String()
}

// pointsOf returns the SQL of events of all chains, one row each. An event that did not happen has no block. There is
// no condition on the rows, because Postgres reads a union in the order of indexes only if its parts have none.
func pointsOf(kinds []events) string {
	var all []string
	for _, e := range kinds {
		all = append(all, "select "+e.chain+", "+e.token+" as token_id, "+e.block+" as block, "+e.log+" as log"+
			listed(e.values)+" from "+e.from)
	}
	return strings.Join(all, " union all ")
}

// placeOf returns the SQL of the place of an event on the chain as a number, which is the id of its point.
func placeOf(r string) string { return "(" + r + ".block::bigint * 1000000 + " + r + ".log)" }

// micros returns the SQL of a time in microseconds, as Timestamp has it.
func micros(seconds string) string { return "(" + seconds + " * 1000000)" }

// point returns the entity of points.
func point(name string, kinds []events, fields ...Field) Entity {
	return Entity{
		Name: name, Key: Key{Parts: []Part{{FormNumber, placeOf("{n}")}}},
		From:  "(" + pointsOf(kinds) + ") {n}" + joinBlock("{b}", "{n}.block"),
		Where: "{n}.chain_id = $1 and {n}.block is not null", Changed: "{n}.block",
		Fields: append([]Field{
			{Name: "id", Type: Int8, SQL: placeOf("{n}"), Order: []string{"{n}.block", "{n}.log"}},
			{Name: "timestamp", Type: Timestamp, SQL: micros(secondsOf("{b}")), Block: "{n}.block"},
			{Name: "protocol", To: "Protocol", Key: []string{}},
			{Name: "agent", To: "Agent", Key: agentKey("{n}")},
		}, fields...),
	}
}

// sum is a field of an aggregation: its name and type, and the column of hours that is added up.
type sum struct {
	name, of string
	kind     Type
}

// Statements put the number of hours of the interval for @hours@. They put true for @all@ where the hour or day that is
// not over is shown.

// hoursOf returns the SQL of the hours of a series, of the whole chain or of each agent.
func hoursOf(s hourdb.Series, byAgent bool) string {
	sign := "="
	if byAgent {
		sign = "<>"
	}
	return fmt.Sprintf("hours h where h.chain_id = $1 and h.series = %d and h.token_id %s %s", s, sign, hourdb.Whole)
}

// aggregation returns the entity of sums of a series up to the end of each hour or day, of each agent or of all.
func aggregation(name string, s hourdb.Series, byAgent bool, sums ...sum) Entity {
	fields := []Field{
		{Name: "id", Type: Int8, SQL: "{g}.id"},
		{Name: "timestamp", Type: Timestamp, SQL: micros("({g}.start * 3600)"), Order: []string{"{g}.hour", "{g}.id"},
			Hour: "{g}.hour"},
		{Name: "protocol", To: "Protocol", Key: []string{}},
	}
	if byAgent {
		fields = append(fields, Field{Name: "agent", To: "Agent", Key: agentKey("{g}")})
	}
	var columns strings.Builder
	for _, one := range sums {
		columns.WriteString(", sum(sum(h." + one.of + ")) over w as \"" + one.name + "\"")
		fields = append(fields, Field{Name: one.name, Type: one.kind, SQL: "{g}.\"" + one.name + "\"", Sum: true})
	}
	const start = "h.hour / @hours@"
	e := Entity{
		Name: name, Aggregation: true, Key: Key{Parts: []Part{{FormNumber, "{g}.id"}}},
		From: "(select h.token_id, " + start + " * @hours@ as start, min(h.hour) as hour, min(h.oldest) as id" +
			columns.String() +
			" from " + hoursOf(s, byAgent) + " @some@ group by h.token_id, " + start +
			" window w as (partition by h.token_id order by " + start + ")) {g}",
		Where: `(@all@ or {g}.start < (select coalesce(extract(epoch from c.cursor_time)::bigint / 3600 / @hours@ * @hours@, 0)
			from chains c where c.chain_id = $1))`,
		Changed: "{g}.start", Fields: fields,
	}
	if byAgent {
		e.Rows = "(select h.token_id, " + start + " * @hours@ as start, h.hour, h.oldest as id from " +
			hoursOf(s, byAgent) +
			" and (@hours@ = 1 or not exists (select from hours o" +
			" where (o.chain_id, o.series, o.token_id) = (h.chain_id, h.series, h.token_id)" +
			" and o.hour >= h.hour / @hours@ * @hours@ and o.hour < h.hour))) {g}"
		e.RowKey = []string{"{g}.token_id", "{g}.start"}
	}
	return e
}

// series returns the entities over time.
func series() (out []Entity) {
	rated := []sum{{"feedbackCreated", "began", BigInt}, {"feedbackRevoked", "ended", BigInt},
		{"valueSum", "sum", BigDecimal}, {"valueDeltaSum", "net", BigDecimal}}
	validated := []sum{{"validationRequests", "began", BigInt}, {"validationResponses", "ended", BigInt},
		{"scoreSum", "sum", BigInt}}
	field := func(name string, kind Type, sql string) Field { return Field{Name: name, Type: kind, SQL: sql} }
	return []Entity{
		point("AgentRegistrationPoint", registrations()),
		point("FeedbackPoint", ratings(), field("value", BigDecimal, "{n}.value"),
			field("valueDelta", BigDecimal, "{n}.delta"), field("isRevocation", Boolean, "{n}.revocation"),
			field("createdCount", BigInt, "{n}.created"), field("revokedCount", BigInt, "{n}.revoked"),
			field("valueForSum", BigDecimal, "{n}.counted")),
		point("ValidationPoint", validations(), field("score", Int, "{n}.score::integer"),
			field("isRequest", Boolean, "({n}.requests = 1)"), field("isResponse", Boolean, "({n}.responses = 1)"),
			field("requestCount", BigInt, "{n}.requests"), field("responseCount", BigInt, "{n}.responses"),
			field("responseScore", BigInt, "{n}.score")),
		aggregation("ProtocolAgentStats", hourdb.Registrations, false, sum{"agentRegistrations", "began", Int8}),
		aggregation("ProtocolFeedbackStats", hourdb.Ratings, false, rated...),
		aggregation("AgentFeedbackStats", hourdb.Ratings, true, rated...),
		aggregation("ProtocolValidationStats", hourdb.Validations, false, validated...),
		aggregation("AgentValidationStats", hourdb.Validations, true, validated...),
	}
}
