package subgraphdb

// Members of a stored registration file are those of docjson.EncodeRegistration, of a feedback file those of
// docjson.EncodeFeedback.

// servicePath returns the SQL of a jsonb array with a member of the services of a name, in any case.
func servicePath(name, member string) string {
	return `jsonb_path_query_array({p}.content, '$.services[*] ? (@.name like_regex "^` + name + `$" flag "i").` +
		member + `')`
}

// endpoint returns the SQL of a member of the last service of a name that has it.
func endpoint(name, member string) string { return "(" + servicePath(name, member) + " ->> -1)" }

// array returns the SQL of a member that is a list, empty where it is absent or null.
func array(names ...string) string {
	x := within(names)
	return "case when jsonb_typeof(" + x + ") = 'array' then " + x + " else '[]' end"
}

// member returns the SQL of a text, null where it is absent or empty.
func member(names ...string) string {
	last := len(names) - 1
	return "nullif(" + within(names[:last]) + " ->> '" + names[last] + "', '')"
}

// within returns the SQL of a nested member.
func within(names []string) string {
	sql := "{p}.content"
	for _, n := range names {
		sql += " -> '" + n + "'"
	}
	return sql
}

// walletPart returns the SQL of a part of the account that a registration file gives as the agent's wallet (CAIP-10).
func walletPart(pattern string) string {
	return "substring(" + endpoint("agentWallet", "endpoint") + " from '" + pattern + "')"
}

func registrationFile() Entity {
	optional := func(name, sql string) Field { return Field{Name: name, Type: String, Nullable: true, SQL: sql} }
	list := func(name, sql string) Field { return Field{Name: name, Type: String, List: true, SQL: sql} }
	last := func(field, name, member string) Field {
		return Field{Name: field, Type: String, Nullable: true, SQL: endpoint(name, member),
			services: lastOf(name, member)}
	}
	all := func(field, name, member string) Field {
		return Field{Name: field, Type: String, List: true, SQL: servicePath(name, member+"[*]"),
			services: allOf(name, member)}
	}
	oasf := "jsonb_array_length(" + servicePath("oasf", "skills[*]") + ") + jsonb_array_length(" +
		servicePath("oasf", "domains[*]") + ") > 0"
	x402 := Field{Name: "x402Support", Type: Boolean, Nullable: true, SQL: "({p}.content ->> 'x402')::boolean"}
	x402Before := x402
	x402Before.Name = "x402support"
	since := setSince("{a}", "uri_id")
	return Entity{
		Name: "AgentRegistrationFile",
		Key:  keyOf([]Form{FormNumber, FormHex}, []string{"{a}.token_id", "{u}.sha256"}),
		From: agentTables(), Where: "{a}.chain_id = $1 and " + isParsed("{p}") + " and " + mayShow(deniedAgentFile()),
		Changed: since,
		Fields: []Field{
			{Name: "id", Type: ID},
			{Name: "cid", Type: String, SQL: cid},
			{Name: "agentId", Type: String, SQL: "$1::bigint || ':' || {a}.token_id"},
			optional("name", member("name")), optional("description", member("description")),
			optional("image", member("image")),
			{Name: "active", Type: Boolean, Nullable: true, SQL: "({p}.content ->> 'active')::boolean"},
			x402, x402Before,
			list("supportedTrusts", array("supportedTrust")),
			optional("endpointsRawJson", endpointsRawJSON),
			last("mcpEndpoint", "mcp", "endpoint"), last("mcpVersion", "mcp", "version"),
			last("a2aEndpoint", "a2a", "endpoint"), last("a2aVersion", "a2a", "version"),
			last("webEndpoint", "web", "endpoint"),
			last("oasfEndpoint", "oasf", "endpoint"), last("oasfVersion", "oasf", "version"),
			all("oasfSkills", "oasf", "skills"), all("oasfDomains", "oasf", "domains"),
			{Name: "hasOASF", Type: Boolean, SQL: "(" + oasf + ")", services: func(l []service) any {
				return len(elementsOf(l, "oasf", "skills"))+len(elementsOf(l, "oasf", "domains")) > 0
			}},
			last("emailEndpoint", "email", "endpoint"), last("ens", "ens", "endpoint"),
			last("did", "did", "endpoint"),
			all("mcpTools", "mcp", "tools"), all("mcpPrompts", "mcp", "prompts"),
			all("mcpResources", "mcp", "resources"), all("a2aSkills", "a2a", "skills"),
			optional("agentWallet", "lower("+walletPart("^eip155:[0-9]+:(0x[0-9a-fA-F]+)$")+")"),
			{Name: "agentWalletChainId", Type: BigInt, Nullable: true,
				SQL: walletPart("^eip155:([0-9]+):0x[0-9a-fA-F]+$") + "::numeric"},
			{Name: "createdAt", Type: BigInt, SQL: secondsAt(since), Block: since, Every: everyFile},
		},
	}
}

