package batch

import (
	"math"

	"repute"
	"repute/api/wire"
)

type (
	// ReputationAnswer is what a runtime asks before it pays or delegates, with the members by which other indexes
	// answer the same question.
	ReputationAnswer struct {
		wire.ReputationAnswer
		OtherNames
	}
	// OtherNames says the same as score, counts and tier in the members that callers of other indexes read.
	OtherNames struct {
		AvgRating     *float64  `json:"avgRating" doc:"score on the scale of ratings from 1 to 5; null while unrated. No mean of raw ratings, whose units differ by tag"`
		TotalFeedback wire.Long `json:"totalFeedback" doc:"counts.feedback"`
		OverallScore  *float64  `json:"overall_score" doc:"score on the scale from 0 to 5; null while unrated"`
		TierName      string    `json:"tier_name" enum:"none,bronze,silver,gold,platinum" doc:"tier 0 to 4 by its name"`
	}
)

// tierNames are the names of tiers 0 to 4.
func tierNames() []string { return []string{"none", "bronze", "silver", "gold", "platinum"} }

// NewReputation adds the members of other indexes to a reputation.
func NewReputation(w wire.ReputationAnswer) ReputationAnswer {
	r := ReputationAnswer{ReputationAnswer: w}
	r.TotalFeedback = w.Counts.Feedback
	names := tierNames()
	r.TierName = names[min(max(int(w.Tier), 0), len(names)-1)]
	if w.Status == string(repute.Unrated) {
		return r
	}
	share := (w.Score + 100) / 200 // of the scale from -100 to 100
	r.AvgRating, r.OverallScore = hundredths(1+4*share), hundredths(5*share)
	return r
}

// hundredths rounds to two digits after the point.
func hundredths(f float64) *float64 { return new(math.Round(f*100) / 100) }
