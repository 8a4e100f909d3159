package jsonwalk

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// entries lists what a cursor finds.
func entries(text string) (names, values []string) {
	c := NewCursor([]byte(text))
	for c.Next() {
		if c.IsObject {
			names = append(names, c.Name())
		}
		values = append(values, string(c.Value))
	}
	return names, values
}

func TestCursor(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"a":1,"b":{"c":[2]}}`:                `[a b] [1 {"c":[2]}]`,
		" [ 1 , \"x]\" , {\"y\" : 2} ] ":       `[] [1 "x]" {"y" : 2}]`,
		`{"a\"":"\\","\u0062":"\"\\\"", "":0}`: `[a" b ] ["\\" "\"\\\"" 0]`,
		`{}`:                                   `[] []`,
		`[]`:                                   `[] []`,
		`7`:                                    `[] []`,
		``:                                     `[] []`,
	} {
		names, values := entries(text)
		if got := fmt.Sprint(names, values); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// An index is made anew for each text, also after a text without an end.
func TestIndex(t *testing.T) {
	t.Parallel()
	var x Index
	for text, want := range map[string]int{
		`[1,{"a":[],"b":{"c":[[2],"]"]}},"x",[{}]]`: 8,
		`{"a":{"b\"}":[{}]},"c":[]}`:                5,
		`[[[`:                                       3,
		`7`:                                         0,
	} {
		x.Scan([]byte(text))
		if x.Len() != want {
			t.Errorf("%s: %d objects and arrays, want %d", text, x.Len(), want)
		}
		if json.Valid([]byte(text)) {
			sameWalk(t, &x, []byte(text), 0)
		}
	}
}

func TestScan(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Lexical{
		`{"a":[{"b":1}]}`:                    {Depth: 3},
		`"{[{["`:                             {},
		`["\u0000","\ud800","\ud83d\ude00"]`: {Depth: 1, NULs: 1, Surrogates: 1},
		`["\\u0000","\\\ud800 x"]`:           {Depth: 1, Surrogates: 1},
		`["\ud800\ud800\udc00"]`:             {Depth: 1, Surrogates: 1},
		`["no end \`:                         {Depth: 1},
		`[[[`:                                {Depth: 3},
	} {
		if got := Scan([]byte(text)); got != want {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	const text = "{\n  \"a\": [1, {\"b/c\": 2}],\n  \"ä\": 1, \"d\": 1, \"d\": 2\n}"
	for pointer, want := range map[string]string{
		"":           "1:1",
		"/a":         "2:3",
		"/a/0":       "2:9",
		"/a/1/b~1c":  "2:13",
		"/ä":         "3:3",
		"/d":         "3:19",
		"/a/1/none":  "2:12",
		"/missing":   "1:1",
		"/none/b":    "",
		"/a/5/b":     "",
		"/a/0/x/y/z": "",
	} {
		got := ""
		if offset, ok := Find([]byte(text), pointer); ok {
			line, column := Position([]byte(text), offset)
			got = fmt.Sprintf("%d:%d", line, column)
		}
		if got != want {
			t.Errorf("%q: %q, want %q", pointer, got, want)
		}
	}
	if _, ok := Find([]byte(`{`), ""); ok {
		t.Error("found in text that is no JSON")
	}
}

func TestDuplicates(t *testing.T) {
	t.Parallel()
	many := make([]string, 0, 40)
	for i := range 40 {
		many = append(many, fmt.Sprintf(`"m%d":%d`, i, i))
	}
	for text, want := range map[string][]string{
		`{"a":1,"b":2}`:                             nil,
		`{"a":1,"\u0061":2}`:                        {"/a"},
		`{"x":[{"a":{},"a":{"b":1,"b":2}}]}`:        {"/x/0/a", "/x/0/a/b"},
		`{` + strings.Join(many, ",") + `}`:         nil,
		`{` + strings.Join(many, ",") + `,"m3":0}`:  {"/m3"},
		`{` + strings.Join(many, ",") + `,"m39":0}`: {"/m39"},
	} {
		var got []string
		Duplicates([]byte(text), func(pointer string) bool {
			got = append(got, pointer)
			return true
		})
		if !slices.Equal(got, want) {
			t.Errorf("%.60s: %q, want %q", text, got, want)
		}
	}
	n := 0
	Duplicates([]byte(`{"a":1,"a":1,"b":{"c":1,"c":1},"a":1}`), func(string) bool { n++; return n < 2 })
	if n != 2 {
		t.Errorf("reported %d after the end was asked for at 2", n)
	}
}

func TestSyntaxError(t *testing.T) {
	t.Parallel()
	if got := SyntaxError([]byte("{\n \"a\": x}")); !strings.HasSuffix(got, "at line 2, column 7") {
		t.Error(got)
	}
}

func TestCutAndClean(t *testing.T) {
	t.Parallel()
	if got := Cut("aä", 2); got != "a" {
		t.Errorf("%q", got)
	}
	if got := Clean("a\x00\xff"); got != "a\ufffd\ufffd" {
		t.Errorf("%q", got)
	}
}

// The cursor finds the same entries as the decoder of the standard library, whatever the values are.
func TestCursorFindsWhatTheDecoderFinds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOf(rapid.OneOf(
			rapid.Map(rapid.String(), func(s string) any { return s }),
			rapid.Map(rapid.Float64Range(-1e9, 1e9), func(f float64) any { return f }),
			rapid.Map(rapid.MapOf(rapid.String(), rapid.String()), func(m map[string]string) any { return m }),
		)).Draw(t, "values")
		text, err := json.MarshalIndent(values, "", rapid.SampledFrom([]string{"", "\t"}).Draw(t, "indent"))
		if err != nil {
			t.Fatal(err)
		}
		got := Elements(text)
		if len(got) != len(values) {
			t.Fatalf("%d elements of %d", len(got), len(values))
		}
		for i, element := range got {
			var a, b bytes.Buffer
			want, _ := json.Marshal(values[i])
			if json.Compact(&a, element) != nil || json.Compact(&b, want) != nil || a.String() != b.String() {
				t.Fatalf("%s, want %s", element, want)
			}
		}
	})
}

// sameWalk compares what cursors find with an index and without, in a value and in all that is in it.
func sameWalk(t *testing.T, x *Index, value []byte, number int) {
	t.Helper()
	plain, c := NewCursor(value), x.Cursor(value, number)
	for plain.Next() {
		more := c.Next()
		name, at := plain.Offsets()
		if gotName, got := c.Offsets(); !more || gotName != name || got != at || !bytes.Equal(c.Value, plain.Value) {
			t.Fatalf("%s: %s with an index, %s without", value, c.Value, plain.Value)
		}
		if IsContainer(c.Value) {
			sameWalk(t, x, c.Value, c.Number)
		}
	}
	if c.Next() {
		t.Fatalf("%s: with an index also %s", value, c.Value)
	}
}

// Any text can be scanned, and whatever is valid JSON has the members that the standard library finds.
func FuzzWalk(f *testing.F) {
	for _, seed := range []string{`{"a":[1,"\"",{"b":null}]}`, `["\ud800\\"]`, `{"a":1,"a":2}`, `{"`, `"\`, `[[`} {
		f.Add([]byte(seed), "/a/0")
	}
	f.Fuzz(func(t *testing.T, b []byte, pointer string) {
		lex := Scan(b)
		IsWide(b)
		if offset, ok := Find(b, pointer); ok && (offset < 0 || offset > len(b)) {
			t.Fatalf("offset %d of %d", offset, len(b))
		}
		if lex.Depth > 64 || !json.Valid(b) {
			return
		}
		var members map[string]json.RawMessage
		if json.Unmarshal(b, &members) != nil || members == nil {
			return
		}
		found := map[string]string{}
		repeated := 0
		c := NewCursor(b)
		for c.Next() {
			if _, again := found[c.Name()]; again {
				repeated++
			}
			found[c.Name()] = string(c.Value)
		}
		var x Index
		if got := x.Scan(b); got != lex {
			t.Fatalf("%+v with an index, %+v without", got, lex)
		}
		sameWalk(t, &x, bytes.TrimSpace(b), 0)
		if len(found) != len(members) {
			t.Fatalf("%d members, want %d", len(found), len(members))
		}
		for name, value := range members {
			if found[name] != string(value) {
				t.Fatalf("%q is %s, want %s", name, found[name], value)
			}
		}
		reported := 0
		Duplicates(b, func(pointer string) bool {
			if strings.Count(pointer, "/") == 1 {
				reported++
			}
			return true
		})
		if reported != repeated {
			t.Fatalf("%d repeated members reported, want %d", reported, repeated)
		}
	})
}

// Many pointers at once lead where each leads alone, also where they share parts or members are repeated.
func TestFindAll(t *testing.T) {
	t.Parallel()
	const text = ` {"a":[1,{"b/c":2,"x":{"y":[]}}],"d":{"e":1},"d":{"f":2},"":3}`
	pointers := []string{"/d/f", "/a/1/x/y", "/a", "/a/1/b~1c", "", "/d/e", "/none", "/none/b", "/a/1", "/a/1", "/",
		"/a/x", "/a/01"}
	places := FindAll([]byte(text), pointers)
	for i, pointer := range pointers {
		offset, ok := Find([]byte(text), pointer)
		if places[i] != (Place{offset, ok}) {
			t.Errorf("%q: %+v, alone %d %v", pointer, places[i], offset, ok)
		}
	}
	if d := strings.LastIndex(text, `"d"`); places[5] != (Place{d, true}) {
		t.Errorf("of repeated members: %+v, want %d", places[5], d)
	}
	if places := FindAll([]byte(`{"a":`), []string{"/a", ""}); places[0].Found || places[1].Found {
		t.Errorf("in what is no JSON: %+v", places)
	}
}
