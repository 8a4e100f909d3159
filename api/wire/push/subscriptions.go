package push

import (
	"encoding/json"

	"repute"
	"repute/api/wire"
	"repute/store"
	"repute/store/changedata"
)

// JSON is a JSON value of any shape, of GraphQL.
type JSON json.RawMessage

// ImplementsGraphQLType names the scalar.
func (JSON) ImplementsGraphQLType(name string) bool { return name == "JSON" }

// UnmarshalGraphQL is there because each scalar needs it; no argument has the type.
func (j *JSON) UnmarshalGraphQL(input any) (err error) {
	*j, err = json.Marshal(input)
	return err
}

// MarshalJSON returns the value.
func (j JSON) MarshalJSON() ([]byte, error) { return json.RawMessage(j).MarshalJSON() }

// ChangeEvent is a change of the feed as subscriptions of GraphQL show it.
type ChangeEvent struct {
	Cursor   string
	Kind     string
	ChainID  wire.Long
	Agent    *wire.ID
	Block    wire.Long
	LogIndex wire.Long
	Data     JSON
	Retracts *string
	At       wire.Time
}

// EncodeEvent writes a change for a subscription.
func EncodeEvent(c *store.Change) *ChangeEvent {
	w := EncodeChange(c)
	return &ChangeEvent{w.Cursor, w.Kind, w.ChainID, w.Agent, w.Block, w.LogIndex, JSON(w.Data), w.Retracts,
		*wire.EncodeTime(w.At)}
}

// ScoreEvent is a change of a score as subscriptions of GraphQL show it.
type ScoreEvent struct {
	Cursor string
	Agent  wire.ID
	Mode   string
	Old    *ScoreStanding
	New    *ScoreStanding
	Epoch  wire.Long
	Block  wire.Long
	Hash   wire.Hash
	At     wire.Time
}

// ScoreStanding is what lists show of a score.
type ScoreStanding struct {
	Status string
	Score  float64
	Low    float64
	High   float64
	Tier   int32
}

// EncodeScoreEvent writes a change of a score, whose data is s.
func EncodeScoreEvent(c *store.Change, s *changedata.Score) *ScoreEvent {
	out := &ScoreEvent{Cursor: c.Cursor, Mode: s.Mode, Old: encodeStanding(s.Old), New: encodeStanding(s.New),
		Epoch: wire.Long(s.Epoch),
		Block: wire.Long(s.AsOf.Block), Hash: wire.Hash(s.AsOf.Hash), At: *wire.EncodeTime(c.At)}
	if c.TokenID != nil {
		out.Agent = wire.ID(repute.AgentID{ChainID: c.ChainID, TokenID: *c.TokenID}.Short())
	}
	return out
}

// encodeStanding writes what lists show of a score, nil for none.
func encodeStanding(s *changedata.Standing) *ScoreStanding {
	if s == nil {
		return nil
	}
	return &ScoreStanding{Status: string(s.Status), Score: s.Score, Low: s.Low, High: s.High, Tier: int32(s.Tier)}
}
