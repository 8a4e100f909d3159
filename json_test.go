package repute_test

import (
	"errors"
	"strings"
	"testing"

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

func FuzzCheckJSON(f *testing.F) {
	f.Add([]byte(`{"a":"\ud83d\ude00"}`))
	f.Add([]byte(`"\ud800`))
	f.Fuzz(func(_ *testing.T, raw []byte) { _ = repute.CheckJSON("input", raw) })
}
