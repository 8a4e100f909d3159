package repute

// Independence says how far an agent's raters look like different people: what can be
// known of them when no root vouches for anybody. It is no part of the score, and fresh
// wallets can feign all of it; few clusters, or raters that rate nobody else, tell that
// there is little behind an average.
type Independence struct {
	// Ratings are what was looked at: the newest live ones, no more than a thousand.
	Ratings int
	// Raters are the distinct clients of these ratings, Clusters how many parties they
	// seem to be: raters are one party when they own, or are the verified wallet of,
	// agents with one owner, or when their first of these ratings came in the same
	// block with equal value, tags and URI.
	Raters, Clusters int
	// OneAgent counts raters without a live rating of another agent on the chain.
	OneAgent int
	// Busiest is the most of these ratings within 24 hours, by block time.
	Busiest int
}

// OneAgentShare is the part of the raters that rated this agent alone, 0 to 1.
func (i Independence) OneAgentShare() float64 { return share(i.OneAgent, i.Raters) }

// Burstiness is the part of the ratings that came within the busiest 24 hours, 0 to 1.
func (i Independence) Burstiness() float64 { return share(i.Busiest, i.Ratings) }

// share is 0 of nothing.
func share(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}
