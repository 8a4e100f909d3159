package subgraph_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"
)

// update writes the golden files: go test ./api/subgraph -update.
var update = flag.Bool("update", false, "write the golden files")

// golden compares an answer with a stored one.
func golden(t *testing.T, name string, answer []byte) {
	t.Helper()
	var b bytes.Buffer
	if err := json.Indent(&b, answer, "", "  "); err != nil {
		t.Fatalf("%v: %s", err, answer)
	}
	b.WriteByte('\n')
	path := filepath.Join("testdata", name+".json")
	if *update {
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b.Bytes(), want) {
		t.Errorf("%s differs from the stored answer:\n%s", name, b.Bytes())
	}
}

// The selections of the SDKs.
const (
	agentFields = `id chainId agentId owner operators agentURI agentURIType agentWallet createdAt updatedAt totalFeedback
		lastActivity registrationFile { id agentId name description image active x402Support supportedTrusts mcpEndpoint
		mcpVersion a2aEndpoint a2aVersion webEndpoint emailEndpoint hasOASF oasfSkills oasfDomains ens did mcpTools mcpPrompts
		mcpResources a2aSkills }`
	fileFields = `id feedbackId text mcpTool mcpPrompt mcpResource a2aSkills a2aContextId a2aTaskId oasfSkills oasfDomains
		proofOfPaymentFromAddress proofOfPaymentToAddress proofOfPaymentChainId proofOfPaymentTxHash tag1 tag2 createdAt`
	listArguments = `where: $where, first: $first, skip: $skip, orderBy: $orderBy, orderDirection: $orderDirection`
)

// shape is a query as an SDK sends it.
type shape struct {
	name, query string
	variables   map[string]any
}

