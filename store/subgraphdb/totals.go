package subgraphdb

import "repute/store/hourdb"

// Entities of earlier versions of the subgraph, which old SDKs and dashboards still ask for, and totals of the chain.

// liveFeedback is the SQL of the live ratings of the chain.
const liveFeedback = "(select coalesce(sum(n.feedback), 0) from agents n where n.chain_id = $1)"

// answered is the SQL of the answered validations of the chain.
const answered = "(select coalesce(sum(n.validations), 0) from agents n where n.chain_id = $1)"

// maxTags bounds the tags of a chain in an answer. Anybody can make a tag.
const maxTags = "1000"

// tagsOf is the SQL of the first tags that live feedback of the chain has, in hex.
const tagsOf = `(select coalesce(jsonb_agg(encode(x.value, 'hex') order by x.value), '[]') from (
	select t.value from (
		select s.tag1 as id from agent_sums s where s.chain_id = $1 union select s.tag2 from agent_sums s where s.chain_id = $1) s
	join tags t on t.id = s.id where t.value <> '' order by t.id limit ` + maxTags + `) x)`

// trustModels is the SQL of the trust models that registration files of the chain name.
const trustModels = `(select coalesce(jsonb_agg(x.v order by x.v collate "C"), '[]') from (
	select distinct w.v from agents n join uris k on k.id = n.uri_id join searchable s on s.sha256 = k.sha256
	cross join unnest(s.trust) as w(v) where n.chain_id = $1 order by w.v limit ` + maxTags + `) x)`

func protocol() Entity {
	address := func(column string) string {
		return "case when coalesce(" + column + ", '') = '' then decode(repeat('00', 20), 'hex') else " + column +
			" end"
	}
	return Entity{
		Name: "Protocol", Key: Key{Chain: true}, From: "chains {c}" + joinBlock("{b}", "{c}.start_block"),
		Where: "{c}.chain_id = $1", Changed: "{c}.cursor_block",
		Fields: append([]Field{
			{Name: "id", Type: ID},
			{Name: "chainId", Type: BigInt, SQL: "{c}.chain_id"},
			{Name: "name", Type: String, SQL: "{c}.name"},
			{Name: "identityRegistry", Type: Bytes, SQL: address("{c}.identity")},
			{Name: "reputationRegistry", Type: Bytes, SQL: address("{c}.reputation")},
			{Name: "validationRegistry", Type: Bytes, SQL: address("{c}.validations[1]")},
			{Name: "createdAt", Type: BigInt, SQL: firstBlockTime},
			{Name: "updatedAt", Type: BigInt, SQL: cursorTime},
			{Name: "trustModels", Type: String, List: true, SQL: trustModels},
		}, totals()...),
	}
}

// firstBlockTime is the SQL of the time of the first registration.
const firstBlockTime = `coalesce((select extract(epoch from b.time)::bigint from blocks b where b.chain_id = $1
	and b.number = (select min(n.registered_block) from agents n where n.chain_id = $1)), 0)`

// cursorTime is the SQL of the time of the newest indexed block.
const cursorTime = "coalesce(extract(epoch from {c}.cursor_time)::bigint, 0)"

// totals are the fields that Protocol and GlobalStats share.
func totals() []Field {
	return []Field{
		{Name: "totalAgents", Type: BigInt, SQL: "(select count(*) from agents n where n.chain_id = $1)"},
		{Name: "totalFeedback", Type: BigInt, SQL: liveFeedback},
		{Name: "totalValidations", Type: BigInt, SQL: answered},
		{Name: "agents", To: "Agent", List: true},
		{Name: "tags", Type: String, List: true, Raw: true, SQL: tagsOf},
	}
}

func globalStats() Entity {
	return Entity{
		Name: "GlobalStats", Key: Key{Fixed: "global"}, From: "chains {c}", Where: "{c}.chain_id = $1",
		Changed: "{c}.cursor_block",
		Fields: append([]Field{
			{Name: "id", Type: ID},
			{Name: "totalProtocols", Type: BigInt, SQL: "1"},
			{Name: "updatedAt", Type: BigInt, SQL: cursorTime},
		}, totals()...),
	}
}

func agentStats() Entity {
	const requests = `from validation_requests q join chains c on c.chain_id = q.chain_id and q.contract = any(c.validations)
	where q.chain_id = $1 and q.token_id = {a}.token_id`
	const score = `(select x.response from validation_responses x
	where (x.chain_id, x.contract, x.request_hash) = (q.chain_id, q.contract, q.request_hash)
	order by x.block desc, x.log_index desc limit 1)`
	return Entity{
		Name: "AgentStats", Key: Key{Chain: true, Parts: []Part{{FormNumber, "{a}.token_id"}}},
		From: "agents {a}" + joinBlock("{ub}", "{a}.updated_block"), Where: "{a}.chain_id = $1",
		Changed: "{a}.updated_block",
		Fields: []Field{
			{Name: "id", Type: ID},
			{Name: "agent", To: "Agent", Key: agentKey("{a}")},
			{Name: "totalFeedback", Type: BigInt, SQL: "{a}.feedback"},
			{Name: "averageFeedbackValue", Type: BigDecimal, SQL: `coalesce((
	select sum(s.sum * ` + hourdb.ScaleOf("s.decimals") + `) / sum(s.n) from agent_sums s where s.chain_id = $1 and s.token_id = {a}.token_id), 0)`},
			{Name: "totalValidations", Type: BigInt, SQL: "(select count(*) " + requests + ")"},
			{Name: "completedValidations", Type: BigInt, SQL: "{a}.validations"},
			{Name: "averageValidationScore", Type: BigDecimal,
				SQL: "coalesce((select avg(" + score + ") " + requests + "), 0)"},
			lifeOf(Field{Name: "lastActivity", Type: BigInt, SQL: activityTime(), Block: lastActivity,
				Every: everyActivity}),
			{Name: "updatedAt", Type: BigInt, SQL: secondsOf("{ub}"), Block: "{a}.updated_block"},
		},
	}
}
