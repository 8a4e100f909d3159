package subgraphdb

import "strings"

// Series: what happened over time. Points are the events themselves, aggregations their sums by hour or day up to the end
// of each, as the subgraph has them. Both are computed from the tables of events when they are asked for, so that a
// reorganization needs no care of its own.

// pointOf returns the SQL of the identity of an event: its place on the chain as a number, which is the id of its point, and
// its time in seconds.
func pointOf(block, log string) string {
	return block + "::bigint * 1000000 + " + log + " as id, " + secondsOf("b") + " as seconds"
}

// joinTime returns the join of the block of an event, of which a table may have rows of other chains.
func joinTime(block string) string {
	return " left join blocks b on (b.chain_id, b.number) = ($1, " + block + ")"
}

// registrationPoints are the registrations.
func registrationPoints() string {
	return "select a.token_id, a.registered_block as block, " + pointOf("a.registered_block", "a.registered_log") +
		" from agents a" + joinTime("a.registered_block") + " where a.chain_id = $1"
}

// feedbackPoints are ratings and revocations.
func feedbackPoints() string {
	value := "f.value * " + scaleOf("f.decimals")
	return "select f.token_id, f.block, " + pointOf("f.block", "f.log_index") + ", " + value + " as value, " + value +
		" as delta, " + value + " as counted, false as revocation, 1 as created, 0 as revoked from feedback f" + joinTime("f.block") +
		" where f.chain_id = $1 union all select f.token_id, f.revoked_block, " + pointOf("f.revoked_block", "f.revoked_log") +
		", " + value + ", -(" + value + "), 0, true, 0, 1 from feedback f" + joinTime("f.revoked_block") +
		" where f.chain_id = $1 and f.revoked_block is not null"
}

// validationPoints are requests and answers of contracts on the allow-list.
func validationPoints() string {
	const trusted = " join chains c on c.chain_id = q.chain_id and q.contract = any(c.validations)"
	return "select q.token_id, q.block, " + pointOf("q.block", "q.log_index") + ", 0 as score, 1 as requests, 0 as responses" +
		" from validation_requests q" + trusted + joinTime("q.block") + " where q.chain_id = $1 union all select q.token_id, x.block, " +
		pointOf("x.block", "x.log_index") + ", x.response, 0, 1 from validation_requests q" + trusted +
		" join validation_responses x on (x.chain_id, x.contract, x.request_hash) = (q.chain_id, q.contract, q.request_hash)" +
		joinTime("x.block") + " where q.chain_id = $1"
}

// micros returns the SQL of a time in microseconds, as Timestamp has it.
func micros(seconds string) string { return "(" + seconds + " * 1000000)" }

// point returns the entity of points.
func point(name, points string, fields ...Field) Entity {
	return Entity{
		Name: name, Key: Key{Parts: []Part{{FormNumber, "{n}.id"}}}, From: "(" + points + ") {n}", Where: "$1::bigint > 0",
		Changed: "{n}.block",
		Fields: append([]Field{
			{Name: "id", Type: Int8, SQL: "{n}.id"},
			{Name: "timestamp", Type: Timestamp, SQL: micros("{n}.seconds")},
			{Name: "protocol", To: "Protocol", Key: []string{}},
			{Name: "agent", To: "Agent", Key: agentKey("{n}")},
		}, fields...),
	}
}

// bucket is the SQL of the start of the hour or day of a time in seconds. Statements put the length for @seconds@.
func bucket(seconds string) string { return "(" + seconds + " / @seconds@ * @seconds@)" }

// sum is a sum of an aggregation: the field, its type and what is added up of points.
type sum struct {
	name, of string
	kind     Type
}

// aggregation returns the entity of sums of points up to the end of each hour or day, of each agent or of all. The hour or
// day of the newest block is shown where a statement puts true for @all@.
func aggregation(name, points string, byAgent bool, sums ...sum) Entity {
	group, partition := "", ""
	fields := []Field{
		{Name: "id", Type: Int8, SQL: "{g}.id"},
		{Name: "timestamp", Type: Timestamp, SQL: micros("{g}.bucket")},
		{Name: "protocol", To: "Protocol", Key: []string{}},
	}
	key := Key{Parts: []Part{{FormNumber, "{g}.id"}}}
	if byAgent {
		group, partition = ", x.token_id", "partition by x.token_id "
		fields = append(fields, Field{Name: "agent", To: "Agent", Key: agentKey("{g}")})
	}
	var columns strings.Builder
	for _, s := range sums {
		columns.WriteString(", sum(sum(" + s.of + ")) over w as " + s.name)
		fields = append(fields, Field{Name: s.name, Type: s.kind, SQL: "{g}." + s.name})
	}
	start := bucket("x.seconds")
	return Entity{
		Name: name, Aggregation: true, Key: key,
		From: "(select " + start + " as bucket" + group + ", max(x.id) as id, max(x.block) as block" + columns.String() + " from (" +
			points + ") x group by " + start + group + " window w as (" + partition + "order by " + start + ")) {g}",
		Where: "(@all@ or {g}.bucket < (select " + bucket("coalesce(extract(epoch from c.cursor_time)::bigint, 0)") +
			" from chains c where c.chain_id = $1))",
		Changed: "{g}.block", Fields: fields,
	}
}

// series returns the entities over time.
func series() (out []Entity) {
	ratings := []sum{{"feedbackCreated", "x.created", BigInt}, {"feedbackRevoked", "x.revoked", BigInt},
		{"valueSum", "x.counted", BigDecimal}, {"valueDeltaSum", "x.delta", BigDecimal}}
	validations := []sum{{"validationRequests", "x.requests", BigInt}, {"validationResponses", "x.responses", BigInt},
		{"scoreSum", "x.score", BigInt}}
	field := func(name string, kind Type, sql string) Field { return Field{Name: name, Type: kind, SQL: sql} }
	return []Entity{
		point("AgentRegistrationPoint", registrationPoints()),
		point("FeedbackPoint", feedbackPoints(), field("value", BigDecimal, "{n}.value"),
			field("valueDelta", BigDecimal, "{n}.delta"), field("isRevocation", Boolean, "{n}.revocation"),
			field("createdCount", BigInt, "{n}.created"), field("revokedCount", BigInt, "{n}.revoked"),
			field("valueForSum", BigDecimal, "{n}.counted")),
		point("ValidationPoint", validationPoints(), field("score", Int, "{n}.score::integer"),
			field("isRequest", Boolean, "({n}.requests = 1)"), field("isResponse", Boolean, "({n}.responses = 1)"),
			field("requestCount", BigInt, "{n}.requests"), field("responseCount", BigInt, "{n}.responses"),
			field("responseScore", BigInt, "{n}.score")),
		aggregation("ProtocolAgentStats", registrationPoints(), false, sum{"agentRegistrations", "1", Int8}),
		aggregation("ProtocolFeedbackStats", feedbackPoints(), false, ratings...),
		aggregation("AgentFeedbackStats", feedbackPoints(), true, ratings...),
		aggregation("ProtocolValidationStats", validationPoints(), false, validations...),
		aggregation("AgentValidationStats", validationPoints(), true, validations...),
	}
}
