package manifest

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"repute"
	"repute/internal/jsonwalk"
)

func TestParseTrustShapes(t *testing.T) {
	for value, want := range map[string][]string{
		`["reputation"]`:                  {"reputation"},
		`"reputation"`:                    {"reputation"},
		`[]`:                              nil,
		`null`:                            nil,
		`7`:                               {"7"},
		`["a", null, true, ["b"], ""]`:    {"a"},
		`[{"type": "tee"}, {"x": 1}, {}]`: {"tee"},
		`[` + strings.Repeat(`"a",`, maxTrust+1) + `"b"]`: slices.Repeat([]string{"a"}, maxTrust),
	} {
		reg, _ := Parse([]byte(`{"services":[],"supportedTrust":` + value + `}`))
		if !slices.Equal(reg.SupportedTrust, want) {
			t.Errorf("%.60s read as %q, want %q", value, reg.SupportedTrust, want)
		}
	}
}

func TestParseLinkShapes(t *testing.T) {
	const addr = "0x8004a169fb4a3325136eb29fa0ceb6d2e539a432"
	for value, want := range map[string]string{
		`[{"agentId":0,"agentRegistry":"eip155:1:` + addr + `"}]`:        "[0 eip155:1:" + addr + "]",
		`{"agentId":1,"agentRegistry":"eip155:1:` + addr + `"}`:          "[1 eip155:1:" + addr + "]",
		`[{"tokenId":"2","chainId":"8453","contract":"` + addr + `"}]`:   "[2 eip155:8453:" + addr + "]",
		`[{"agentId":3,"registry":"eip155:5:` + addr + `","chainId":1}]`: "[3 eip155:5:" + addr + "]",
		`[{"agentId":4,"registry":"` + addr + `"}]`:                      "[4 " + addr + "]",
		`[{"agentId":"0x5"},{"agentId":6.0},{"agentId":[7]},{}]`:         "[nil ][nil ][nil ][nil ]",
		`["8", null, [9]]`: "",
		`"text"`:           "",
	} {
		reg, problems := Parse([]byte(`{"registrations":` + value + `}`))
		got := ""
		for _, l := range reg.Registrations {
			id := "nil"
			if l.TokenID != nil {
				id = l.TokenID.Dec()
			}
			got += fmt.Sprintf("[%s %s]", id, l.Registry)
		}
		if got != want || repute.HasErrors(problems) {
			t.Errorf("%s read as %s, want %s", value, got, want)
		}
	}
}

func TestParseManyNamedServices(t *testing.T) {
	var doc strings.Builder
	for i := range maxServices + 10 {
		fmt.Fprintf(&doc, `,"s%d":"https://a.example/%d"`, i, i)
	}
	reg, problems := Parse([]byte(`{"services":{` + doc.String()[1:] + `}}`))
	if len(reg.Services) != maxServices || reg.Services[9].Name != "s9" ||
		reg.Services[9].Endpoint != "https://a.example/9" {
		t.Errorf("%d services, the tenth %+v", len(reg.Services), reg.Services[min(9, len(reg.Services)-1)])
	}
	if !slices.Contains(codesOf(problems), CodeTooMany+"/services") {
		t.Errorf("problems %v", codesOf(problems))
	}
}

// Unknown members survive as they were written, numbers with all their digits.
func TestParseKeepsUnknownMembers(t *testing.T) {
	reg, _ := Parse([]byte(`{"services":[{"name":"a","endpoint":"b","fee":1.10}],"big":12345678901234567890.10,"o":{"b":1, "a":2}}`))
	want := map[string]string{"big": "12345678901234567890.10", "o": `{"b":1, "a":2}`}
	got := map[string]string{}
	for name, value := range reg.Extra {
		got[name] = string(value)
	}
	if !reflect.DeepEqual(got, want) || string(reg.Services[0].Extra["fee"]) != "1.10" {
		t.Errorf("extra %v, service %s", got, reg.Services[0].Extra)
	}
}

// The list of problems is a public contract: every code says its severity and a
// document may repeat a code, but each entry says where.
func TestSeverities(t *testing.T) {
	for code, want := range map[string]repute.Severity{
		CodeNotJSON: repute.SeverityError, CodeAlias: repute.SeverityWarning, CodeNoLinks: repute.SeverityInfo,
	} {
		if got := repute.SeverityOf(code); got != want {
			t.Errorf("%s is %s, want %s", code, got, want)
		}
	}
	if repute.HasErrors([]repute.Problem{{Severity: repute.SeverityWarning}}) {
		t.Error("a warning is no error")
	}
}

func TestCutKeepsCharacters(t *testing.T) {
	for _, c := range []struct {
		in   string
		n    int
		want string
	}{{"abc", 3, "abc"}, {"abc", 2, "ab"}, {"aé", 2, "a"}, {"é", 1, ""}, {"", 0, ""}} {
		if got := jsonwalk.Cut(c.in, c.n); got != c.want {
			t.Errorf("jsonwalk.Cut(%q, %d) = %q, want %q", c.in, c.n, got, c.want)
		}
	}
}

// A long name above many values must not cost the square of the document.
func TestParseIsLinear(t *testing.T) {
	doc := `{"` + strings.Repeat("k", 500_000) + `":[` + strings.Repeat("0,", 250_000) + `{"a":1,"a":2}]}`
	_, problems := Parse([]byte(doc))
	i := slices.IndexFunc(problems, func(p repute.Problem) bool { return p.Code == CodeDuplicate })
	if i < 0 || len(problems[i].Path) > maxShort {
		t.Errorf("problems %d, duplicate at %d", len(problems), i)
	}
}

// Nor must repetitions below long names, of which only the first are told.
func TestRepetitionsDeepDownAreCheap(t *testing.T) {
	const levels = 60
	doc := strings.Repeat(`{"`+strings.Repeat("n", maxShort)+`":`, levels) +
		`{"a":1` + strings.Repeat(`,"a":1`, 100_000) + strings.Repeat("}", levels+1)
	var problems []repute.Problem
	allocs := testing.AllocsPerRun(1, func() { _, problems = Parse([]byte(doc)) })
	if len(problems) != maxProblems+1 || allocs > 50_000 {
		t.Errorf("%d problems took %.0f allocations", len(problems), allocs)
	}
}
