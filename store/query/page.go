package query

import (
	"repute"
)

// FirstRows are the first rows of one agent's list.
type FirstRows[T any] struct {
	Items []T
	More  bool // there are others
}

// firstRowsOf groups ordered rows by agent. Each group has up to limit rows, and one more when
// there are others.
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
