package frontmatter

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"repute/manifest/oaf/problem"
)

// open reads YAML that has no problem.
func open(t testing.TB, text string) *Object {
	t.Helper()
	l := &problem.List{}
	o := ParseYAML(text, "f", l)
	if o == nil || l.Len() > 0 {
		t.Fatalf("not read: %v", l.Problems())
	}
	return o
}

func codes(l *problem.List) string {
	var out []string
	for _, p := range l.Problems() {
		out = append(out, p.Code)
	}
	return strings.Join(out, " ")
}

func TestSplit(t *testing.T) {
	for _, tc := range []struct {
		text, head, body string
		has              bool
	}{
		{"---\na: b\n---\nbody\n---\nmore", "a: b\n", "body\n---\nmore", true},
		{"--- \na: b\n---\t\nbody", "a: b\n", "body", true},
		{"---\n---", "", "", true},
		{"---\n---\n", "", "", true},
		{"---\na: b\n", "", "---\na: b\n", false},
		{"---", "", "---", false},
		{"\n---\na: b\n---\n", "", "\n---\na: b\n---\n", false},
		{"----\na\n---\n", "", "----\na\n---\n", false},
		{"---\na: |\n  ---\n---\nx", "a: |\n  ---\n", "x", true},
		{"", "", "", false},
	} {
		if got := Split(tc.text); got.Head != tc.head || got.Body != tc.body || got.HasHead != tc.has {
			t.Errorf("%q is divided into %+v", tc.text, got)
		}
	}
}

func TestTrimBody(t *testing.T) {
	for text, want := range map[string]string{"\n \n  a\n\nb \n\n": "  a\n\nb", "": "", " \n\t": "", "a": "a"} {
		if got := TrimBody(text); got != want {
			t.Errorf("%q is trimmed to %q, want %q", text, got, want)
		}
	}
}

// The members that a wrong type hides must be reported, and never read as something else.
func TestWrongTypesCountAsAbsent(t *testing.T) {
	l := &problem.List{}
	o := ParseYAML("text: [a]\nlist: {a: b}\nbool: maybe\nnumber: x\nwhole: 1.5\nobject: a\nobjects: {a: b}\nnan: .nan\n", "f", l)
	for name, absent := range map[string]bool{
		"text": o.Text("text") == "", "list": o.Texts("list") == nil, "bool": o.Bool("bool", true),
		"whole":  o.Whole("whole") == 0,
		"object": o.Object("object") == nil, "objects": o.Objects("objects", "") == nil,
	} {
		if !absent {
			t.Errorf("%s was read", name)
		}
	}
	if _, ok := o.Number("number"); ok {
		t.Error("a text is a number")
	}
	if _, ok := o.Number("nan"); ok {
		t.Error("NaN is a number")
	}
	if l.Len() != 8 {
		t.Errorf("%d problems: %v", l.Len(), l.Problems())
	}
	for i, p := range l.Problems() {
		if p.Line != i+1 || p.Path == "" {
			t.Errorf("problem %d is at %+v", i, p)
		}
	}
}

// A nil object is what an absent member is: reading it must give nothing.
func TestAbsentObject(t *testing.T) {
	var o *Object
	_, hasNumber := o.Number("x")
	if o.Text("x") != "" || o.Texts("x") != nil || o.Object("x").Object("y") != nil || o.Has("x") || hasNumber ||
		o.Rest() != nil ||
		o.Members() != nil || o.Keys() != nil || !o.Bool("x", true) || o.JSON("x") != nil || o.Objects("x", "") != nil {
		t.Error("an absent object has members")
	}
}