// cid is the SQL of the CID of a document: that of its IPFS URI, else a name of its bytes.
const cid = `case
	when {u}.kind = 'ipfs' then coalesce(substring(encode({u}.uri, 'escape') from '(Qm[1-9A-HJ-NP-Za-km-z]+|baf[a-z2-7]+)'),
		encode({u}.sha256, 'hex'))
	when {u}.kind in ('data', 'json') then 'datauri:' || encode({u}.sha256, 'hex')
	else 'sha256:' || encode({u}.sha256, 'hex') end`

// endpointsRawJSON is the SQL of the services with the members that the subgraph keeps.
const endpointsRawJSON = `(select jsonb_agg(s.e - array['extra', 'tools', 'prompts', 'resources'] order by s.n)::text
	from jsonb_array_elements({p}.content -> 'services') with ordinality as s(e, n))`

func feedbackFile() Entity {
	optional := func(name, sql string) Field { return Field{Name: name, Type: String, Nullable: true, SQL: sql} }
	return Entity{
		Name: "FeedbackFile",
		Key:  keyOf([]Form{FormNumber, FormHex, FormNumber, FormHex}, append(feedbackKey("{f}"), "{u}.sha256")),
		From: feedbackTables(), Where: "{f}.chain_id = $1 and " + isParsed("{p}") + " and " + mayShow(deniedFile()),
		Changed: "{f}.block",
		Fields: []Field{
			{Name: "id", Type: ID},
			{Name: "cid", Type: String, SQL: cid},
			{Name: "feedbackId", Type: String,
				SQL: "($1::bigint || ':' || {f}.token_id || ':0x' || encode({f}.client, 'hex') || ':' || {f}.idx)"},
			optional("agentRegistry", member("Registry")),
			{Name: "agentId", Type: BigInt, Nullable: true, SQL: numberOf("TokenID")},
			optional("clientAddress", member("Client")), optional("createdAtIso", member("CreatedAt")),
			{Name: "valueRaw", Type: BigInt, Nullable: true, SQL: numberOf("Value")},
			{Name: "valueDecimals", Type: Int, Nullable: true, SQL: "({p}.content ->> 'Decimals')::integer"},
			optional("text", member("Text")), optional("mcpTool", member("MCP", "Tool")),
			optional("mcpPrompt", member("MCP", "Prompt")), optional("mcpResource", member("MCP", "Resource")),
			{Name: "a2aSkills", Type: String, List: true, SQL: array("A2A", "Skills")},
			optional("a2aContextId", member("A2A", "ContextID")), optional("a2aTaskId", member("A2A", "TaskID")),
			{Name: "oasfSkills", Type: String, List: true, SQL: array("OASF", "Skills")},
			{Name: "oasfDomains", Type: String, List: true, SQL: array("OASF", "Domains")},
			optional("proofOfPaymentFromAddress", member("Payment", "From")),
			optional("proofOfPaymentToAddress", member("Payment", "To")),
			optional("proofOfPaymentChainId", member("Payment", "ChainID")),
			optional("proofOfPaymentTxHash", member("Payment", "TxHash")),
			optional("tag1", "case when {t}.value = '' then "+member("Tag1")+" end"),
			optional("tag2", "case when {v}.value = '' then "+member("Tag2")+" end"),
			{Name: "createdAt", Type: BigInt, SQL: secondsOf("{b}"), Block: "{f}.block"},
		},
	}
}

// numberOf returns the SQL of a member that is an integer, null for other texts.
func numberOf(name string) string {
	return "substring(({p}.content ->> '" + name + "') from '^-?[0-9]+$')::numeric"
}
