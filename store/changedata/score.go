package changedata

import (
	"encoding/json"
	"fmt"
	"math"

	"repute"
	"repute/store"
)

// Modes of a Score.
const (
	// Provisional is the score at the newest block. It is told when it is computed, and when it is no longer valid
	// because its block was removed.
	Provisional = "provisional"
	// Final is the score of the newest closed epoch. It is told when the epoch is closed.
	Final = "final"
)

// Score is the data of a change of kind KindScore: what an agent's score was and is. Nothing else that users see
// of the score is told, and no change is written where all of it is the same. Such a change is never retracted: a
// reorganization adds one whose New is nil. Package scoredb writes the data.
type Score struct {
	// Mode is Provisional or Final. Lists show the provisional score, and the final one while that is nil.
	Mode  string `json:"mode"`
	Run   uint64 `json:"run"`
	Epoch uint64 `json:"epoch"`
	// Old and New are nil where there is no score of the mode.
	Old  *Standing `json:"old"`
	New  *Standing `json:"new"`
	AsOf AsOf      `json:"asOf"`
}

// Standing is what lists show of a score. Score and its bounds are points, -100 to 100, with three digits after the
// point.
type Standing struct {
	Status repute.Status `json:"status"`
	Score  float64       `json:"score"`
	Low    float64       `json:"low"`
	High   float64       `json:"high"`
	Tier   int           `json:"tier"`
}

// AsOf is the block that a score follows from.
type AsOf struct {
	Block uint64  `json:"block"`
	Hash  string  `json:"hash"`
	Time  *string `json:"time"` // RFC 3339; nil where it is unknown
}

// ScoreOf returns the data of a change of a score, nil for a change of another kind.
func ScoreOf(c *store.Change) (*Score, error) {
	if c.Kind != KindScore {
		return nil, nil
	}
	var s Score
	if err := json.Unmarshal(c.Data, &s); err != nil {
		return nil, fmt.Errorf("change %s: %w", c.Cursor, err)
	}
	return &s, nil
}

// CrossesBelow reports whether exactly one of the two scores is below a bound. A missing score is not below it.
func (s *Score) CrossesBelow(bound float64) bool {
	return (s.Old != nil && s.Old.below(bound)) != (s.New != nil && s.New.below(bound))
}

// CrossesAbove reports whether exactly one of the two scores is above a bound. A missing score is not above it.
func (s *Score) CrossesAbove(bound float64) bool {
	return (s.Old != nil && s.Old.above(bound)) != (s.New != nil && s.New.above(bound))
}

// ChangesTier reports whether the tier is another one. A missing score has the tier 0.
func (s *Score) ChangesTier() bool {
	tier := func(s *Standing) int {
		if s == nil {
			return 0
		}
		return s.Tier
	}
	return tier(s.Old) != tier(s.New)
}

// below and above compare in thousandths of a point, which is exact.
func (s *Standing) below(bound float64) bool { return thousandths(s.Score) < thousandths(bound) }
func (s *Standing) above(bound float64) bool { return thousandths(s.Score) > thousandths(bound) }

// thousandths returns points as a whole number of thousandths.
func thousandths(points float64) int64 { return int64(math.Round(points * 1000)) }
