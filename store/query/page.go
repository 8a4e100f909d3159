package query

import (
	"repute"
)

// FirstRows are the first rows of a list that several agents have one of each.
type FirstRows[T any] struct {
	Items []T
	More  bool // there are others
}

// firstRowsOf parts rows, in order, by their agents. Each has up to limit of them, and one more
// where there are others.
func firstRowsOf[T any](rows []T, agentOf func(T) repute.AgentID, limit int) map[repute.AgentID]FirstRows[T] {
	out := map[repute.AgentID]FirstRows[T]{}
	for _, row := range rows {
		id := agentOf(row)
		h := out[id]
		if h.More = len(h.Items) == limit; !h.More {
			h.Items = append(h.Items, row)
		}
		out[id] = h
	}
	return out
}
