package rating

import (
	"testing"

	"pgregory.net/rapid"
)

// Single returns what a mean of one record returns, also for records that are too old to weigh anything.
func TestSingleIsAMeanOfOne(t *testing.T) {
	p, err := DefaultParams()
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		e := Record{Value: rapid.Int32Range(-1<<30, 1<<30).Draw(t, "value"), Time: rapid.Uint32().Draw(t, "time"),
			Payment: rapid.Uint16Range(1<<12, 1<<13).Draw(t, "payment"),
			Rule:    uint8(rapid.IntRange(0, len(p.rules)-1).Draw(t, "rule"))}
		at := int64(e.Time) + rapid.Int64Range(0, 1<<33).Draw(t, "age")
		var m Mean
		m.Add(p, &e, at)
		value, strength := m.Value()
		if gotValue, gotStrength := Single(p, &e, at); gotValue != value || gotStrength != strength {
			t.Fatalf("got %d, %d, want %d, %d", gotValue, gotStrength, value, strength)
		}
	})
}
