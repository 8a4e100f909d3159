package subgraphdb

import (
	"strings"

	"repute/store/docdb"
	"repute/store/hourdb"
)

// secondsOf returns the SQL of the time of the block in relation b in seconds since 1970, 0 where it is unknown as that
// of imported events may be.
func secondsOf(b string) string { return "coalesce(extract(epoch from " + b + ".time)::bigint, 0)" }

// secondsAt returns secondsOf for the block whose number an expression gives.
func secondsAt(block string) string {
	return "coalesce((select extract(epoch from b.time)::bigint from blocks b where b.chain_id = $1 and b.number = " +
		block + "), 0)"
}

// hashOr returns the SQL of a hash, which is stored empty for zero.
func hashOr(column string) string {
	return "case when " + column + " = '' then decode(repeat('00', 32), 'hex') else " + column + " end"
}

// joinBlock returns the join of the block in which an expression says something happened.
func joinBlock(b, block string) string {
	return "\n\tleft join blocks " + b + " on (" + b + ".chain_id, " + b + ".number) = ($1, " + block + ")"
}

// joinParse returns the join of the newest parse of the document of URI u.
func joinParse(kind string) string {
	return `
	left join uris {u} on {u}.id = {x}.uri_id
	left join documents {d} on {d}.sha256 = {u}.sha256
	left join parses {p} on ({p}.sha256, {p}.kind, {p}.parser_version) = ({d}.sha256, '` + kind + `', {d}.parsed)`
}

// of returns an expression about relation x for the alias that an entity has for it.
func of(sql, alias string) string { return strings.ReplaceAll(sql, "{x}", "{"+alias+"}") }

// likely returns the SQL of a condition that is true of most rows. Postgres takes an equation of an expression, or that
// it is null, to be true of one row in 200, and a null to be absent from nearly all.
func likely(condition string) string { return "nullif(" + condition + ", false) is not null" }

// isParsed is the SQL condition that the document of parse p was read as a file.
func isParsed(p string) string { return likely("jsonb_typeof(" + p + ".content) = 'object'") }

// mayShow is the SQL condition that there is no reason against showing something.
func mayShow(denied string) string { return likely(denied + " is null") }

// uriType returns the SQL of the kind of URI u as the subgraph names it. A URI of a public IPFS gateway is ipfs.
const uriType = `case
	when {u}.kind = 'https' and ({u}.host in ('ipfs.io', 'gateway.pinata.cloud', 'cloudflare-ipfs.com')
		or {u}.host ~ '\.ipfs\.(w3s\.link|dweb\.link|gateway\.pinata\.cloud|ipfs\.io|cloudflare-ipfs\.com)$') then 'ipfs'
	when {u}.kind in ('data', 'ipfs', 'https', 'http') then {u}.kind
	else 'unknown' end`

// shownURI returns the SQL of URI u. A data URI whose document is denied is the document, and is not shown.
func shownURI(denied string) string {
	return `case when {u}.kind in ('data', 'json') and ` + denied + ` is not null then '' else {u}.uri end`
}

// deniedAgentFile and deniedFile are the SQL of why the documents of agents and of feedback must not be shown.
func deniedAgentFile() string { return docdb.DeniedDocument("{u}", "{a}") }
func deniedFile() string      { return docdb.DeniedFile("{u}") }

// shownFile returns the SQL of the hash of a document that was read as a file and may be shown, null for others.
func shownFile(denied string) string {
	return "case when " + isParsed("{p}") + " and " + mayShow(denied) + " then {u}.sha256 end"
}

// hasFile returns the SQL of whether the document of the URI of relation x was read as a file of a kind and may be
// shown. It does not depend on the rest of the row, so that Postgres may look for all such URIs at once.
func hasFile(x, kind string) string {
	return x + `.uri_id in (select w.id from uris w join documents e on e.sha256 = w.sha256
	join parses p on (p.sha256, p.kind, p.parser_version) = (e.sha256, '` + kind + `', e.parsed)
	where ` + isParsed("p") + ` and ` + mayShow(docdb.DeniedFile("w")) + `)`
}

// agentTables are the tables of agents and of their files.
func agentTables() string {
	return "agents {a}" + of(joinParse("registration"), "a") + joinBlock("{rb}", "{a}.registered_block") +
		joinBlock("{ub}", "{a}.updated_block")
}

// agentKey is the key of an agent.
func agentKey(a string) []string { return []string{a + ".token_id"} }

