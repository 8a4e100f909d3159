package query

import (
	"context"
	"errors"
	"testing"
	"testing/fstest"
)

// TestFragmentsAreAppended: a document ends with the fragments that it and they use, once each.
func TestFragmentsAreAppended(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{"queries/a.graphql": {Data: []byte("query A { x { ...One ...One } }")},
		"queries/fragments/One.graphql": {Data: []byte("fragment One on X { y { ...Two } }")},
		"queries/fragments/Two.graphql": {Data: []byte("fragment Two on Y { z }")}}
	got, err := Read(files)
	want := "query A { x { ...One ...One } }\nfragment One on X { y { ...Two } }\nfragment Two on Y { z }"
	if err != nil || got["a"] != want {
		t.Errorf("%q, %v", got["a"], err)
	}
	files["queries/b.graphql"] = &fstest.MapFile{Data: []byte("{ a { ...Nowhere } }")}
	if _, err := Read(files); err == nil {
		t.Error("a fragment that is nowhere is no error")
	}
}

// told is a Runner with a fixed answer.
type told string

// Run implements Runner.
func (a told) Run(context.Context, string, map[string]any) ([]byte, error) { return []byte(a), nil }

// TestAnswersAreDecodedStrictly: data has exactly what the type has, and an error of GraphQL stays one.
func TestAnswersAreDecodedStrictly(t *testing.T) {
	t.Parallel()
	type data struct{ A int }
	for answer, want := range map[string]struct {
		a       int
		refused bool
		fails   bool
	}{
		`{"data":{"a":1}}`:       {a: 1},
		`{"data":{"a":1,"b":2}}`: {fails: true},
		`{`:                      {fails: true},
		`{"errors":[{"message":"no","extensions":{"code":"INVALID"}}]}`: {fails: true, refused: true},
	} {
		got, asked, err := Ask[data](t.Context(), told(answer), Documents{"a": "{ a }"}, "a",
			map[string]any{"x": "\u202e"})
		var refused *Error
		if (err != nil) != want.fails || errors.As(err, &refused) != want.refused || err == nil && got.A != want.a {
			t.Errorf("%s: %+v, %v", answer, got, err)
		}
		if asked.Name != "a" || asked.Document != "{ a }" || asked.Variables != "{\n  \"x\": \"\\u202e\"\n}" {
			t.Errorf("%+v", asked)
		}
	}
	if _, _, err := Ask[data](t.Context(), told(""), Documents{}, "a", nil); err == nil {
		t.Error("an unknown document is no error")
	}
}

// TestVisibleVariables: what is shown of variables means the same and has no character that cannot be seen.
func TestVisibleVariables(t *testing.T) {
	t.Parallel()
	if got := visible([]byte("{\n  \"q\": \"\u202ea 😀 é\"\n}")); got != "{\n  \"q\": \"\\u202ea \\ud83d\\ude00 é\"\n}" {
		t.Errorf("%q", got)
	}
}
