package subgraph_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// search is a list of entities with a filter.
type search struct{ list, where string }

// Operators of the types of fields, as graph-node has them.
const (
	equalities = ",not,in,not_in"
	orderings  = equalities + ",gt,lt,gte,lte"
	parts      = ",contains,not_contains"
	noCase     = ",contains_nocase,not_contains_nocase"
	textual    = orderings + parts + noCase + ",starts_with,starts_with_nocase,not_starts_with,not_starts_with_nocase" +
		",ends_with,ends_with_nocase,not_ends_with,not_ends_with_nocase"
)

// operatorsOf are the operators of a type, after a comma each.
func operatorsOf(field string) string {
	switch base := strings.Trim(field, "[]!"); {
	case strings.HasPrefix(field, "[String"):
		return ",not" + parts + noCase
	case strings.HasPrefix(field, "[Bytes"):
		return ",not" + parts
	case strings.HasPrefix(field, "["):
		return "-"
	case slices.Contains([]string{"ID", "BigInt", "BigDecimal", "Int", "Int8", "Timestamp"}, base):
		return orderings
	case base == "Bytes":
		return orderings + parts
	case base == "Boolean" || base == "ValidationStatus":
		return equalities
	}
	return textual // of a text, and of the id of another entity
}

// eachOperator returns every operator of a field of each type.
func eachOperator() (out []search) {
	for _, f := range []struct{ list, field, of, value, first, last, part string }{
		{"agents", "id", "ID", `"8453:10"`, "", "", ""}, {"agents", "createdAt", "BigInt", "1750000004", "", "", ""},
		{"feedbacks", "value", "BigDecimal", `"-5"`, "", "", ""}, {"validations", "response", "Int", "90", "", "", ""},
		{"feedbackPoints", "id", "Int8", `"5000001"`, "", "", ""},
		{"feedbackPoints", "timestamp", "Timestamp", `"1750000010000000"`, "", "", ""},
		{"agents", "agentWallet", "Bytes", `"0x000000000000000000000000000000000000A001"`, "", "", `"A002"`},
		{"feedbacks", "isRevoked", "Boolean", "false", "", "", ""},
		{"validations", "status", "ValidationStatus", "PENDING", "", "", ""},
		{"agentRegistrationFiles", "name", "String", `"beta"`, `"be"`, `"ta"`, `"et"`},
		{"agents", "operators", "[Bytes!]",
			`["0x000000000000000000000000000000000000a028","0x000000000000000000000000000000000000a029"]`, "", "",
			`["0x000000000000000000000000000000000000a029"]`},
		{"agentRegistrationFiles", "supportedTrusts", "[String!]", `["reputation","tee"]`, "", "", `["tee"]`},
		{"feedbacks", "agent", "Agent", `"8453:1"`, `"8453:1"`, `":1"`, `"53:1"`},
	} {
		for _, op := range strings.Split(operatorsOf(f.of), ",") {
			name, value := f.field, f.value
			if op != "" {
				name += "_" + op
			}
			switch {
			case op == "in" || op == "not_in":
				value = "[" + value + "]"
			case strings.Contains(op, "starts"):
				value = f.first
			case strings.Contains(op, "ends"):
				value = f.last
			case strings.Contains(op, "contains"):
				value = f.part
			}
			if strings.HasSuffix(op, "_nocase") {
				value = strings.ToUpper(value)
			}
			out = append(out, search{f.list, name + ": " + value})
		}
	}
	return out
}

// TestFilters: the filter of each entity has the operators of graph-node for each field, and no others.
func TestFilters(t *testing.T) {
	t.Parallel()
	all := typesOf(t, serve(t, story(t).db))
	for name, filter := range all {
		entity, isFilter := strings.CutSuffix(name, "_filter")
		if !isFilter {
			continue
		}
		want := []string{"_change_block", "and", "or"}
		for _, f := range all[entity].Fields {
			if of := f.Type.String(); operatorsOf(of) != "-" {
				for _, op := range strings.Split(operatorsOf(of), ",") {
					want = append(want, strings.TrimSuffix(f.Name+"_"+op, "_"))
				}
			}
			if all[strings.Trim(f.Type.String(), "[]!")].Kind == "OBJECT" {
				want = append(want, f.Name+"_")
			}
		}
		var got []string
		for _, f := range filter.InputFields {
			got = append(got, f.Name)
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s:\n%v\n%v", name, got, want)
		}
	}
}