// lastActivity is the SQL of the block of the last event that somebody caused with an agent: its registration, feedback
// or a validation. An agent that nothing happened to since its registration, as to most, is not looked up.
const lastActivity = `case when {a}.updated_block = {a}.registered_block then {a}.registered_block else greatest({a}.registered_block,
	(select max(f.block) from feedback f where f.chain_id = $1 and f.token_id = {a}.token_id),
	(select max(q.block) from validation_requests q where q.chain_id = $1 and q.token_id = {a}.token_id),
	(select max((select max(x.block) from validation_responses x
		where (x.chain_id, x.contract, x.request_hash) = (q.chain_id, q.contract, q.request_hash)))
		from validation_requests q where q.chain_id = $1 and q.token_id = {a}.token_id)) end`

// activityTime is the SQL of the time of lastActivity in seconds since 1970. What changed most agents last is a rating,
// or their registration: the block of that is joined already.
func activityTime() string {
	return `case when {a}.updated_block = {a}.registered_block or {a}.updated_block = (select f.block from feedback f
	where f.chain_id = $1 and f.token_id = {a}.token_id order by f.block desc limit 1) then ` + secondsOf("{ub}") +
		" else " + secondsAt(lastActivity) + " end"
}

// everyActivity is the SQL of lastActivity of all agents.
const everyActivity = `select a.token_id, greatest(a.registered_block, f.block, v.block, w.block) as block from agents a
	left join (select token_id, max(block) as block from feedback where chain_id = $1 group by 1) f on f.token_id = a.token_id
	left join (select token_id, max(block) as block from validation_requests where chain_id = $1 group by 1) v
		on v.token_id = a.token_id
	left join (select q.token_id, max(x.block) as block from validation_requests q join validation_responses x
		on (x.chain_id, x.contract, x.request_hash) = (q.chain_id, q.contract, q.request_hash)
		where q.chain_id = $1 group by 1) w on w.token_id = a.token_id
	where a.chain_id = $1`

// everyFile is the SQL of the block since which each agent has its present URI.
const everyFile = `select a.token_id, coalesce(max(s.to_block), a.registered_block) as block from agents a
	left join agent_states s on s.chain_id = $1 and s.token_id = a.token_id and s.to_block is not null and s.uri_id <> a.uri_id
	where a.chain_id = $1 group by a.token_id, a.registered_block`

// lifeOf returns field f, whose block lies between the registration of an agent and its last change.
func lifeOf(f Field) Field {
	f.From, f.Until = "{a}.registered_block", "{a}.updated_block"
	return f
}

// operators is the SQL of who may act for an agent: the address that the ERC-721 approval names, and the owner's
// operators. Most agents have none, and need no list to be sorted.
const operators = `case when {a}.approved = '' and (select s.operator from operators s
	where s.chain_id = $1 and s.owner = {a}.owner and s.to_block is null limit 1) is null then '[]'::jsonb else (select coalesce(jsonb_agg('0x' || encode(x.o, 'hex') order by x.o), '[]') from (
	select {a}.approved as o where {a}.approved <> ''
	union (select s.operator from operators s where s.chain_id = $1 and s.owner = {a}.owner and s.to_block is null
		order by s.operator limit 100)) x) end`

// setSince returns the SQL of the block since which a column of agent a has its value.
func setSince(a, column string) string {
	return `case when ` + a + `.updated_block = ` + a + `.registered_block then ` + a + `.registered_block
	else coalesce((select max(s.to_block) from agent_states s where s.chain_id = $1 and s.token_id = ` + a + `.token_id
		and s.` + column + ` <> ` + a + `.` + column + `), ` + a + `.registered_block) end`
}

func agent() Entity {
	return Entity{
		Name: "Agent", Key: Key{Chain: true, Parts: []Part{{FormNumber, "{a}.token_id"}}},
		From: agentTables(), Where: "{a}.chain_id = $1", Changed: "{a}.updated_block",
		Fields: []Field{
			{Name: "id", Type: ID},
			{Name: "chainId", Type: BigInt, SQL: "{a}.chain_id", Order: []string{}},
			{Name: "agentId", Type: BigInt, SQL: "{a}.token_id"},
			{Name: "agentURI", Type: String, Nullable: true, Raw: true, SQL: shownURI(deniedAgentFile())},
			{Name: "agentURIType", Type: String, Nullable: true, SQL: uriType},
			{Name: "owner", Type: Bytes, SQL: "{a}.owner"},
			{Name: "agentWallet", Type: Bytes, Nullable: true, SQL: "nullif({a}.wallet, '')"},
			{Name: "operators", Type: Bytes, List: true, SQL: operators},
			{Name: "createdAt", Type: BigInt, SQL: secondsOf("{rb}"), Block: "{a}.registered_block"},
			{Name: "updatedAt", Type: BigInt, SQL: secondsOf("{ub}"), Block: "{a}.updated_block"},
			{Name: "registrationFile", To: "AgentRegistrationFile", Nullable: true, Inline: true,
				Key: []string{"{a}.token_id", shownFile(deniedAgentFile())},
				Exists: hasFile("{a}", "registration") + " and " +
					mayShow(docdb.DeniedAgent("{a}"))},
			{Name: "feedback", To: "Feedback", List: true, Back: "agent"},
			{Name: "validations", To: "Validation", List: true, Back: "agent"},
			{Name: "metadata", To: "AgentMetadata", List: true, Back: "agent"},
			// Most agents have the same few counts, so that the rows of one count are many and must be sorted by id:
			// the index of counts, which + 0 keeps out, would be the longer way.
			{Name: "totalFeedback", Type: BigInt, SQL: "{a}.feedback", Order: []string{"({a}.feedback + 0)"}},
			lifeOf(Field{Name: "lastActivity", Type: BigInt, SQL: activityTime(), Block: lastActivity,
				Every: everyActivity}),
		},
	}
}

