package agentjson

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"repute"
)

// flight has a parameter of each kind.
func flight(t *testing.T) *Intent {
	t.Helper()
	m, problems := Parse([]byte(`{"version":"1.4","origin":"a.example.com","payout_address":"0x71C7656EC7ab88b098defB751B7401B5f6d8976F",
		"intents":[{"name":"book","description":"Books a flight.","endpoint":"/book","method":"POST","parameters":{
		"to":{"type":"string","required":true},"seats":{"type":"integer","enum":[1,2]},"most":{"type":"number"},
		"window":{"type":"boolean"},"tags":{"type":"array"},"who":{"type":"object"}}}]}`), Options{})
	if repute.HasErrors(problems) {
		t.Fatalf("%+v", problems)
	}
	return &m.Intents[0]
}

// Arguments are checked against what the manifest says, and nothing else is taken.
func TestCheckArguments(t *testing.T) {
	in := flight(t)
	for text, wrong := range map[string]string{
		`{"to":"LIS"}`: "",
		`{"to":"LIS","seats":2,"most":1.5,"window":true,"tags":[],"who":{}}`: "",
		`{"to":"LIS","most":3}`:              "", // a whole number is a number
		`{}`:                                 "param to: is missing",
		`{"to":7}`:                           "param to: ",
		`{"to":null}`:                        "param to: ",
		`{"to":"LIS","seats":3}`:             "param seats: ",
		`{"to":"LIS","seats":"1"}`:           "param seats: ",
		`{"to":"LIS","seats":1.0}`:           "param seats: ",
		`{"to":"LIS","most":"1"}`:            "param most: ",
		`{"to":"LIS","window":0}`:            "param window: ",
		`{"to":"LIS","tags":{}}`:             "param tags: ",
		`{"to":"LIS","who":[]}`:              "param who: ",
		`{"to":"LIS","admin":true}`:          `param "admin": is not in the manifest`,
		`{"to":"LIS","seats":9,"extra":"x"}`: "param seats: ",
	} {
		var arguments map[string]json.RawMessage
		if err := json.Unmarshal([]byte(text), &arguments); err != nil {
			t.Fatal(err)
		}
		err := in.CheckArguments(arguments)
		if wrong == "" && err != nil || wrong != "" &&
			(!errors.Is(err, repute.ErrInvalid) || !strings.Contains(err.Error(), wrong)) {
			t.Errorf("%s: %v, want %q", text, err, wrong)
		}
	}
	if err := in.CheckArguments(nil); err == nil {
		t.Error("a required parameter is missing")
	}
}

// What a person writes is read by the parameter's type.
func TestArgument(t *testing.T) {
	in := flight(t)
	for _, c := range []struct{ name, text, want string }{
		{"to", "LIS", `"LIS"`}, {"to", "12", `"12"`}, {"to", `a"b`, `"a\"b"`}, {"seats", "2", "2"},
		{"most", " 2.50 ", "2.50"},
		{"window", "true", "true"}, {"tags", `["a"]`, `["a"]`}, {"who", `{"a":1}`, `{"a":1}`},
		{"seats", "two", ""}, {"seats", "2 2", ""}, {"seats", "", ""}, {"window", "yes", ""}, {"tags", "a", ""},
		{"other", "1", ""},
	} {
		got, err := in.Argument(c.name, c.text)
		if c.want == "" && !errors.Is(err, repute.ErrInvalid) || c.want != "" && (err != nil || string(got) != c.want) {
			t.Errorf("%s=%s: %s, %v", c.name, c.text, got, err)
		}
	}
}

// Every text is a string's value as it is, and what Argument reads CheckArguments takes.
func TestArgumentAnyText(t *testing.T) {
	in := flight(t)
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"to", "most", "who"}).Draw(t, "name")
		text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"1", "-0.5", "{}", "1e3"})).Draw(t, "text")
		raw, err := in.Argument(name, text)
		if err != nil {
			if name == "to" || !errors.Is(err, repute.ErrInvalid) {
				t.Fatalf("%s=%q: %v", name, text, err)
			}
			return
		}
		var back string
		if name == "to" && (json.Unmarshal(raw, &back) != nil || back != text) {
			t.Errorf("%q became %s", text, raw)
		}
		if err := in.CheckArguments(map[string]json.RawMessage{"to": json.RawMessage(`"x"`), name: raw}); err != nil {
			t.Errorf("%s: %v", raw, err)
		}
	})
}