// TestOperators compares what each operator finds with stored answers.
func TestOperators(t *testing.T) {
	t.Parallel()
	s := serve(t, story(t).db)
	answers := map[string][]string{}
	for _, c := range append(eachOperator(), []search{
		{"agents", `agentId: 2`}, {"agents", `agentId_not: "2"`}, {"agents", `agentId_gt: 2`},
		{"agents", `agentId_lt: 2`},
		{"agents", `agentId_gte: 2`}, {"agents", `agentId_lte: 2`}, {"agents", `agentId_in: [1, "10"]`},
		{"agents", `agentId_in: []`}, {"agents", `agentId_not_in: [1, 10]`}, {"agents", `agentId_not_in: []`},
		{"agents", `id: "8453:10"`}, {"agents", `id_not: "8453:10"`}, {"agents", `id_gt: "8453:10"`},
		{"agents", `id_in: ["8453:2", "x"]`},
		{"agents", `id_not_in: ["8453:2", "x"]`}, {"agents", `owner: "0x000000000000000000000000000000000000A001"`},
		{"agents", `owner_contains: "a002"`}, {"agents", `owner_not_contains: "0xa002"`},
		{"agents", `owner_gt: "0x000000000000000000000000000000000000a001"`},
		{"agents", `agentURI_contains: "agent.example"`}, {"agents", `agentURI_not_contains: "agent.example"`},
		{"agents", `agentURI_starts_with: "ipfs"`}, {"agents", `agentURI_starts_with_nocase: "IPFS"`},
		{"agents", `agentURI_ends_with: ".json"`}, {"agents", `agentURI_not_ends_with_nocase: ".JSON"`},
		{"agents", `agentURIType_in: ["data", "ipfs"]`}, {"agents", `agentURIType_not_starts_with: "h"`},
		{"agents", `operators_contains: ["0x000000000000000000000000000000000000a028"]`},
		{"agents", `operators_not_contains: ["0x000000000000000000000000000000000000A028"]`},
		{"agents", `operators: []`},
		{"agents", `operators_not: []`}, {"agents", `registrationFile: null`}, {"agents", `registrationFile_not: null`},
		{"agents", `registrationFile_: {active: true}`}, {"agents", `registrationFile_: {active: null}`},
		{"agents", `registrationFile_: {}`}, {"agents", `registrationFile_: {name_in: ["beta", null]}`},
		{"agents", `registrationFile_: {supportedTrusts_contains_nocase: ["TEE"]}`},
		{"agents", `registrationFile_: {supportedTrusts_contains: ["tee", "reputation"]}`},
		{"agents", `registrationFile_: {supportedTrusts: ["reputation", "tee"]}`},
		{"agents", `feedback_: {isRevoked: true}`}, {"agents", `feedback_: {agent_: {feedback_: {tag1: "speed"}}}`},
		{"agents", `or: [{agentId: 1}, {agentId: 2}]`}, {"agents", `agentId_lt: 5, or: [{agentId: 10}, {agentId: 2}]`},
		{"agents", `and: [{agentId_gt: 1}, {agentId_lt: 10}]`}, {"agents", `or: []`},
		{"agents", `_change_block: {number_gte: 6}`},
		{"feedbacks", `value_gte: -5.5, value_lt: "99.50"`}, {"feedbacks", `value: 99.5`},
		{"feedbacks", `value_in: ["-5", 99.50]`},
		{"feedbacks", `isRevoked: true`}, {"feedbacks", `isRevoked_not: true`},
		{"feedbacks", `isRevoked_in: [true, false]`},
		{"feedbacks", `revokedAt: null`}, {"feedbacks", `revokedAt_not: null`}, {"feedbacks", `tag1: ""`},
		{"feedbacks", `tag1_not: ""`},
		{"feedbacks", `tag1_gt: "quality"`}, {"feedbacks", `tag1_contains_nocase: "UAL"`},
		{"feedbacks", `agent: "8453:1"`},
		{"feedbacks", `agent_starts_with: "8453:"`},
		{"feedbacks", `agent_: {owner: "0x000000000000000000000000000000000000a002"}`},
		{"feedbacks", `feedbackFile_not: null`}, {"feedbacks", `feedbackFile_: {a2aSkills_contains: ["sum"]}`},
		{"feedbacks", `responses_: {responder: "0x000000000000000000000000000000000000a001"}`},
		{"validations", `status: PENDING`}, {"validations", `status_in: ["COMPLETED", EXPIRED]`},
		{"validations", `response_gte: 50`},
		{"validations", `id: "0xaa00000000000000000000000000000000000000000000000000000000000000"`},
		{"protocols", `id: "8453"`}, {"protocols", `id: "1"`}, {"protocols", `id_not: "1"`},
		{"agentMetadata_collection", `id: "8453:1:model"`}, {"agentMetadata_collection", `value_not: "0x677074"`},
		{"agents", `id_gt: "8453:2"`}, {"agents", `id_gt: "8453:1"`}, {"agents", `id_gt: "8453"`},
		{"agents", `id_gt: "9"`},
		{"agents", `id_lt: "9"`}, {"agents", `id_lt: "8453:2"`}, {"agents", `id_gte: "8453:10", id_lt: "8453:2"`},
		{"feedbacks", `id_gt: "8453:1:0x000000000000000000000000000000000000a0c9"`},
		{"feedbacks", `agent_gt: "8453:1"`},
		{"feedbacks", `agent_lte: "8453:1"`}, {"protocols", `id_gt: "8"`},
	}...) {
		type list struct{ List []struct{ ID string } }
		ids := []string{}
		for _, e := range answered[list](t, s.ask(fmt.Sprintf("{ list: %s(where: {%s}) { id } }", c.list, c.where),
			nil)).List {
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
