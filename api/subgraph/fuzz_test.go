package subgraph

import (
	"encoding/json"
	"strings"
	"testing"
)

// FuzzQuery: no request makes the reading of it panic, and each refusal is an answer.
func FuzzQuery(f *testing.F) {
	s, err := newSchema()
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{
		`{"query":"{ agents(where: {or: [{id_in: [\"1:2\"]}, {registrationFile_: {name_contains: \"x\"}}]}) { id } }"}`,
		`{"query":"query Q($w: Agent_filter, $n: Int = 5) { agents(first: $n, where: $w) { ...f } } fragment f on Agent { id }","variables":{"w":{"createdAt_gt":17,"operators_contains":["0xaB"]}}}`,
		`{"query":"{ _meta(block: {number: 5}) { block { hash } } agent(id: 5) @skip(if: true) { id } }"}`,
		`{"query":"{ feedbacks(where: {value_gte: -5.5e3, tag1_not: null, _change_block: {number_gte: 4}}) { __typename } }"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := readRequest(body)
		if err != nil {
			return
		}
		o, failed := s.parse(r)
		if failed != nil {
			if !json.Valid(failures(failed)) {
				t.Fatalf("%s", failures(failed))
			}
			return
		}
		for _, p := range o.plans() {
			if p.key == "" || p.page.first > maxFirst && len(o.failures) == 0 {
				t.Fatalf("%+v", p)
			}
			if size := p.page.where.Size(); len(o.failures) == 0 && size > 2*maxConditions+maxValues {
				t.Fatalf("a filter of size %d", size)
			}
		}
		for _, refusal := range o.failures {
			if strings.TrimSpace(refusal.Message) == "" {
				t.Fatal("a refusal without words")
			}
		}
	})
}

// TestDescribe: values in errors are bounded and read as graph-node writes them.
func TestDescribe(t *testing.T) {
	t.Parallel()
	for want, v := range map[string]any{
		"Null": nil, "Boolean(true)": true, "Int(5)": number("5"), "Float(1.5)": number("1.5"), `Enum("x")`: enum("x"),
		`String("a\"b")`: `a"b`, `Object({"a": Int(1), "b": List([Null])})`: map[string]any{"b": []any{nil},
			"a": number("1")},
	} {
		if got := describe(v); got != want {
			t.Errorf("%s, not %s", got, want)
		}
	}
	if got := describe(strings.Repeat("é", 1000)); len(got) > maxDescribed+10 {
		t.Errorf("%d bytes", len(got))
	}
}
