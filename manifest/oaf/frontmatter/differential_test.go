package frontmatter

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"repute/manifest/oaf/problem"
)

// values returns JSON values: what YAML could take for something else is among the texts.
func values(depth int) *rapid.Generator[any] {
	scalars := []*rapid.Generator[any]{
		rapid.Just[any](nil), rapid.Bool().AsAny(), rapid.IntRange(-1000, 1000).AsAny(),
		rapid.Float64Range(-1e9, 1e9).AsAny(),
		rapid.StringMatching(`[ -~]{0,20}`).AsAny(), rapid.StringOf(rapid.Rune()).AsAny(),
		rapid.SampledFrom([]any{"null", "1.10", "yes", "~", "0x1F", "2026-01-15", "<<", "=", "*a", "&a", "!t", "{{x}}",
			"a\nb", "🙂"}),
	}
	if depth > 0 {
		scalars = append(scalars, rapid.SliceOfN(values(depth-1), 0, 3).AsAny(),
			rapid.MapOfN(rapid.StringMatching(`[a-z~/ -]{1,6}`), values(depth-1), 0, 3).AsAny())
	}
	return rapid.OneOf(scalars...)
}

// objects returns the text of a JSON object with its value, in one line or in several.
func objects(t *rapid.T) (text string, value map[string]any) {
	v := rapid.MapOfN(rapid.StringMatching(`[a-z~/ -]{1,6}`), values(2), 0, 5).Draw(t, "value")
	indent := rapid.SampledFrom([]string{"", "  ", "\t"}).Draw(t, "indent")
	raw, err := json.MarshalIndent(v, "", indent)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &value); err != nil {
		t.Fatal(err)
	}
	return string(raw), value
}

// members returns what was read as Go values.
func members(t *rapid.T, o *Object) map[string]any {
	out := map[string]any{}
	for key, raw := range o.Members() {
		var v any
		if err := json.Unmarshal(raw, &v); err != nil {
			t.Fatalf("%s is written as %q: %v", key, raw, err)
		}
		out[key] = v
	}
	return out
}

// JSON is read as the standard library reads it, and each member is at its line.
func TestParseJSONAgreesWithTheLibrary(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text, want := objects(t)
		l := &problem.List{}
		o := ParseJSON(text, "f", l)
		if o == nil || l.Len() > 0 {
			t.Fatalf("%v: %s", l.Problems(), text)
		}
		if got := members(t, o); !reflect.DeepEqual(got, want) {
			t.Fatalf("%v is read from %s", got, text)
		}
		lines := strings.Split(text, "\n")
		for _, key := range o.Keys() {
			if at := o.At(key).Line; at < 1 || at > len(lines) {
				t.Fatalf("%q is at line %d of %d", key, at, len(lines))
			}
		}
	})
}

// A JSON object in block style is the same object: what is written is read again, whatever the texts look like.
func TestYAMLCarriesEveryJSON(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text, want := objects(t)
		m := NewMap()
		l := &problem.List{}
		m.Members(ParseJSON(text, "f", l).Members())
		written, err := m.YAML()
		if err != nil {
			t.Fatal(err)
		}
		o := ParseYAML(written, "f", l)
		if o == nil || l.Len() > 0 {
			t.Fatalf("%v\n%s", l.Problems(), written)
		}
		if got := members(t, o); !reflect.DeepEqual(got, want) {
			t.Fatalf("%v, want %v, is read from\n%s", got, want, written)
		}
		again, err := NewMap().Members(o.Members()).YAML()
		if err != nil || again != written {
			t.Fatalf("written again: %v\n%s\n%s", err, again, written)
		}
	})
}

// A file of frontmatter and body is divided where it was joined.
func TestSplitDividesWhatJoinJoins(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		body := TrimBody(rapid.StringMatching(`[a-z# \n-]{0,40}`).Draw(t, "body"))
		head := rapid.SampledFrom([]string{"", "a: b\n", "a: |\n  ---\n", "- x\n"}).Draw(t, "head")
		got := Split(Join(head, body))
		if !got.HasHead || got.Head != head || TrimBody(got.Body) != body {
			t.Fatalf("%+v of %q and %q", got, head, body)
		}
	})
}

