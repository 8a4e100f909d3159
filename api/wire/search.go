package wire

import "repute/store/searchdb"

// Total is how many there are.
type Total struct {
	Value    Long   `json:"value"`
	Relation string `json:"relation" enum:"eq,gte" doc:"eq: exactly; gte: at least, no more were counted"`
}

// EncodeTotal says whether a count is exact: counting ends where it would cost too much.
func EncodeTotal(c searchdb.Count) Total {
	if c.AtLeast {
		return Total{Long(c.Value), "gte"}
	}
	return Total{Long(c.Value), "eq"}
}
