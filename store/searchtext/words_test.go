package searchtext

import (
	"testing"
)

// TestWordsAllocateLittle keeps the tables of spellings from being made for each text.
func TestWordsAllocateLittle(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { AsWords("colour") }); n > 8 {
		t.Errorf("%.0f allocations for one word", n)
	}
}