// Bytes of strangers become UTF-8 with LF line ends, or nothing, and a second cleaning finds nothing.
func TestCleanIsComplete(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.OneOf(rapid.SliceOfN(rapid.Byte(), 0, 20), rapid.Map(rapid.StringMatching(`[a\r\n\x{feff}é]{0,12}`),
			func(s string) []byte { return []byte(s) })).Draw(t, "bytes")
		l := &problem.List{}
		text, ok := Clean(b, "f", l)
		if !ok {
			if text != "" || l.Len() == 0 {
				t.Fatalf("%q is refused without a reason", b)
			}
			return
		}
		if !utf8.ValidString(text) || strings.ContainsAny(text, "\r\x00") {
			t.Fatalf("%q is cleaned to %q", b, text)
		}
		again := &problem.List{}
		if twice, ok := Clean([]byte(text), "f", again); !strings.HasPrefix(text, "\ufeff") &&
			(!ok || twice != text || again.Len() > 0) {
			t.Fatalf("%q is cleaned to %q", text, twice)
		}
	})
}

// The replaced member has the new text, and every other line is as it was.
func TestReplaceChangesOneLine(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.OneOf(rapid.StringMatching(`[ -~]{0,20}`),
			rapid.SampledFrom([]string{"1.10", "é", "a\\b", `"`, "#"})).Draw(t, "value")
		before := rapid.SampledFrom([]string{"name: x\n", "a:\n  version: 1\n", "# version: 1\n", ""}).Draw(t, "before")
		end := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "end")
		file := strings.ReplaceAll("---\n"+before+"version: 1.0.0 # now\nz: 1\n---\nversion: y\n", "\n", end)
		got, ok := Replace(file, "version", value)
		if !ok {
			t.Fatalf("%q is not replaced", file)
		}
		was, is := strings.Split(file, "\n"), strings.Split(got, "\n")
		changed := 0
		for i := range was {
			if i < len(is) && was[i] != is[i] {
				changed++
			}
		}
		l := &problem.List{}
		text, _ := Clean([]byte(got), "f", l)
		parts := Split(text)
		o := parts.Object("f", l)
		if len(was) != len(is) || changed != 1 || o.Text("version") != value {
			t.Fatalf("%d lines changed, version %q, want %q:\n%s", changed, o.Text("version"), value, got)
		}
	})
}