// feedbackKey is the key of the feedback in relation f.
func feedbackKey(f string) []string { return []string{f + ".token_id", f + ".client", f + ".idx"} }

// keyOf returns a key with the chain and the parts of forms.
func keyOf(forms []Form, columns []string) Key {
	k := Key{Chain: true}
	for i, c := range columns {
		k.Parts = append(k.Parts, Part{forms[i], c})
	}
	return k
}

// feedbackTables are the tables of feedback and of its files.
func feedbackTables() string {
	return "feedback {f} left join tags {t} on {t}.id = {f}.tag1 left join tags {v} on {v}.id = {f}.tag2" +
		of(joinParse("feedback"), "f") + joinBlock("{b}", "{f}.block") + joinBlock("{rb}", "{f}.revoked_block")
}

func feedback() Entity {
	return Entity{
		Name: "Feedback", Key: keyOf([]Form{FormNumber, FormHex, FormNumber}, feedbackKey("{f}")),
		From: feedbackTables(), Where: "{f}.chain_id = $1", Changed: "greatest({f}.block, {f}.revoked_block)",
		Fields: []Field{
			{Name: "id", Type: ID},
			{Name: "agent", To: "Agent", Key: agentKey("{f}")},
			{Name: "clientAddress", Type: Bytes, SQL: "{f}.client"},
			{Name: "feedbackIndex", Type: BigInt, SQL: "{f}.idx"},
			{Name: "value", Type: BigDecimal, SQL: "({f}.value * " + hourdb.ScaleOf("{f}.decimals") + ")"},
			{Name: "tag1", Type: String, Nullable: true, Raw: true, SQL: "{t}.value"},
			{Name: "tag2", Type: String, Nullable: true, Raw: true, SQL: "{v}.value"},
			{Name: "endpoint", Type: String, Nullable: true, Raw: true, SQL: "{f}.endpoint"},
			{Name: "feedbackURI", Type: String, Nullable: true, Raw: true, SQL: shownURI(deniedFile())},
			{Name: "feedbackURIType", Type: String, Nullable: true, SQL: uriType},
			{Name: "feedbackHash", Type: Bytes, Nullable: true, SQL: hashOr("{f}.hash")},
			{Name: "isRevoked", Type: Boolean, SQL: "({f}.revoked_block is not null)"},
			{Name: "createdAt", Type: BigInt, SQL: secondsOf("{b}"), Block: "{f}.block"},
			{Name: "revokedAt", Type: BigInt, Nullable: true, Block: "{f}.revoked_block",
				SQL: "case when {f}.revoked_block is not null then " + secondsOf("{rb}") + " end"},
			{Name: "feedbackFile", To: "FeedbackFile", Nullable: true, Inline: true,
				Key: append(feedbackKey("{f}"), shownFile(deniedFile())), Exists: hasFile("{f}", "feedback")},
			{Name: "responses", To: "FeedbackResponse", List: true, Back: "feedback"},
		},
	}
}

// transactionOf returns the SQL of the hash of the transaction of a log.
func transactionOf(block, log string) string {
	return "(select e.tx_hash from events e where (e.chain_id, e.block, e.log_index) = ($1, " + block + ", " +
		log + "))"
}

