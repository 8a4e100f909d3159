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
	// Rated and Thin are how many agents had that status when the epoch was closed.
	Rated int64 `json:"rated"`
	Thin  int64 `json:"thin"`
}

// Counted is a number of records and the part of it that counts.
type Counted struct {
	All     int64 `json:"all"`
	Counted int64 `json:"counted"`
}

// LeftNoWeight is the reason of a readable record whose rater no trusted identity, or too few,
// rated well.
const LeftNoWeight = "no-weight"
