package intent_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"testing"

	"repute/intent"
)

// TestDigest pins matches, scores and margins. `make test-arm64` runs it on another processor.
func TestDigest(t *testing.T) {
	const golden = "e79c6d919bbefa4f221f80089c44d4b89921872de68240954a57e64f3f4d7061"
	q := readQuality(t)
	index := newIndex(t, q.items()[:20]...)
	sum := sha256.New()
	for _, query := range q.Queries[:10] {
		fmt.Fprintln(sum, search(t, index, intent.Query{Text: query.Text, Limit: 5}))
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != golden {
		t.Errorf("results have digest %s", got)
	}
}