func feedbackResponse() Entity {
	return Entity{
		Name: "FeedbackResponse",
		Key: keyOf([]Form{FormNumber, FormHex, FormNumber, FormHex, FormNumber},
			append(feedbackKey("{r}"), transactionOf("{r}.block", "{r}.log_index"), "{r}.log_index")),
		From:  "responses {r} left join uris {u} on {u}.id = {r}.uri_id" + joinBlock("{b}", "{r}.block"),
		Where: "{r}.chain_id = $1", Changed: "{r}.block",
		Fields: []Field{
			{Name: "id", Type: ID},
			{Name: "feedback", To: "Feedback", Key: feedbackKey("{r}")},
			{Name: "responder", Type: Bytes, SQL: "{r}.responder"},
			{Name: "responseUri", Type: String, Nullable: true, Raw: true, SQL: shownURI(deniedFile())},
			{Name: "responseURI", Type: String, Nullable: true, Raw: true, SQL: shownURI(deniedFile())},
			{Name: "responseHash", Type: Bytes, Nullable: true, SQL: hashOr("{r}.hash")},
			{Name: "createdAt", Type: BigInt, SQL: secondsOf("{b}"), Block: "{r}.block"},
		},
	}
}

// validationTables are requests with their newest answer.
func validationTables() string {
	return `validation_requests {q}
	join chains {c} on {c}.chain_id = {q}.chain_id
	left join uris {u} on {u}.id = {q}.uri_id
	left join lateral (
		select * from validation_responses x
		where (x.chain_id, x.contract, x.request_hash) = ({q}.chain_id, {q}.contract, {q}.request_hash)
		order by x.block desc, x.log_index desc limit 1) {x} on true
	left join uris {w} on {w}.id = {x}.uri_id
	left join tags {t} on {t}.id = {x}.tag` + joinBlock("{b}", "{q}.block") + joinBlock("{xb}", "{x}.block")
}

func validation() Entity {
	denied := "case when {w}.kind in ('data', 'json') and " + docdb.DeniedFile("{w}") +
		" is not null then '' else coalesce({w}.uri, '') end"
	return Entity{
		Name: "Validation",
		Key: Key{Parts: []Part{{FormHex, "{q}.request_hash"},
			{FormOptional, "case when {q}.contract = {c}.validations[1] then ''::bytea else {q}.contract end"}}},
		From: validationTables(), Where: "{q}.chain_id = $1 and {q}.contract = any({c}.validations)",
		Changed: "greatest({q}.block, {x}.block)",
		Fields: []Field{
			{Name: "id", Type: ID},
			{Name: "agent", To: "Agent", Key: agentKey("{q}")},
			{Name: "validatorAddress", Type: Bytes, SQL: "{q}.validator"},
			{Name: "requestUri", Type: String, Nullable: true, Raw: true, SQL: shownURI(deniedFile())},
			{Name: "requestHash", Type: Bytes, SQL: "{q}.request_hash"},
			{Name: "response", Type: Int, Nullable: true, SQL: "coalesce({x}.response, 0)::integer"},
			{Name: "responseUri", Type: String, Nullable: true, Raw: true, SQL: denied},
			{Name: "responseHash", Type: Bytes, Nullable: true, SQL: hashOr("coalesce({x}.hash, '')")},
			{Name: "tag", Type: String, Nullable: true, Raw: true, SQL: "coalesce({t}.value, '')"},
			{Name: "status", Type: Status, SQL: "case when {x}.block is null then 'PENDING' else 'COMPLETED' end"},
			{Name: "createdAt", Type: BigInt, SQL: secondsOf("{b}"), Block: "{q}.block"},
			{Name: "updatedAt", Type: BigInt, Block: "coalesce({x}.block, {q}.block)",
				SQL: "case when {x}.block is null then " + secondsOf("{b}") + " else " + secondsOf("{xb}") + " end"},
		},
	}
}

func agentMetadata() Entity {
	return Entity{
		Name: "AgentMetadata", Key: keyOf([]Form{FormNumber, FormText}, []string{"{m}.token_id", "{m}.key"}),
		From: `(
		select m.chain_id, m.token_id, m.key, m.value, m.from_block, m.to_block is null as present from metadata m
		union all
		select a.chain_id, a.token_id, 'agentWallet'::bytea, a.wallet, ` + setSince("a", "wallet") + `, a.wallet <> '' from agents a
		) {m}` + joinBlock("{b}", "{m}.from_block"),
		Where: "{m}.chain_id = $1 and {m}.present", Changed: "{m}.from_block",
		Fields: []Field{
			{Name: "id", Type: ID},
			{Name: "agent", To: "Agent", Key: agentKey("{m}")},
			{Name: "key", Type: String, Raw: true, SQL: "{m}.key"},
			{Name: "value", Type: Bytes, SQL: "{m}.value"},
			{Name: "updatedAt", Type: BigInt, SQL: secondsOf("{b}"), Block: "{m}.from_block"},
		},
	}
}
