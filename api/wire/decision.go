package wire

// The wire types of a decision.
type (
	// DecisionAnswer says whether an agent may be paid or delegated to.
	DecisionAnswer struct {
		Agent ID `json:"agent" doc:"agent id"`
		Decision
		AsOf AsOf `json:"asOf" doc:"the view in which the score is the agent's"`
	}
	// Decision is what thresholds say of a score.
	Decision struct {
		Decision string           `json:"decision" enum:"allow,deny" doc:"allow: every threshold is reached and no gate keeps the agent out"`
		Reasons  []DecisionReason `json:"reasons" doc:"all that speaks against the agent; empty when allowed"`
		Missing  []Missing        `json:"missing" doc:"what the agent would have to reach, as far as it can be counted; empty when allowed"`
		Demanded Demanded         `json:"demanded" doc:"what was demanded: of each condition the hardest"`
		Standing
		Finality   *string   `json:"finality" enum:"provisional,final" doc:"of the score"`
		ScoredAt   *ScoredAt `json:"scoredAt" doc:"the block the score is of; null where no engine has run"`
		Verified   bool      `json:"verified" doc:"every block that a final score follows from is proven to be indexed completely; false for provisional ones"`
		VerifiedTo *Long     `json:"verifiedTo" doc:"block up to which every block from the chain's start on was proven when the epoch was scored; null for none"`
	}
	// DecisionReason is one thing that speaks against an agent.
	DecisionReason struct {
		ID   string `json:"id" doc:"trust.unrated, trust.thin, trust.minReputation, trust.minTier, trust.verified, trust.gates.{gate}, or keptOut.{gate}" example:"trust.minReputation"`
		Text string `json:"text"`
		Have string `json:"have"`
		Need string `json:"need"`
	}
	// Missing is one number that is not reached.
	Missing struct {
		Gate *string `json:"gate" doc:"whose condition it is; null for a threshold of the question"`
		Lacking
	}
	// Demanded are the thresholds of a decision.
	Demanded struct {
		MinScore    *float64 `json:"minScore" doc:"of low; null for none"`
		Tier        int32    `json:"tier" doc:"at least this; 0 for any"`
		Verified    bool     `json:"verified" doc:"the score must follow from verified blocks alone"`
		Gates       []string `json:"gates" doc:"that must be passed"`
		ValueAtRisk *BigInt  `json:"valueAtRisk" doc:"in wei; null when not given"`
	}
)

// Steady returns the body without what moves while nothing happens, for its ETag.
func (b DecisionAnswer) Steady() any { b.AsOf = SteadyAsOf(b.AsOf); return b }
