package push

import (
	"encoding/json"
	"time"

	"repute"
	"repute/api/wire"
	"repute/store"
)

// Change is one entry of the change feed: something that a user of the index can see has changed.
type Change struct {
	Cursor   string          `json:"cursor" doc:"place in the feed; give it as since to continue after this change"`
	Kind     string          `json:"kind" example:"feedback.given"`
	ChainID  wire.Long       `json:"chainId"`
	Agent    *wire.ID        `json:"agent" doc:"{chainId}:{tokenId}; null when no single agent is concerned"`
	Block    wire.Long       `json:"block" doc:"0 for what did not happen on the chain, such as a document that was read"`
	LogIndex wire.Long       `json:"logIndex"`
	Data     json.RawMessage `json:"data" doc:"the state after the change, by its kind"`
	Retracts *string         `json:"retracts" doc:"cursor of the change that this one takes back after a reorganization; null for all others"`
	At       time.Time       `json:"at" format:"date-time" doc:"when the index learned it"`
}

// ChangeList is a page of the change feed.
type ChangeList struct {
	Changes []Change `json:"changes"`
	Next    string   `json:"next" doc:"give it as since to continue; it may be later than the last change shown, and stays as it is while nothing follows"`
}

// EncodeChanges writes a page of the feed.
func EncodeChanges(list []store.Change, next string) ChangeList {
	out := ChangeList{Changes: make([]Change, len(list)), Next: next}
	for i := range list {
		out.Changes[i] = EncodeChange(&list[i])
	}
	return out
}

// EncodeChange writes a change.
func EncodeChange(c *store.Change) Change {
	out := Change{Cursor: c.Cursor, Kind: c.Kind, ChainID: wire.Long(c.ChainID), Block: wire.Long(c.Block),
		LogIndex: wire.Long(c.LogIndex), Data: c.Data, At: c.At}
	if c.Retracts != "" {
		out.Retracts = &c.Retracts
	}
	if c.TokenID != nil {
		out.Agent = new(wire.ID(repute.AgentID{ChainID: c.ChainID, TokenID: *c.TokenID}.Short()))
	}
	return out
}