// Members without a value are left out, those that are always there are written, and numbers keep their kind.
func TestMapLeavesEmptyMembersOut(t *testing.T) {
	t.Parallel()
	zero, part := 0.0, 0.5
	for want, m := range map[string]*Map{
		"{}\n": NewMap().Text("a", "").Texts("b", nil).Bool("c", false).Number("d", 0).Float("e", nil).Map("f",
			NewMap()).
			Maps("g", nil).TextMap("h", nil).JSON("i", nil).Members(nil),
		"a: \"\"\nb: []\nc: true\n": NewMap().Always("a", "").Texts("b", []string{}).Bool("c", true),
		"a: 0\nb: 0.5\nc: 12\n":     NewMap().Float("a", &zero).Float("b", &part).Number("c", 12),
		"a:\n  - b: x\n  - c: z\n": NewMap().Maps("a",
			[]*Map{NewMap().Text("b", "x"), NewMap().Text("c", "z")}),
		"a:\n  b: x\n  c: \"1\"\n": NewMap().TextMap("a", map[string]string{"c": "1", "b": "x"}),
		"a: no JSON\nb: 1.10\nc: {}\n": NewMap().JSON("a", json.RawMessage("no JSON")).JSON("b",
			json.RawMessage("1.10")).
			JSON("c", json.RawMessage("{}")),
		"a: |-\n  one\n  two\n": NewMap().Text("a", "one\ntwo"),
	} {
		if got, err := m.YAML(); err != nil || got != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
	if m := NewMap().Text("a", "x").Text("b", ""); m.Len() != 1 {
		t.Errorf("%d members, want 1", m.Len())
	}
}

// No line is folded: some readers take one line for one member.
func TestLongTextsAreOneLine(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word ", 500) + "end: #x"
	got, err := NewMap().Text("a", long).YAML()
	if err != nil || strings.Count(got, "\n") != 1 {
		t.Errorf("%v: %d lines", err, strings.Count(got, "\n"))
	}
}

// What counts against the limits is what a document expands to, however short it is written.
func TestExpansionIsCounted(t *testing.T) {
	t.Parallel()
	for entries, ok := range map[int]bool{10: true, 100: true, 2_000: false} {
		text := "a: &a [" + strings.TrimSuffix(strings.Repeat("x,", 10), ",") + "]\nb: [" +
			strings.TrimSuffix(strings.Repeat("*a,", entries), ",") + "]\n"
		l := &problem.List{}
		if o := ParseYAML(text, "f", l); (o != nil) != ok {
			t.Errorf("%d aliases: %v", entries, l.Problems())
		}
	}
	for depth, ok := range map[int]bool{maxDepth - 2: true, maxDepth + 2: false} {
		l := &problem.List{}
		text := `{"a":` + strings.Repeat("[", depth) + strings.Repeat("]", depth) + "}"
		if o := ParseJSON(text, "f", l); (o != nil) != ok {
			t.Errorf("%d levels of JSON: %v", depth, l.Problems())
		}
	}
}

// Whole takes numbers that every machine can hold; others are out of range and count as absent.
func TestWholeNumbers(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"7": 7, "0": 0, "-1": 0, "1.5": 0, "2000000001": 0, "2e3": 2000, "x": 0} {
		l := &problem.List{}
		o := ParseYAML("a: "+text, "f", l)
		got := o.Whole("a")
		if bad := text != "0" && want == 0; got != want || (l.Len() > 0) != bad {
			t.Errorf("%s is %d: %v", text, got, l.Problems())
		}
	}
	l := &problem.List{}
	o := ParseYAML("a: yes\nb: Off\nc: \"true\"\nd: 1\n", "f", l)
	if !o.Bool("a", false) || o.Bool("b", true) || !o.Bool("c", false) || !o.Bool("d", true) || l.Len() != 1 {
		t.Errorf("bools: %v", l.Problems())
	}
}

// Reserved characters at the beginning of a text are mended once, in its own line, and nowhere else.
func TestReservedTextsAreMended(t *testing.T) {
	t.Parallel()
	l := &problem.List{}
	o := parseYAML("a: b\nauthor: @acme\ntags:\n  - x: `y\n", "f", 2, l)
	if o == nil || o.Text("author") != "@acme" || l.Len() != 1 || l.Problems()[0].Line != 4 {
		t.Fatalf("%v", l.Problems())
	}
	for _, text := range []string{"a: @", "a: @b\\c", "a: @x \"y\"", "@a: b", "a: [@b]"} {
		l := &problem.List{}
		if o := ParseYAML(text, "f", l); o != nil && o.Text("a") != strings.TrimPrefix(text, "a: ") {
			t.Errorf("%q is read as %q", text, o.Text("a"))
		}
	}
}

// Any bytes are an object or a problem; what is read can be written, and lines are within the file.
func FuzzDocument(f *testing.F) {
	for _, text := range []string{"a: 1", "{\"a\": [1, {\"b\": null}]}", "a: &x [*x]", "? [a]\n: b", "a: @b",
		"<<: {a: b}", "a: |\n  x\n", "\ta: b"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) || strings.ContainsAny(text, "\r\x00") {
			return // Clean refuses or changes it
		}
		for name, parse := range map[string]func(l *problem.List) *Object{
			"YAML": func(l *problem.List) *Object { return ParseYAML(text, "f", l) },
			"JSON": func(l *problem.List) *Object { return ParseJSON(text, "f", l) },
		} {
			l := &problem.List{}
			o := parse(l)
			if o == nil && l.Len() == 0 {
				t.Fatalf("%s: refused without a problem", name)
			}
			for _, p := range l.Problems() {
				if p.Line < 0 || p.Line > strings.Count(text, "\n")+2 {
					t.Fatalf("%s: line %s is not in the file", name, strconv.Itoa(p.Line))
				}
			}
			for key, raw := range o.Members() {
				if !json.Valid(raw) {
					t.Fatalf("%s: %q is %q", name, key, raw)
				}
			}
			if o == nil {
				continue
			}
			if _, err := NewMap().Members(o.Members()).YAML(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	})
}
