package subgraphdb

import "strings"

// Series: what happened over time. Points are the events themselves, aggregations their sums by hour or day up to the end
// of each, as the subgraph has them. Both are computed from the tables of events when they are asked for, so that a
// reorganization needs no care of its own. Points are read in the order of an index by block; aggregations read all events
// and add them up by block before anything else, because most of the cost is in what follows.

// events is what series count: of each kind of event of a table the columns of its points, and their sums.
type events struct {
	// from are the tables, and chain is the column of the chain in them.
	from, chain string
	// token, block and log say which agent an event belongs to and where on the chain it is.
	token, block, log string
	// values are what a point has, by name, and sums are what aggregations add up, for all events of group.
	values, sums []value
	// group is what sums have equal, besides the block; empty for nothing.
	group string
}

// value is a column of a series.
type value struct{ name, sql string }

// registrations are the registrations of agents.
func registrations() []events {
	return []events{{from: "agents a", chain: "a.chain_id", token: "a.token_id", block: "a.registered_block", log: "a.registered_log",
		sums: []value{{"registrations", "count(*)"}}}}
}

// ratings are ratings and revocations.
func ratings() []events {
	one, all := "f.value * "+scaleOf("f.decimals"), "sum(f.value) * "+scaleOf("f.decimals")
	return []events{
		{from: "feedback f", chain: "f.chain_id", token: "f.token_id", block: "f.block", log: "f.log_index", group: "f.decimals",
			values: []value{{"value", one}, {"delta", one}, {"counted", one}, {"revocation", "false"}, {"created", "1"}, {"revoked", "0"}},
			sums:   []value{{"created", "count(*)"}, {"revoked", "0"}, {"counted", all}, {"delta", all}}},
		{from: "feedback f", chain: "f.chain_id", token: "f.token_id", block: "f.revoked_block",
			log: "f.revoked_log", group: "f.decimals",
			values: []value{{"value", one}, {"delta", "-(" + one + ")"}, {"counted", "0::numeric"}, {"revocation", "true"}, {"created", "0"}, {"revoked", "1"}},
			sums:   []value{{"created", "0"}, {"revoked", "count(*)"}, {"counted", "0"}, {"delta", "-(" + all + ")"}}},
	}
}

// validations are requests and answers of contracts on the allow-list.
func validations() []events {
	const trusted = "validation_requests q join chains c on c.chain_id = q.chain_id and q.contract = any(c.validations)"
	return []events{
		{from: trusted, chain: "q.chain_id", token: "q.token_id", block: "q.block", log: "q.log_index",
			values: []value{{"score", "0"}, {"requests", "1"}, {"responses", "0"}},
			sums:   []value{{"requests", "count(*)"}, {"responses", "0"}, {"score", "0"}}},
		{from: trusted + " join validation_responses x on (x.chain_id, x.contract, x.request_hash) = (q.chain_id, q.contract, q.request_hash)",
			chain: "q.chain_id", token: "q.token_id", block: "x.block", log: "x.log_index",
			values: []value{{"score", "x.response"}, {"requests", "0"}, {"responses", "1"}},
			sums:   []value{{"requests", "0"}, {"responses", "count(*)"}, {"score", "sum(x.response)"}}},
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

// pointsOf returns the SQL of events of all chains, one row each. An event that did not happen has no block. There is no
// condition on the rows, because Postgres reads a union in the order of indexes only if its parts have none.
func pointsOf(kinds []events) string {
	var all []string
	for _, e := range kinds {
		all = append(all, "select "+e.chain+", "+e.token+" as token_id, "+e.block+" as block, "+e.log+" as log"+listed(e.values)+" from "+e.from)
	}
	return strings.Join(all, " union all ")
}

// sumsOf returns the SQL of events added up by block, and by agent where that is asked for.
func sumsOf(kinds []events, byAgent bool) string {
	var all []string
	for _, e := range kinds {
		group := e.block
		if e.group != "" {
			group += ", " + e.group
		}
		token := ""
		if byAgent {
			token, group = ", "+e.token+" as token_id", group+", "+e.token
		}
		all = append(all, "select "+e.block+" as block, max("+e.log+") as log"+token+listed(e.sums)+" from "+e.from+
			" where "+e.chain+" = $1 and "+e.block+" is not null group by "+group)
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

// bucket is the SQL of the start of the hour or day of a time in seconds. Statements put the length for @seconds@.
func bucket(seconds string) string { return "(" + seconds + " / @seconds@ * @seconds@)" }

// sum is a field of an aggregation: its name and type, and the column that is added up.
type sum struct {
	name, of string
	kind     Type
}

// aggregation returns the entity of sums of events up to the end of each hour or day, of each agent or of all. The hour or
// day of the newest block is shown where a statement puts true for @all@.
func aggregation(name string, kinds []events, byAgent bool, sums ...sum) Entity {
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
		columns.WriteString(", sum(sum(x." + s.of + ")) over w as " + s.name)
		fields = append(fields, Field{Name: s.name, Type: s.kind, SQL: "{g}." + s.name})
	}
	start := bucket(secondsOf("b"))
	return Entity{
		Name: name, Aggregation: true, Key: key,
		From: "(select " + start + " as bucket" + group + ", max(" + placeOf("x") + ") as id, max(x.block) as block" + columns.String() +
			" from (" + sumsOf(kinds, byAgent) + ") x" + joinBlock("b", "x.block") + " group by " + start + group +
			" window w as (" + partition + "order by " + start + ")) {g}",
		Where: "(@all@ or {g}.bucket < (select " + bucket("coalesce(extract(epoch from c.cursor_time)::bigint, 0)") +
			" from chains c where c.chain_id = $1))",
		Changed: "{g}.block", Fields: fields,
	}
}

// series returns the entities over time.
func series() (out []Entity) {
	rated := []sum{{"feedbackCreated", "created", BigInt}, {"feedbackRevoked", "revoked", BigInt},
		{"valueSum", "counted", BigDecimal}, {"valueDeltaSum", "delta", BigDecimal}}
	validated := []sum{{"validationRequests", "requests", BigInt}, {"validationResponses", "responses", BigInt},
		{"scoreSum", "score", BigInt}}
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
		aggregation("ProtocolAgentStats", registrations(), false, sum{"agentRegistrations", "registrations", Int8}),
		aggregation("ProtocolFeedbackStats", ratings(), false, rated...),
		aggregation("AgentFeedbackStats", ratings(), true, rated...),
		aggregation("ProtocolValidationStats", validations(), false, validated...),
		aggregation("AgentValidationStats", validations(), true, validated...),
	}
}
