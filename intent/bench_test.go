package intent_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"syscall"
	"testing"
	"time"

	"repute/intent"
	"repute/intent/sentence"
)

// many returns an index of n items with random vectors, and words as frequent as in English texts:
// the word of rank r occurs in proportion to 1/r.
func many(t testing.TB, n int) *intent.Index {
	t.Helper()
	e, err := sentence.New()
	if err != nil {
		t.Fatal(err)
	}
	index, err := intent.New(e)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(rng, 1.1, 1, 20_000)
	for i := range n {
		item := intent.Item{ID: fmt.Sprint(i), Kind: intent.KindTool,
			Name: fmt.Sprintf("w%d_w%d", zipf.Uint64(), zipf.Uint64())}
		for range 15 {
			item.Description += fmt.Sprintf("w%d ", zipf.Uint64())
		}
		if err := index.Put(item, []intent.Vector{randomVector(t, rng)}); err != nil {
			t.Fatal(err)
		}
	}
	return index
}

func randomVector(t testing.TB, rng *rand.Rand) intent.Vector {
	t.Helper()
	x := make([]float32, sentence.Dim)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	v, err := intent.NewVector(sentence.Model, x)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// BenchmarkSearch embeds a query and matches it against 100,000 items, on one core.
func BenchmarkSearch(b *testing.B) {
	index := many(b, 100_000)
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	before := processorTime(b)
	for i := 0; b.Loop(); i++ { // each text is new, so that it is embedded
		search(b, index, intent.Query{Text: fmt.Sprint("get me a plane ticket to w0 for ", 10+i%90*7, i/90)})
	}
	b.ReportMetric((processorTime(b)-before).Seconds()*1e3/float64(b.N), "cpu-ms/op")
	b.ReportMetric(float64(memory.HeapAlloc)/1e6, "MB")
}

// processorTime returns how long the process has run on processors, which other processes of the
// machine influence less than the time of a clock.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func BenchmarkPut(b *testing.B) {
	index := many(b, 10_000)
	rng := rand.New(rand.NewPCG(3, 4))
	v := randomVector(b, rng)
	for b.Loop() {
		item := intent.Item{ID: fmt.Sprint(rng.IntN(10_000)), Name: "w1_w2", Description: "w0 w1 w2 w3 w4 w500 w5000"}
		if err := index.Put(item, []intent.Vector{v}); err != nil {
			b.Fatal(err)
		}
	}
}
