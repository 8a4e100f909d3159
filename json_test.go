package repute_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"repute"
)

func TestCheckJSON(t *testing.T) {
	t.Parallel()
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, c := range []struct{ raw, field string }{
		{`null`, ""}, {`{"a":"\ud83d\ude00 \\u0000 \" é"}`, ""}, {deep(64), ""}, {`{"a":` + deep(63) + `}`, ""},
		{`[["]]]]"]]`, ""}, {`"\u00e9\/"`, ""},
		{`{"a":1,"b":{"c":"\u0000"}}`, "input.b:"}, {`{"a":"\ud800"}`, "input.a:"},
		{`{"a":"\udc00\ud800"}`, "input.a:"},
		{`{"a":"\ud800\u0041"}`, "input.a:"}, {`["\uD800\n"]`, "input:"},
		{`{"\u0000":1}`, "input:"}, {deep(65), "input:"}, {`{"a":` + deep(64) + `}`, "input.a:"},
		{`{"x":1,"a":` + deep(9000) + `}`, "input.a:"}, {`{`, "input:"}, {"\"\xff\"", "input:"}, {``, "input:"},
	} {
		err := repute.CheckJSON("input", []byte(c.raw))
		if (c.field == "") != (err == nil) || err != nil &&
			(!errors.Is(err, repute.ErrInvalid) || !strings.HasPrefix(err.Error(), c.field)) {
			t.Errorf("%.60s: %v", c.raw, err)
		}
	}
	if err := repute.CheckJSON("", []byte(`{"goal":"\u0000"}`)); err == nil ||
		!strings.HasPrefix(err.Error(), "goal:") {
		t.Error(err)
	}
}

// FuzzCheckJSON compares with what package encoding/json reads: it replaces half a surrogate pair by U+FFFD.
func FuzzCheckJSON(f *testing.F) {
	for _, seed := range []string{`{"a":"\ud83d\ude00"}`, `"\ud800`, `{"a":"\u0000","a":1}`, `["\udc00", 1e999]`, `"\ufffd"`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		err := repute.CheckJSON("input", raw)
		if !utf8.Valid(raw) || !json.Valid(raw) {
			if err == nil {
				t.Fatalf("%.200q is taken for JSON", raw)
			}
			return
		}
		depth, deepest, isBad, isReplaced := 0, 0, false, false
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.UseNumber()
		for {
			token, end := dec.Token()
			if end != nil {
				break
			}
			switch v := token.(type) {
			case json.Delim:
				if depth--; v == '{' || v == '[' {
					depth += 2
				}
				deepest = max(deepest, depth)
			case string:
				isBad = isBad || strings.Contains(v, "\x00")
				isReplaced = isReplaced || strings.Contains(v, "\ufffd")
			}
		}
		if strings.Contains(string(raw), "\ufffd") || strings.Contains(strings.ToLower(string(raw)), `\ufffd`) {
			isReplaced = err != nil // it may be in the text itself
		}
		if want := isBad || isReplaced || deepest > repute.MaxJSONDepth; want != (err != nil) {
			t.Fatalf("%.200q: refused %v, want %v: %v", raw, err != nil, want, err)
		}
	})
}
