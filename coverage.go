package repute

// Coverage counts the statements about a chain's agents that count in scores, as of the last block
// of a closed epoch, and why the others do not.
type Coverage struct {
	// Records are live ratings, and the latest answers of validation contracts on the allow-list. A
	// record counts if the table of tags knows its tag and its rater has weight.
	Records Counted `json:"records"`
	Raters  Counted `json:"raters"` // addresses; those with a counted record count
	Agents  Counted `json:"agents"` // agents with records; those with a counted record count
	// Several is how many of Agents.All have records of three or more distinct raters, whatever
	// their weight.
	Several int64 `json:"several"`
	// BySource is how many of Records.Counted have weight by each source, or by several sources.
	BySource map[string]int64 `json:"bySource,omitempty"`
	// ByRoots is how many of Records.Counted are by roots themselves.
	ByRoots int64 `json:"byRoots"`
	// Left counts the other records by the reason why they do not count: the reasons of
	// explanations, and LeftNoWeight.
	Left map[string]int64 `json:"left"`
	// ToFifty is what it costs by published prices to lift a new agent to a score of 50 by credentials of the chain's
	// sources; nil where no source is read.
	ToFifty *LiftPrice `json:"toFifty,omitempty"`
	// Tags are the most frequent tags of the records that Left counts because of their tag, the most frequent first.
	Tags []UnreadTag `json:"tags,omitempty"`
	// Rated and Thin are how many agents had that status when the epoch was closed.
	Rated int64 `json:"rated"`
	Thin  int64 `json:"thin"`
}

// UnreadTag is a tag that the table of tags does not read or whose channel is not part of the score.
type UnreadTag struct {
	Tag     string `json:"tag"`    // with U+FFFD for what is not printable
	Reason  string `json:"reason"` // of Coverage.Left
	Records int64  `json:"records"`
}

// LongTag stands in UnreadTag for all tags of more than 64 bytes.
const LongTag = "(longer than 64 bytes)"

// Counted is a number of records and the part of it that counts.
type Counted struct {
	All     int64 `json:"all"`
	Counted int64 `json:"counted"`
}

// LiftPrice is the least that credentials cost which lift a new agent to a score, by published prices alone: a source
// without one is not counted, and to rent a holder for one rating costs less.
type LiftPrice struct {
	Cents int64 `json:"cents"` // US, 0 where OutOfReach
	// Units is the evidence in thousandths of a unit that the score needs, or where OutOfReach the most that there is.
	Units      int64 `json:"units"`
	OutOfReach bool  `json:"outOfReach,omitempty"`
	// Priced are the sources that were counted, Unpriced those that count in scores and have no published price.
	Priced   []string `json:"priced"`
	Unpriced []string `json:"unpriced"`
}

// LeftNoWeight is the reason of a readable record whose rater no trusted identity, or too few,
// rated well.
const LeftNoWeight = "no-weight"
