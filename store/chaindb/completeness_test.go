package chaindb

import (
	"testing"
	"time"
)

// How many of the newest final blocks need not be compared yet follows from how fast the chain is.
func TestLagFollowsTheBlockTime(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	for name, c := range map[string]struct {
		oldest, cursor int64
		took           time.Duration
		want           uint64
	}{
		"two seconds":      {1000, 2000, 2000 * time.Second, 300},
		"twelve seconds":   {1000, 2000, 12_000 * time.Second, 50},
		"slow":             {1000, 2000, 1000 * time.Hour, lagLeast},
		"fast":             {1000, 2_001_000, 2000 * time.Second, lagMost},
		"one block":        {1000, 1000, 0, lagLeast},
		"clock went back":  {1000, 2000, -time.Hour, lagLeast},
		"header is newer":  {2000, 1000, time.Hour, lagLeast},
		"nothing is known": {0, 0, 0, lagLeast},
	} {
		chain := ChainView{Cursor: c.cursor, oldest: c.oldest, oldestTime: now, cursorTime: now.Add(c.took)}
		if got := chain.lagAllowed(); got != c.want {
			t.Errorf("%s: %d blocks, not %d", name, got, c.want)
		}
		chain.oldestTime = time.Time{}
		if got := chain.lagAllowed(); got != lagLeast {
			t.Errorf("%s, without the time of the oldest header: %d blocks", name, got)
		}
	}
}
