package rows

import (
	"testing"

	"pgregory.net/rapid"
)

// The garbage of a store has a size that does not grow with the store, between the percentages of small and huge ones.
func TestGarbageIsBounded(t *testing.T) {
	if small, huge := garbageOf(many), garbageOf(1_000_000_000); small != mostGarbage || huge != leastGarbage {
		t.Errorf("%d percent of a small store, %d of a huge one", small, huge)
	}
	rapid.Check(t, func(t *rapid.T) {
		ratings := rapid.IntRange(0, 200_000_000).Draw(t, "ratings")
		percent := garbageOf(ratings)
		bytes := percent * ratings / 100 * ratingBytes
		if percent > mostGarbage || percent > leastGarbage && bytes > garbageBytes {
			t.Fatalf("%d percent of %d ratings are %d bytes", percent, ratings, bytes)
		}
		if more := garbageOf(ratings + 1_000_000); more > percent {
			t.Fatalf("%d percent of %d ratings, %d of more", percent, ratings, more)
		}
	})
}
