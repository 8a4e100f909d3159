package manifest

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"repute"
)

// parsers are all three, with what they made of a document.
func parsers() map[string]func([]byte) (any, []repute.Problem) {
	return map[string]func([]byte) (any, []repute.Problem){
		"A": func(b []byte) (any, []repute.Problem) { return results(Parse(b)) },
		"F": func(b []byte) (any, []repute.Problem) { return results(ParseFeedback(b)) },
		"C": func(b []byte) (any, []repute.Problem) { return results(ParseCard(b)) },
	}
}

func results[T any](doc T, problems []repute.Problem) (any, []repute.Problem) { return doc, problems }

// Whatever somebody publishes, every parser answers, names what is wrong under its own
// letter, and holds no more than its bounds.
func TestHostileDocuments(t *testing.T) {
	for name, c := range map[string]struct{ doc, want string }{
		"deep arrays":      {`{"a":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`, "E502"},
		"deep objects":     {strings.Repeat(`{"a":`, 100_000) + `1` + strings.Repeat("}", 100_000), "E502"},
		"unclosed":         {strings.Repeat(`[{"a":`, 1_000_000), "E502"},
		"NaN":              {`{"value":NaN,"name":"x"}`, "E500"},
		"Infinity":         {`{"value":-Infinity}`, "E500"},
		"comment":          {`{"name":"x" /* y */}`, "E500"},
		"two documents":    {`{"name":"x"}{"name":"y"}`, "E500"},
		"raw newline":      {"{\"name\":\"a\nb\"}", "E500"},
		"raw NUL":          {"{\"name\":\"a\x00b\"}", "E500"},
		"only NULs":        {strings.Repeat("\x00", 4096), "E500"},
		"gzip":             {"\x1f\x8b\x08\x00\x00\x00\x00\x00", "E500"},
		"UTF-16":           {"\xff\xfe{\x00}\x00", "E591"},
		"HTML":             {"<!DOCTYPE html><html><script>alert(1)</script></html>", "E501"},
		"SVG":              {`<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>`, "E501"},
		"XML":              {`<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>`, "E501"},
		"number":           {`1e999999999999`, "E500,E503"},
		"long number":      {strings.Repeat("9", 1<<20), "E503"},
		"a million values": {`[` + strings.Repeat("0,", 1_000_000) + `0]`, "E503"},
		"many names":       {`{"name":"x","value":1` + strings.Repeat(`,"a":0`, 100_000) + `}`, "W510"},
		"10 MB name": {`{"name":"` + strings.Repeat("n", 10<<20) + `","value":1,"url":"https://x.example"}`,
			"W515,W520"},
		"10 MB member": {`{"name":"n","value":1,"url":"https://x.example","` + strings.Repeat("n", 10<<20) + `":1}`,
			"W515"},
		"half a pair": {`{"name":"\ud800x","text":"\udc00","value":1,"url":"https://x.example"}`, "W511"},
		"NUL":         {`{"name":"\u0000","text":"\u0000","value":1,"url":"https://x.example"}`, "W512"},
		"bad UTF-8":   {"{\"name\":\"\xc3\x28\",\"value\":1,\"url\":\"https://x.example\"}", "W513"},
	} {
		for area, parse := range parsers() {
			doc, problems := parse([]byte(c.doc))
			again, more := doc, problems
			if len(c.doc) < 1<<20 {
				again, more = parse([]byte(c.doc))
			}
			sane(t, doc, problems, again, more)
			found := slices.ContainsFunc(strings.Split(c.want, ","), func(want string) bool {
				return slices.ContainsFunc(problems,
					func(p repute.Problem) bool { return p.Code == want[:1]+area+want[1:] })
			})
			if !found {
				t.Errorf("%s read as %s: %v, want %s", name, area, codesOf(problems), c.want)
			}
			if strings.HasPrefix(c.want, "E") && !reflect.ValueOf(doc).IsZero() {
				t.Errorf("%s read as %s: %+v", name, area, doc)
			}
		}
	}
}

// Text is data: script in names, SVG in images and control characters come out as they
// went in, for the program that shows them to escape.
func TestHostileText(t *testing.T) {
	const script = `</script><img src=x onerror=alert(1)>`
	const svg = `data:image/svg+xml,<svg onload=alert(1)>`
	const bidi = "a\u202eb\u0007"
	reg, problems := Parse([]byte(`{"name":"` + script + `","description":"a\u202eb\u0007","image":"` + svg +
		`","services":[]}`))
	if reg.Name != script || reg.Image != svg || reg.Description != bidi || repute.HasErrors(problems) {
		t.Errorf("%+v %v", reg, problems)
	}
}

// Of repeated members the last one counts, in lists and nested objects too, and each
// repetition is named where it stands.
func TestDuplicates(t *testing.T) {
	reg, problems := Parse([]byte(`{"name":"a","name":"b","services":[{"name":"x","name":"y","endpoint":"https://e.example"}]}`))
	if reg.Name != "b" || reg.Services[0].Name != "y" {
		t.Errorf("%+v", reg)
	}
	codes := codesOf(problems)
	if !slices.Contains(codes, "WA510/name") || !slices.Contains(codes, "WA510/services/0/name") {
		t.Errorf("problems %v", codes)
	}
}

// A syntax error is found by its line and column, in characters.
func TestSyntaxErrorsHaveAPlace(t *testing.T) {
	for doc, want := range map[string]string{
		"{\n  \"é\": 1,\n}":      "line 3, column 1",
		"{\"é\": NaN}":           "line 1, column 7",
		"{":                      "line 1, column 1",
		"{\"a\": \"b\nc\"}":      "line 1, column 9",
		"{} x":                   "line 1, column 4",
		"{\"a\":1}\n\n{\"b\":2}": "line 3, column 1",
	} {
		_, problems := Parse([]byte(doc))
		if len(problems) != 1 || !strings.HasSuffix(problems[0].Message, want) {
			t.Errorf("%q: %+v, want %s", doc, problems, want)
		}
	}
}
