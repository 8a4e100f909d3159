package historydb

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestBucketsBeginInUTC(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("east", 5*3600+1800)
	rapid.Check(t, func(t *rapid.T) {
		at := time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "seconds"), 0).In(zone)
		for _, step := range []Step{StepHour, StepDay, StepWeek} {
			begin := step.begin(at)
			if begin.After(at) || !begin.Add(step.length()).After(at) || !step.begin(begin).Equal(begin) {
				t.Fatalf("the %s of %s begins at %s", step, at, begin)
			}
			if begin.Location() != time.UTC || begin.Minute() != 0 || step != StepHour && begin.Hour() != 0 ||
				step == StepWeek && begin.Weekday() != time.Monday {
				t.Fatalf("a %s begins at %s", step, begin)
			}
		}
	})
}

// A final score lasts until the next one, but not across scores that may have been pruned.
func TestScoresAreCarriedOn(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	day := func(n int) *time.Time {
		at := start.AddDate(0, 0, n)
		return &at
	}
	for name, c := range map[string]struct {
		rows []finalRow
		want string // epoch of each of five days, in lower case letters where it is carried; "." for none
	}{
		"none":          {nil, "....."},
		"before":        {[]finalRow{{score: Score{Epoch: 1}}}, "aaaaa"},
		"in the middle": {[]finalRow{{bucket: day(2), score: Score{Epoch: 1}}}, "..Aaa"},
		"two":           {[]finalRow{{score: Score{Epoch: 1}}, {bucket: day(3), score: Score{Epoch: 2}}}, "aaaBb"},
		"every day": {[]finalRow{{bucket: day(0), score: Score{Epoch: 1}}, {bucket: day(1), score: Score{Epoch: 2}}},
			"ABbbb"},
		"pruned": {[]finalRow{{bucket: day(0), score: Score{Epoch: 1}},
			{bucket: day(3), score: Score{Epoch: 2}, afterPruned: true}}, "A..Bb"},
		"pruned before": {[]finalRow{{score: Score{Epoch: 1}},
			{bucket: day(3), score: Score{Epoch: 2}, afterPruned: true}}, "...Bb"},
	} {
		s := Series{Every: StepDay, From: start, Points: make([]Point, 5)}
		s.carry(c.rows)
		got := ""
		for _, p := range s.Points {
			switch {
			case p.Score == nil:
				got += "."
			case p.Carried:
				got += string(rune('a' + p.Score.Epoch - 1))
			default:
				got += string(rune('A' + p.Score.Epoch - 1))
			}
		}
		if got != c.want {
			t.Errorf("%s: %s, not %s", name, got, c.want)
		}
	}
}
