package manifest

import "testing"

func BenchmarkParse(b *testing.B) {
	b.SetBytes(int64(len(standard)))
	b.ReportAllocs()
	for b.Loop() {
		Parse([]byte(standard))
	}
}
