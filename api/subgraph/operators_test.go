package subgraph_test

import (
	"encoding/json"
	"fmt"
	"testing"
)

// TestOperators compares what each operator finds with stored answers.
func TestOperators(t *testing.T) {
	t.Parallel()
	s := serve(t, story(t).db)
	answers := map[string][]string{}
	for _, c := range []struct{ list, where string }{
		{"agents", `agentId: 2`}, {"agents", `agentId_not: "2"`}, {"agents", `agentId_gt: 2`}, {"agents", `agentId_lt: 2`},
		{"agents", `agentId_gte: 2`}, {"agents", `agentId_lte: 2`}, {"agents", `agentId_in: [1, "10"]`},
		{"agents", `agentId_in: []`}, {"agents", `agentId_not_in: [1, 10]`}, {"agents", `agentId_not_in: []`},
		{"agents", `id: "8453:10"`}, {"agents", `id_not: "8453:10"`}, {"agents", `id_gt: "8453:10"`}, {"agents", `id_in: ["8453:2", "x"]`},
		{"agents", `id_not_in: ["8453:2", "x"]`}, {"agents", `owner: "0x000000000000000000000000000000000000A001"`},
		{"agents", `owner_contains: "a002"`}, {"agents", `owner_not_contains: "0xa002"`}, {"agents", `owner_gt: "0x000000000000000000000000000000000000a001"`},
		{"agents", `agentURI_contains: "agent.example"`}, {"agents", `agentURI_not_contains: "agent.example"`},
		{"agents", `agentURI_starts_with: "ipfs"`}, {"agents", `agentURI_starts_with_nocase: "IPFS"`},
		{"agents", `agentURI_ends_with: ".json"`}, {"agents", `agentURI_not_ends_with_nocase: ".JSON"`},
		{"agents", `agentURIType_in: ["data", "ipfs"]`}, {"agents", `agentURIType_not_starts_with: "h"`},
		{"agents", `operators_contains: ["0x000000000000000000000000000000000000a028"]`},
		{"agents", `operators_not_contains: ["0x000000000000000000000000000000000000A028"]`}, {"agents", `operators: []`},
		{"agents", `operators_not: []`}, {"agents", `registrationFile: null`}, {"agents", `registrationFile_not: null`},
		{"agents", `registrationFile_: {active: true}`}, {"agents", `registrationFile_: {active: null}`},
		{"agents", `registrationFile_: {}`}, {"agents", `registrationFile_: {name_in: ["beta", null]}`},
		{"agents", `registrationFile_: {supportedTrusts_contains_nocase: ["TEE"]}`},
		{"agents", `registrationFile_: {supportedTrusts_contains: ["tee", "reputation"]}`},
		{"agents", `registrationFile_: {supportedTrusts: ["reputation", "tee"]}`},
		{"agents", `feedback_: {isRevoked: true}`}, {"agents", `feedback_: {agent_: {feedback_: {tag1: "speed"}}}`},
		{"agents", `or: [{agentId: 1}, {agentId: 2}]`}, {"agents", `agentId_lt: 5, or: [{agentId: 10}, {agentId: 2}]`},
		{"agents", `and: [{agentId_gt: 1}, {agentId_lt: 10}]`}, {"agents", `or: []`}, {"agents", `_change_block: {number_gte: 6}`},
		{"feedbacks", `value_gte: -5.5, value_lt: "99.50"`}, {"feedbacks", `value: 99.5`}, {"feedbacks", `value_in: ["-5", 99.50]`},
		{"feedbacks", `isRevoked: true`}, {"feedbacks", `isRevoked_not: true`}, {"feedbacks", `isRevoked_in: [true, false]`},
		{"feedbacks", `revokedAt: null`}, {"feedbacks", `revokedAt_not: null`}, {"feedbacks", `tag1: ""`}, {"feedbacks", `tag1_not: ""`},
		{"feedbacks", `tag1_gt: "quality"`}, {"feedbacks", `tag1_contains_nocase: "UAL"`}, {"feedbacks", `agent: "8453:1"`},
		{"feedbacks", `agent_starts_with: "8453:"`}, {"feedbacks", `agent_: {owner: "0x000000000000000000000000000000000000a002"}`},
		{"feedbacks", `feedbackFile_not: null`}, {"feedbacks", `feedbackFile_: {a2aSkills_contains: ["sum"]}`},
		{"feedbacks", `responses_: {responder: "0x000000000000000000000000000000000000a001"}`},
		{"validations", `status: PENDING`}, {"validations", `status_in: ["COMPLETED", EXPIRED]`}, {"validations", `response_gte: 50`},
		{"validations", `id: "0xaa00000000000000000000000000000000000000000000000000000000000000"`},
		{"protocols", `id: "8453"`}, {"protocols", `id: "1"`}, {"protocols", `id_not: "1"`},
		{"agentMetadata_collection", `id: "8453:1:model"`}, {"agentMetadata_collection", `value_not: "0x677074"`},
	} {
		type list struct{ List []struct{ ID string } }
		ids := []string{}
		for _, e := range answered[list](t, s.ask(fmt.Sprintf("{ list: %s(where: {%s}) { id } }", c.list, c.where), nil)).List {
			ids = append(ids, e.ID)
		}
		answers[c.list+": "+c.where] = ids
	}
	all, err := json.Marshal(answers)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "operators", all)
}
