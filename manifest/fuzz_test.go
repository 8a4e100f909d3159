package manifest

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"repute"
	"repute/internal/jsonwalk"
)

// addSeeds gives every fuzz target documents of every kind and shape.
func addSeeds(f *testing.F) {
	for _, seed := range []string{
		standard, nestedFeedback, flatFeedback, card03, card10,
		`{"services":{"a":["\ud800"]},"registrations":[{"agentId":"x"}]}`,
		`{"endpoints":[1,"x",{"type":{}}],"x402support":{"enabled":1,"b":2}}`,
		"\xef\xbb\xbf{\"a\":1,\"a\":2}",
		`{"score":"1e9","mcp":[],"a2a":{"skills":[{}],"x":1},"oasf":"","capability":"t","proof_of_payment":{}}`,
		`{"url":["https://a"],"skills":[{"id":1,"tags":"x"},[]],"capabilities":[1],"security":[{"a":[]}],"securitySchemes":[]}`,
		`{"services":[{"endpoint":{"url":"https://A.example:8/x"}}],"registrations":{"agentId":"7","agentRegistry":"0x0","chainId":"1"}}`,
	} {
		f.Add([]byte(seed))
	}
}

func FuzzParse(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		reg, problems := Parse(b)
		again, more := Parse(b)
		sane(t, reg, problems, again, more)
		_ = Links(reg, repute.AgentID{})
		for _, d := range Domains(reg) {
			if strings.ToLower(d) != d || strings.ContainsAny(d, "/:@ \\?#%") {
				t.Errorf("domain %q", d)
			}
		}
	})
}

func FuzzParseFeedback(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		file, problems := ParseFeedback(b)
		again, more := ParseFeedback(b)
		sane(t, file, problems, again, more)
		sane(t, file, MatchFeedback(file, repute.Feedback{}), again, MatchFeedback(again, repute.Feedback{}))
	})
}

func FuzzParseCard(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		card, problems := ParseCard(b)
		again, more := ParseCard(b)
		sane(t, card, problems, again, more)
		if kind := Detect(b); kind != Detect(b) {
			t.Error("two looks differ")
		}
	})
}

// The splitter of valid JSON sees what encoding/json sees.
func FuzzCursor(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		if !json.Valid(b) {
			return
		}
		var list []json.RawMessage
		if json.Unmarshal(b, &list) == nil && jsonwalk.Type(b) == "an array" {
			if got := jsonwalk.Elements(b); !reflect.DeepEqual(got, list) {
				t.Errorf("%q read as %q", b, got)
			}
		}
		var named map[string]json.RawMessage
		if json.Unmarshal(b, &named) == nil && jsonwalk.Type(b) == "an object" {
			got := map[string]json.RawMessage{}
			for _, m := range membersOf(b) {
				got[m.name] = m.raw
			}
			if !reflect.DeepEqual(got, named) {
				t.Errorf("%q read as %q", b, got)
			}
		}
	})
}

// sane checks what every parser promises: the same answer twice, bounded, and text
// that databases and JSON readers accept.
func sane(t *testing.T, doc any, problems []repute.Problem, again any, more []repute.Problem) {
	t.Helper()
	if !reflect.DeepEqual(doc, again) || !reflect.DeepEqual(problems, more) {
		t.Error("two parses differ")
	}
	if len(problems) > maxProblems+1 {
		t.Errorf("%d problems", len(problems))
	}
	for _, p := range problems {
		if len(p.Path) > 3*maxShort || len(p.Message) > 3*maxShort {
			t.Errorf("a problem of %d and %d bytes", len(p.Path), len(p.Message))
		}
		if explain(p.Code).code == "" {
			t.Errorf("%s is not explained", p.Code)
		}
	}
	saneValue(t, reflect.ValueOf(doc))
	saneValue(t, reflect.ValueOf(problems))
}

// saneValue walks a result: no text is longer than the longest allowed, no list
// longer than the longest, and raw members are the JSON that was read.
func saneValue(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		if s := v.String(); len(s) > maxText || !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
			t.Errorf("%d bytes: %.80q", len(s), s)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			saneValue(t, v.Field(i))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			saneValue(t, v.Elem())
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			saneValue(t, k)
			saneValue(t, v.MapIndex(k))
		}
	case reflect.Slice:
		if raw, ok := v.Interface().(json.RawMessage); ok {
			if len(raw) > maxExtra || !json.Valid(raw) {
				t.Errorf("%d bytes of an unknown member: %.80q", len(raw), raw)
			}
			return
		}
		if v.Len() > maxLinks {
			t.Errorf("%d entries", v.Len())
		}
		for i := range v.Len() {
			saneValue(t, v.Index(i))
		}
	}
}