// shapes are the queries of the TypeScript SDK (T1 to T7), then those of the Python SDK and of dashboards.
func shapes() []shape {
	newest := func(where any, by string) map[string]any {
		return map[string]any{"where": where, "first": 1000, "skip": 0, "orderBy": by, "orderDirection": "desc"}
	}
	anyOf := func(field string, values ...string) map[string]any {
		var or []map[string]any
		for _, v := range values {
			or = append(or, map[string]any{"registrationFile_": map[string]any{field: []string{v}}})
		}
		return map[string]any{"or": or}
	}
	search := `query SearchAgentsV2($where: Agent_filter, $first: Int!, $skip: Int!, $orderBy: Agent_orderBy!,
		$orderDirection: OrderDirection!) { agents(` + listArguments + `) { ` + agentFields + ` } }`
	return []shape{
		{"t1", `query GetAgent($agentId: String!) { agent(id: $agentId) { ` + agentFields + ` } }`,
			map[string]any{"agentId": "8453:1"}},
		{"t2-default", search, newest(map[string]any{"registrationFile_not": nil}, "updatedAt")},
		{"t2-lists", search, newest(map[string]any{"and": []any{map[string]any{"registrationFile_not": nil,
			"createdAt_gte": 1_750_000_000, "totalFeedback_gt": "0"}, anyOf("supportedTrusts_contains", "tee", "none"),
			anyOf("mcpTools_contains", "add")}}, "createdAt")},
		{"t2-text", search,
			newest(map[string]any{"registrationFile_": map[string]any{"name_contains_nocase": "ALPHA 100%_",
				"active": true, "mcpEndpoint_not": nil}}, "name")},
		{"t2-ids", search, newest(map[string]any{"id_in": []string{"8453:2", "8453:10", "1:1", "nonsense"}},
			"updatedAt")},
		{"t2-wallet", search, newest(map[string]any{"agentWallet": "0x000000000000000000000000000000000000A001"},
			"lastActivity")},
		{"t3", `query GetAgents($first: Int!, $skip: Int!, $orderBy: Agent_orderBy!, $orderDirection: OrderDirection!) {
			agents(where: { owner: "0x000000000000000000000000000000000000a001", operators_contains: ["0x000000000000000000000000000000000000a028"],
			registrationFile_: { active: true, mcpEndpoint_not: null } } first: $first skip: $skip orderBy: $orderBy
			orderDirection: $orderDirection) { ` + agentFields + ` } }`, newest(nil, "chainId")},
		{"t4", `query AgentMetadatas($where: AgentMetadata_filter, $first: Int!, $skip: Int!) {
			agentMetadatas(where: $where, first: $first, skip: $skip) { id key value updatedAt agent { id } } }`,
			map[string]any{"where": map[string]any{"key": "model", "value": "0x677074"}, "first": 1000, "skip": 0}},
		{"t4-collection", `query AgentMetadataCollection($where: AgentMetadata_filter, $first: Int!, $skip: Int!) {
			agentMetadata_collection(where: $where, first: $first, skip: $skip) { id key value updatedAt agent { id } } }`,
			map[string]any{"where": map[string]any{"key": "agentWallet"}, "first": 1000, "skip": 0}},
		{"t5", `query Feedbacks($where: Feedback_filter, $first: Int!, $skip: Int!, $orderBy: Feedback_orderBy!,
			$orderDirection: OrderDirection!) { feedbacks(` + listArguments + `) { id agent { id } clientAddress value tag1 tag2
			endpoint isRevoked createdAt responses(first: 1) { id } } }`, newest(map[string]any{"and": []any{
			map[string]any{"isRevoked": false, "clientAddress_in": []string{addr(201).Hex()},
				"agent_in":                 []string{"8453:1"},
				"endpoint_contains_nocase": "MCP"}, map[string]any{"or": []any{map[string]any{"tag1": "quality"},
				map[string]any{"tag2": "quality"}}}}}, "createdAt")},
		{"t6", `query FeedbackResponses($where: FeedbackResponse_filter, $first: Int!, $skip: Int!) {
			feedbackResponses(where: $where, first: $first, skip: $skip) { id feedback { id } createdAt } }`,
			map[string]any{"where": map[string]any{"feedback": "8453:1:0x000000000000000000000000000000000000a0c9:1"},
				"first": 1000, "skip": 0}},
		{"t7",
			`{ feedbacks( where: { or: [{ agent_in: ["8453:1", "8453:2"], value_gte: -5.5, value_lte: 1e20, tag1: "quality" },
			{ agent_in: ["8453:1", "8453:2"], value_gte: -5.5, tag1: "" }] } first: 1000 skip: 0 orderBy: createdAt
			orderDirection: desc ) { id agent { id agentId chainId } clientAddress value tag1 tag2 endpoint feedbackURI
			feedbackURIType feedbackHash isRevoked createdAt revokedAt feedbackFile { ` + fileFields + ` }
			responses { id responder responseUri responseHash createdAt } } }`, nil},
		{"python-agent", `{ agent(id: "8453:1") { registrationFile { agentWallet agentWalletChainId createdAt }
			feedback(first: 10, where: {isRevoked: false, value_gte: "80"}, orderBy: createdAt, orderDirection: desc) { id
			feedbackIndex responses { responseURI } } } }`, nil},
		{"legacy",
			`{ agentStats(id: "8453:1") { totalFeedback averageFeedbackValue totalValidations completedValidations
			averageValidationScore lastActivity updatedAt agent { id } }
			protocol(id: "8453") { totalAgents totalFeedback totalValidations tags trustModels agents(first: 2) { id } }
			globalStats(id: "stats") { id totalAgents totalProtocols } protocols(first: 1) { id name identityRegistry
			reputationRegistry validationRegistry createdAt updatedAt } }`, nil},
		{"profile", `query AgentTrustProfile($id: ID!, $agentFilter: String!, $n: Int!) { agent(id: $id) {
			validations(first: $n, orderBy: createdAt, orderDirection: desc) { id validatorAddress requestUri requestHash response
			responseUri responseHash tag status createdAt updatedAt } metadata { key value } }
			feedbacks(where: {agent: $agentFilter}, first: $n) { id } }`,
			map[string]any{"id": "8453:1", "agentFilter": "8453:1", "n": 5}},
		{"keyset",
			`query($cursor: ID!) { agents(first: 1000, orderBy: id, orderDirection: asc, where: {totalFeedback_gte: 0,
			id_gt: $cursor}) { id } _meta { block { number hash } deployment hasIndexingErrors } }`, map[string]any{"cursor": "8453:1"}},
		{"lenient", `query($o: String) { agents(orderBy: "agentId", orderDirection: $o, nonsense: 3) { id owner { x }
			registrationFile { x402support mcpTools { name } cid endpointsRawJson oasfEndpoint oasfVersion } feedback } }`,
			map[string]any{"o": "desc"}},
		{"series",
			`{ agents: protocolAgentStats_collection(interval: day, first: 8, orderBy: timestamp, orderDirection: desc,
			current: include) { timestamp agentRegistrations } feedback: protocolFeedbackStats(interval: "hour", current: include) { id
			timestamp feedbackCreated feedbackRevoked valueSum valueDeltaSum protocol { id } }
			mine: agentFeedbackStats_collection(interval: day, first: 1, orderBy: timestamp, orderDirection: desc, current: include,
			where: {agent: "8453:1"}) { feedbackCreated valueDeltaSum agent { id } }
			excluded: protocolValidationStats_collection(interval: hour) { scoreSum }
			feedbackPoints(where: {isRevocation: true}) { id timestamp value valueDelta valueForSum createdCount revokedCount agent { id } } }`, nil},
		{"files", `{ agentRegistrationFiles(where: {supportedTrusts_contains: ["reputation"], active: true}) { id cid }
			feedbackFiles(first: 500, orderBy: createdAt, orderDirection: desc) { feedbackId cid valueRaw valueDecimals } }`, nil},
	}
}

// TestShapes compares the answers to the queries of SDKs and dashboards with stored ones.
func TestShapes(t *testing.T) {
	t.Parallel()
	l := story(t)
	s := serve(t, l.db)
	for _, one := range shapes() {
		answer := s.ask(one.query, one.variables)
		answered[map[string]any](t, answer)
		golden(t, one.name, answer)
	}
}
