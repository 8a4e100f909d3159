package subgraph_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestBadInput compares the refusals of queries with the words of graph-node.
func TestBadInput(t *testing.T) {
	t.Parallel()
	l := story(t)
	s := serve(t, l.db)
	for query, want := range map[string]string{
		`{ agents(first: 0) { id } }`:                                                            "The `first` argument must be between 0 and 1000, but is 0",
		`{ agents(first: 1001) { id } }`:                                                         "The `first` argument must be between 0 and 1000, but is 1001",
		`{ agents(first: -1) { id } }`:                                                           "The `first` argument must be between 0 and 1000, but is -1",
		`{ agents(first: 99999999999999999999) { id } }`:                                         "The `first` argument must be between 0 and 1000, but is 99999999999999999999",
		`{ agents(skip: -1) { id } }`:                                                            "The `skip` argument must be between 0 and 4294967295, but is -1",
		`{ agents(first: "many") { id } }`:                                                       "Invalid value provided for argument `first`: String(\"many\")",
		`{ agents(orderBy: nothing) { id } }`:                                                    "Invalid value provided for argument `orderBy`: Enum(\"nothing\")",
		`{ agents(orderDirection: up) { id } }`:                                                  "Invalid value provided for argument `orderDirection`: Enum(\"up\")",
		`{ agents(where: 3) { id } }`:                                                            "Filter must by an object",
		`{ agents(where: {or: 3}) { id } }`:                                                      "Filter must by an object",
		`{ agents(where: {nothing: 3}) { id } }`:                                                 "Entity `Agent` has no attribute `nothing`",
		`{ agents(where: {registrationFile_: {x_not: 3}}) { id } }`:                              "Entity `AgentRegistrationFile` has no attribute `x_not`",
		`{ agents(where: {registrationFile_: null}) { id } }`:                                    "Query contains value with invalid type `AgentRegistrationFile`: `Null`",
		`{ agents(where: {owner: "0xzz"}) { id } }`:                                              "Failed to decode `Bytes` value: `Invalid character 'z' at position 0`",
		`{ agents(where: {owner: "0xabc"}) { id } }`:                                             "Failed to decode `Bytes` value: `Odd number of digits`",
		`{ agents(where: {agentId: "many"}) { id } }`:                                            "Failed to decode `BigInt` value: `invalid digit found in string`",
		`{ agents(where: {agentId_gt: null}) { id } }`:                                           "Filter not supported by value `null`: `gt`",
		`{ agents(where: {agentId: [1]}) { id } }`:                                               "Query contains value with invalid type `BigInt`: `List([Int(1)])`",
		`{ feedbacks(where: {value: "1e9999"}) { id } }`:                                         "Failed to decode `BigDecimal` value: `invalid decimal`",
		`{ feedbacks(where: {value_gt: ".+5"}) { id } }`:                                         "Failed to decode `BigDecimal` value: `invalid decimal`",
		`{ feedbacks(where: {isRevoked: "yes"}) { id } }`:                                        "Failed to decode `Boolean` value: `String(\"yes\")`",
		`{ agents(where: {agentURI: "a\u0000b"}) { id } }`:                                       "Failed to decode `String` value: `a zero byte is in no text`",
		`{ agents(where: {operators_contains: ["zz"]}) { id } }`:                                 "Failed to decode `Bytes` value: `Invalid character 'z' at position 0`",
		`{ agents(where: {registrationFile_: {supportedTrusts_contains: ["a\u0000"]}}) { id } }`: "a zero byte is in no text",
		`{ feedbacks(where: {tag1_in: ["\u0000"]}) { id } }`:                                     "a zero byte is in no text",
		`{ agents(where: {id_gt: "8453:\u0000"}) { id } }`:                                       "a zero byte is in no text",
		`{ agent(id: "8453:1\u0000") { id } }`:                                                   "a zero byte is in no text",
		`{ validations(where: {status: LOST}) { id } }`:                                          "Failed to decode `ValidationStatus` value: `Enum(\"LOST\")`",
		`{ agents(where: {agentId: ` + strings.Repeat("9", 201) +
			`}) { id } }`: "Failed to decode `BigInt` value: `invalid digit found in string`",
		`{ agents(orderBy: "id\u0000") { id } }`:                   "Invalid value provided for argument `orderBy`: String(\"id\\x00\")",
		`{ protocolAgentStats_collection { id } }`:                 "No value provided for required argument: `interval`",
		`{ protocolAgentStats_collection(interval: week) { id } }`: "Invalid value provided for argument `interval`: Enum(\"week\")",
		`{ agents(where: {a: ` + strings.Repeat("[", 5_000) + strings.Repeat("]", 5_000) +
			`}) { id } }`: "exceeded maximum nesting depth of 1000",
		`{ agents { ...a } } ` +
			doubling(20): "query is too expensive",
		`{ nothing { id } }`:                                  "Type `Query` has no field `nothing`",
		`{ agents { nothing } }`:                              "Type `Agent` has no field `nothing`",
		`{ _meta { nothing } }`:                               "Type `_Meta_` has no field `nothing`",
		`{ agent { id } }`:                                    "No value provided for required argument: `id`",
		`query($id: ID!) { agent(id: $id) { id } }`:           "No value provided for required variable `id`",
		`{ agents { ...none } }`:                              "fragment `none` is not defined",
		`fragment f on Agent { ...f } { agents { ...f } }`:    "query is too expensive",
		`mutation { x }`:                                      "Not supported: Mutations are not supported",
		`subscription { x }`:                                  "Not supported: Subscriptions are not supported",
		`query a { agents { id } } query b { agents { id } }`: "Operation name required",
		``:                                       "The query is empty",
		`{ agents`:                               "Expected Name, found <EOF>",
		`{ agents(block: {number: 99}) { id } }`: "has only indexed up to block number 8 and data for block number 99 is therefore not yet available`",
		`{ agents(block: {number_gte: 99}) { id } }`: "has only indexed up to block number 8 and data for block number 99 is therefore not yet available`",
		`{ agents(block: {number: 2}) { id } }`:      "only has data starting at block number 8 and data for block number 2 is therefore not available`",
		`{ agents(block: {hash: "0x12"}) { id } }`:   "Failed to decode `block.hash` value: `no block with that hash found`",
		`{ agents(block: 5) { id } }`:                "Invalid value provided for argument `block`: Int(5)",
		`{ agents(subgraphError: maybe) { id } }`:    "Invalid value provided for argument `subgraphError`: Enum(\"maybe\")",
		`{ agents(where: {` + nested(40) +
			`}) { id } }`: "query is too expensive",
		`{ agents(where: {or: [` + strings.Repeat("{agentId: 1},", 10_000) +
			`]}) { id } }`: "query is too expensive",
		`{ agents(where: {agentId_in: [` + strings.Repeat("1,", 25_000) +
			`]}) { id } }`: "query is too expensive",
		`{ agents ` + strings.Repeat("{ feedback { agent ", 6) + "{ id }" + strings.Repeat("}}", 6) +
			` }`: "query has a depth that exceeds the limit of `10`",
		`{ ` + manyFields(101) +
			` }`: "query is too expensive",
	} {
		began := time.Now()
		messages := refused(t, s.ask(query, nil))
		if !strings.Contains(messages[0], want) {
			t.Errorf("%.100s: %q, not %q", query, messages, want)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("%.100s took %s", query, took)
		}
	}
	if all := refused(t, s.ask(`{ agents { a b } c }`, nil)); len(all) != 3 {
		t.Errorf("each unknown field is named: %q", all)
	}
}

