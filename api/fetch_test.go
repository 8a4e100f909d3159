package api_test

import (
	"testing"
	"time"

	"repute/api/answers"
	"repute/store/docstats"
)

// Documents that wait are no trouble until it takes long, or nobody is there to fetch.
func TestFetchState(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		waits   time.Duration // 0: nothing waits
		workers bool
		want    string
	}{
		{0, false, ""}, {time.Second, false, ""}, {2 * time.Minute, false, "unfetched"}, {2 * time.Minute, true, ""},
		{time.Hour, true, "late"}, {time.Hour, false, "unfetched"},
	} {
		f := docstats.Fetching{Workers: c.workers}
		if c.waits > 0 {
			f.Since = now.Add(-c.waits)
		}
		if got := answers.FetchState(f, now); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
