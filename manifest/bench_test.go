package manifest

import (
	"fmt"
	"strings"
	"testing"
)

func BenchmarkParse(b *testing.B) {
	b.SetBytes(int64(len(standard)))
	b.ReportAllocs()
	for b.Loop() {
		Parse([]byte(standard))
	}
}

// Documents of 1 MiB, the most that is fetched, made to cost as much as they can.
func BenchmarkParseHostile(b *testing.B) {
	fill := func(open, unit, end string) []byte {
		return []byte(open + strings.Repeat(unit, (1<<20-len(open)-len(end))/len(unit)) + end)
	}
	var names strings.Builder
	for i := 0; names.Len() < 1<<20-20; i++ {
		fmt.Fprintf(&names, `"%x":0,`, i)
	}
	for name, doc := range map[string][]byte{
		"names":      []byte(`{` + names.String() + `"a":0}`),
		"duplicates": fill(`{`, `"a":0,`, `"a":0}`),
		"services":   fill(`{"services":[`, `{"a":0},`, `{}]}`),
		"extra":      fill(`{"services":[`, `{"a":[0]},`, `{}],"x402":{}}`),
		"skills":     fill(`{"services":[{"name":"a","skills":[`, `{},`, `{}]}]}`),
		"links":      fill(`{"registrations":[`, `{"agentId":1},`, `{}]}`),
		"escapes":    fill(`{"name":"`, `\u0000`, `"}`),
		"deep":       fill(`{"a":[`, strings.Repeat(`[`, maxDepth-2)+strings.Repeat(`]`, maxDepth-2)+`,`, `0]}`),
		"deep names": fill(`{"a":[`, strings.Repeat(`{"":`, maxDepth-2)+`0`+strings.Repeat(`}`, maxDepth-2)+`,`,
			`0]}`),
		"wide arrays": fill(`{"services":[],"z":[`, `0,`, `0]}`),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Parse(doc)
				ParseFeedback(doc)
				ParseCard(doc)
			}
		})
	}
}