// doubling are fragments of which each has the next one twice.
func doubling(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "fragment %[1]c on Agent { ...%[2]c ...%[2]c } ", 'a'+i, 'a'+i+1)
	}
	fmt.Fprintf(&b, "fragment %c on Agent { id }", 'a'+n)
	return b.String()
}

// nested is a filter that nests and in and.
func nested(depth int) string {
	return strings.Repeat("and: [{", depth) + "agentId: 1" + strings.Repeat("}]", depth)
}

// manyFields are fields of a query under many keys.
func manyFields(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "a%d: agents { id } ", i)
	}
	return b.String()
}

// TestWildcards: the texts of users are no patterns.
func TestWildcards(t *testing.T) {
	t.Parallel()
	s := serve(t, story(t).db)
	for text, want := range map[string]int{"%": 1, "_": 1, "100%_": 1, "A%a": 0, "%%": 0, `\`: 0, "": 2} {
		for _, op := range []string{"name_contains", "name_contains_nocase"} {
			type list struct{ Agents []struct{ ID string } }
			got := answered[list](t, s.ask(`query($w: Agent_filter) { agents(where: $w) { id } }`,
				map[string]any{"w": map[string]any{"registrationFile_": map[string]any{op: text}}}))
			if len(got.Agents) != want {
				t.Errorf("%s %q: %+v", op, text, got)
			}
		}
	}
}

// TestRequests: what is no request gets a problem, and an unknown chain too.
func TestRequests(t *testing.T) {
	t.Parallel()
	s := serve(t, story(t).db)
	deep := `{"query":"{ agents(where: $w) { id } }","variables":{"w":` + strings.Repeat(`{"and":[`, 2000) +
		strings.Repeat(`]}`, 2000) + `}}`
	for _, c := range []struct {
		path, body string
		status     int
	}{
		{"/subgraphs/8453", `{`, http.StatusBadRequest}, {"/subgraphs/8453", `{} {}`, http.StatusBadRequest},
		{"/subgraphs/8453", `[]`, http.StatusBadRequest}, {"/subgraphs/8453", ``, http.StatusBadRequest},
		{"/subgraphs/8453", `{"query":5}`, http.StatusBadRequest},
		{"/subgraphs/base", `{"query":"{ agents { id } }"}`, http.StatusBadRequest},
		{"/subgraphs/5", `{"query":"{ agents { id } }"}`, http.StatusNotFound},
		{"/subgraphs/8453", `{}`, http.StatusOK}, {"/subgraphs/8453", deep, http.StatusOK},
		{"/subgraphs/8453", `{"query":"query($w: X) { agents(where: $w) { id } }","variables":{"w":{"and":null}}}`,
			http.StatusOK},
	} {
		if status, answer := s.post(c.path, c.body); status != c.status || !json.Valid(answer) {
			t.Errorf("%s %.80s: %d %.300s", c.path, c.body, status, answer)
		}
	}
}

// TestBlocks: a query may name the newest block, by number or hash, and a block that is indexed by number_gte.
func TestBlocks(t *testing.T) {
	t.Parallel()
	l := story(t)
	s := serve(t, l.db)
	for _, block := range []string{"{number: 8}", "{number_gte: 2}", fmt.Sprintf("{hash: %q}", l.tip.Hash.Hex()), "{}",
		"null"} {
		answered[map[string]any](t, s.ask(`{ agents(block: `+block+`, subgraphError: allow) { id } }`, nil))
	}
	if a := string(s.ask(`{ agents(first: 1) { id totalFeedback } _meta { block { number } } }`, nil)); a !=
		`{"data":{"agents":[{"id":"8453:1","totalFeedback":"1"}],"_meta":{"block":{"number":8}}}}` {
		t.Error(a) // the example of the documentation
	}
	type meta struct {
		Meta struct {
			Block struct {
				Hash      *string
				Number    int64
				Timestamp int64
			}
			Deployment string
		} `json:"_meta"`
	}
	m := answered[meta](t, s.ask(`{ _meta { block { hash number timestamp parentHash } deployment } }`, nil)).Meta
	if m.Block.Hash == nil || *m.Block.Hash != l.tip.Hash.Hex() || m.Block.Number != 8 ||
		m.Block.Timestamp != secondsOf(8) ||
		len(m.Deployment) != 46 {
		t.Errorf("%+v", m)
	}
	if m := answered[meta](t, s.ask(`{ _meta(block: {number: 8}) { block { hash number } } }`,
		nil)).Meta; m.Block.Hash != nil {
		t.Errorf("by number: %+v", m)
	}
}

// TestHaltedChain: data of a chain with a replaced final block is left out, unless the query allows it.
func TestHaltedChain(t *testing.T) {
	t.Parallel()
	l := story(t)
	s := serve(t, l.db)
	if _, err := l.db.Pool().Exec(t.Context(), "update chains set halted = true"); err != nil {
		t.Fatal(err)
	}
	if m := refused(t, s.ask(`{ agents { id } }`, nil)); m[0] != "indexing_error" {
		t.Errorf("%q", m)
	}
	if a := string(s.ask(`{ agents(first: 1, subgraphError: allow) { id } }`, nil)); a !=
		`{"data":{"agents":[{"id":"8453:1"}]},"errors":[{"message":"indexing_error"}]}` {
		t.Error(a)
	}
	if a := string(s.ask(`{ _meta { hasIndexingErrors } }`,
		nil)); a != `{"data":{"_meta":{"hasIndexingErrors":true}}}` {
		t.Error(a)
	}
}
