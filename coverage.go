package repute

// Coverage counts the records about a chain's agents that count in scores, as of the last block of a closed epoch, and
// the reasons for which others do not. The trust engine computes it for each run.
type Coverage struct {
	// Records are live ratings, and the latest answers of validation contracts on the allow-list. A
	// record counts if the table of tags knows its tag and its rater has weight.
	Records Counted `json:"records"`
	Raters  Counted `json:"raters"` // addresses with records; Counted: with a counted record
	Agents  Counted `json:"agents"` // agents with records; Counted: with a counted record
	// Several is how many of Agents.All have records of three or more distinct raters, whatever
	// their weight.
	Several int64 `json:"several"`
	// BySource is how many of Records.Counted have weight by a source, by its id. A record may have weight by several.
	BySource map[string]int64 `json:"bySource,omitempty"`
	// ByRoots is how many of Records.Counted are by roots themselves.
	ByRoots int64 `json:"byRoots"`
	// Left counts the other records by the reason for which they do not count: one of the reasons of explanations, or
	// LeftNoWeight.
	Left map[string]int64 `json:"left"`
	// ToFifty is the price of credentials of the chain's sources that lift a new agent to a score of 50; nil when no
	// source is read.
	ToFifty *LiftPrice `json:"toFifty,omitempty"`
	// Tags are the most frequent tags of the records that Left counts because of their tag, the most frequent first.
	Tags []UnreadTag `json:"tags,omitempty"`
	// Rated and Thin are how many agents had that status when the epoch was closed.
	Rated int64 `json:"rated"`
	Thin  int64 `json:"thin"`
}

// UnreadTag is a tag that the table of tags does not read or whose channel is not part of the score.
type UnreadTag struct {
	Tag     string `json:"tag"`    // with U+FFFD instead of unprintable characters
	Reason  string `json:"reason"` // a key of Coverage.Left
	Records int64  `json:"records"`
}

// LongTag is the Tag of UnreadTag for all tags of more than 64 bytes together.
const LongTag = "(longer than 64 bytes)"

// Counted is a number of records, raters or agents, and how many of them count.
type Counted struct {
	All     int64 `json:"all"`
	Counted int64 `json:"counted"`
}

// LiftPrice is an estimate of the lowest price of credentials that lift a new agent to a score. It uses published
// prices only; sources without one are left out, and renting a holder for one rating costs less.
type LiftPrice struct {
	Cents int64 `json:"cents"` // US cents, 0 when OutOfReach
	// Units is the evidence that the score needs, or when OutOfReach the most that sources with a price can give, in
	// thousandths of a unit.
	Units int64 `json:"units"`
	// OutOfReach says that sources with a price cannot give the evidence that the score needs.
	OutOfReach bool `json:"outOfReach,omitempty"`
	// Priced are the ids of the sources that were counted, Unpriced those of sources that count in scores and have no
	// published price.
	Priced   []string `json:"priced"`
	Unpriced []string `json:"unpriced"`
}

// LeftNoWeight is the reason of a readable record whose rater has no weight: no trusted identity, or too few, rated it
// well, and no source gives it weight.
const LeftNoWeight = "no-weight"