func TestTextKeepsCharacters(t *testing.T) {
	o := open(t, "a: 1.10\nb: 0x1F\nc: yes\nd: 2026-01-15\ne: ~\nf: 'x'\n")
	for key, want := range map[string]string{"a": "1.10", "b": "0x1F", "c": "yes", "d": "2026-01-15", "e": "",
		"f": "x"} {
		if got := o.Text(key); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	if !o.IsNumber("a") || o.IsNumber("f") || o.Has("e") {
		t.Error("types are mistaken")
	}
}

func TestJSONKeepsNumbers(t *testing.T) {
	o := open(t, "x: {a: 1.10, b: [true, null, \"1\", .inf, 0x1F, 1e3], c: {}, d: <&>}\n")
	const want = `{"a":1.10,"b":[true,null,"1",".inf","0x1F",1e3],"c":{},"d":"<&>"}`
	if got := string(o.JSON("x")); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestLimits(t *testing.T) {
	wide := "a: [" + strings.Repeat("x,", maxNodes) + "x]"
	for _, tc := range []struct{ name, text, code string }{
		{"many values", wide, "EO724"},
		{"deep", "a: " + strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1), "EO724"},
		{"an alias of itself", "a: &a [*a]", "EO724"},
		{"long", "a: " + strings.Repeat("x", MaxHead), "EO721"},
		{"a list", "- a", "EO725"},
		{"two documents", "a: b\n---\nc: d", "EO722"},
		{"syntax", "a: [", "EO722"},
		{"key that is a list", "? [a]\n: b", "WO729"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := &problem.List{}
			if o := parseYAML(tc.text, "f", 4, l); (o == nil) != (tc.code[0] == 'E') || codes(l) != tc.code {
				t.Errorf("read %v, problems %v, want %s", o != nil, l.Problems(), tc.code)
			}
			if at := l.Problems()[0].Line; at < 4 {
				t.Errorf("line %d is before the text", at)
			}
		})
	}
}

func TestParseJSONHasLines(t *testing.T) {
	l := &problem.List{}
	o := ParseJSON("{\n\t\"a\": 1,\n\t\"b\": [\n\t\t{\"c\": true}\n\t],\n\t\"a\": 2\n}", "f", l)
	if o == nil || codes(l) != "EO723" || l.Problems()[0].Line != 6 {
		t.Fatalf("problems %v", l.Problems())
	}
	if line := o.Objects("b", "")[0].At("c").Line; line != 4 || o.Whole("a") != 1 {
		t.Errorf("c is at line %d", line)
	}
	for _, text := range []string{"", "[]", "{", "{} x", `{"a":}`, strings.Repeat("[", 1000)} {
		l := &problem.List{}
		if o := ParseJSON(text, "f", l); o != nil || l.Len() == 0 {
			t.Errorf("%.20q was read", text)
		}
	}
}

// Whatever texts are written must be read as the same texts.
func TestWrittenTextsAreReadAgain(t *testing.T) {
	texts := rapid.OneOf(rapid.String(), rapid.StringMatching(`[ -~\n]{0,30}`),
		rapid.SampledFrom([]string{"null", "1.10", "yes", "a: b", "- a", "#", "\n", " a", "a ", "a\n", "a\n\n", "\ta",
			"|", "---", "..."}))
	rapid.Check(t, func(t *rapid.T) {
		a, list := texts.Draw(t, "text"), rapid.SliceOfN(texts, 1, 3).Draw(t, "texts")
		m := map[string]string{texts.Draw(t, "key"): texts.Draw(t, "value")}
		raw, err := json.Marshal(map[string]any{"x": []any{a, 1.5, true, nil, map[string]any{}}})
		if err != nil {
			t.Fatal(err)
		}
		text, err := NewMap().Always("a", a).Texts("l", list).TextMap("m", m).JSON("j", raw).YAML()
		if err != nil {
			t.Fatal(err)
		}
		l := &problem.List{}
		o := ParseYAML(text, "f", l)
		if o == nil || l.Len() > 0 {
			t.Fatalf("%v\n%s", l.Problems(), text)
		}
		if o.Text("a") != a || !slices.Equal(o.Texts("l"), list) || fmt.Sprint(o.TextMap("m")) != fmt.Sprint(m) {
			t.Errorf("%q, %q, %q is read from\n%s", o.Text("a"), o.Texts("l"), o.TextMap("m"), text)
		}
		var want, got any
		if json.Unmarshal(raw, &want) != nil || json.Unmarshal(o.JSON("j"), &got) != nil ||
			fmt.Sprint(want) != fmt.Sprint(got) {
			t.Errorf("JSON %s became %s", raw, o.JSON("j"))
		}
	})
}

func TestReplace(t *testing.T) {
	for file, want := range map[string]string{
		"---\nversion: 1.0.0\n---\n":                       "---\nversion: \"2\"\n---\n",
		"---\r\nversion: '1' # x\r\n---\r\nversion: y\r\n": "---\r\nversion: \"2\"\r\n---\r\nversion: y\r\n",
		"---\na:\n  version: 1\n---\nversion: 1\n":         "",
		"---\nname: x\n---\n":                              "",
	} {
		if got, ok := Replace(file, "version", "2"); ok != (want != "") || ok && got != want {
			t.Errorf("%q became %q", file, got)
		}
	}
}
