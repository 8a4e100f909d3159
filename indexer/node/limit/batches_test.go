package limit

import "testing"

// A limit that is real is tried more and more seldom.
func TestBatchesRealLimit(t *testing.T) {
	t.Parallel()
	b := NewBatches(50)
	refused := 0
	for range 10_000 {
		for b.Size() > 10 {
			b.Refused(b.Size())
			refused++
		}
		b.Answered()
	}
	if refused > 15 || b.Size() < 5 {
		t.Errorf("refused %d times in 10,000 requests, at last %d calls in one", refused, b.Size())
	}
}
