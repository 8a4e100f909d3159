package stats

import (
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"repute/api/wire"
	"repute/internal/httpapi"
	"repute/store/statsdb"
	"repute/trust/explain"
)

// The shapes of tags and leaderboards.
type (
	// TagList is a page of tags.
	TagList struct {
		Items []Tag       `json:"items"`
		Next  *string     `json:"next" doc:"cursor of the next page, null at the end"`
		AsOf  []wire.AsOf `json:"asOf" doc:"one per chain asked"`
	}
	// Tag is how a tag is used, and what it means.
	Tag struct {
		Tag1        *string     `json:"tag1" doc:"the tag1 of which items list the second tags; null where items are tag1"`
		Tag         string      `json:"tag"`
		TagHex      *wire.Hex   `json:"tagHex,omitempty"`
		Hash        wire.Hash   `json:"hash" doc:"keccak256 of the tag: /tags/{hash} gives the whole"`
		Cut         []wire.Cut  `json:"cut" doc:"texts that were cut, which end with an ellipsis, and where the whole is"`
		Ratings     wire.Long   `json:"ratings" doc:"live ones"`
		Agents      wire.Long   `json:"agents" doc:"with a live rating"`
		Raters      wire.Long   `json:"raters" doc:"distinct addresses"`
		ScoredShare float64     `json:"scoredShare" doc:"0 to 1, the part of the ratings that scores can read: tag1 belongs to the score, and the value is within its range; whether one counts depends on its rater too"`
		Meaning     *TagMeaning `json:"meaning" doc:"what the scorer's table of tags says of tag1; null for a tag that it does not know"`
	}
	// TagMeaning is what the scorer's table says of a tag1.
	TagMeaning struct {
		Unit    string   `json:"unit" doc:"what a value means"`
		Better  string   `json:"better" enum:"higher,lower,neither" doc:"which values are better"`
		Channel string   `json:"channel" doc:"kind of evidence"`
		Use     string   `json:"use" enum:"score,gate,shown" doc:"score: part of the score; gate: policies may ask for it; shown: neither"`
		Weight  float64  `json:"weight" doc:"0 to 1"`
		Min     *float64 `json:"min" doc:"the least value that is read, null for none"`
		Max     *float64 `json:"max" doc:"the largest value that is read, null for none"`
		Reason  string   `json:"reason" doc:"why the tag is in this channel with this weight"`
	}
	// LeaderList is a page of a leaderboard.
	LeaderList struct {
		Items []Leader    `json:"items"`
		Next  *string     `json:"next" doc:"cursor of the next page, null at the end"`
		AsOf  []wire.AsOf `json:"asOf" doc:"one per chain asked"`
	}
	// Leader is a ranked agent.
	Leader struct {
		Rank  wire.Long  `json:"rank" doc:"from 1; equal agents have different ranks"`
		Value float64    `json:"value" doc:"what the agent is ranked by: its score, or a number of reviewers"`
		Agent wire.Agent `json:"agent" doc:"as in a list of agents"`
		Growth
	}
	// Growth is what a period brought to an agent.
	Growth struct {
		Reviewers    wire.Long  `json:"reviewers" doc:"distinct clients with a live rating"`
		NewReviewers *wire.Long `json:"newReviewers" doc:"by growth: clients whose first live rating of the agent is in the period; null otherwise"`
		NewRatings   *wire.Long `json:"newRatings" doc:"by growth: live ratings of the period; null otherwise"`
	}
)

// Steady returns the body without what moves while nothing happens, for its ETag.
func (b TagList) Steady() any { b.AsOf = wire.Each(b.AsOf, wire.SteadyAsOf); return b }

// Steady returns the body without what moves while nothing happens, for its ETag.
func (b LeaderList) Steady() any { b.AsOf = wire.Each(b.AsOf, wire.SteadyAsOf); return b }

// EncodeTag writes how a tag is used; tag1 is nil where the tag is a tag1 itself, and meaning is nil for none.
func EncodeTag(t statsdb.Tag, tag1 *string, meaning *explain.TagMeaning) Tag {
	w := Tag{Hash: wire.Hash(common.Hash(t.Hash).Hex()), Ratings: wire.Long(t.Ratings), Agents: wire.Long(t.Agents),
		Raters: wire.Long(t.Raters)}
	w.Tag, w.Cut = encodeTag(t.Text)
	if raw := string(t.Bytes); httpapi.Clean(raw) != raw && len(raw) <= maxHex {
		w.TagHex = wire.OrNull(wire.Hex(hexutil.Encode(t.Bytes)))
	}
	if tag1 != nil {
		w.Tag1 = new(wire.BriefText(*tag1))
	}
	if s := share(t.Scored, t.Ratings); s != nil {
		w.ScoredShare = *s
	}
	if meaning != nil {
		w.Meaning = encodeMeaning(meaning)
	}
	return w
}

// encodeTag writes a tag, and where the whole is if it was cut.
func encodeTag(t statsdb.Text) (shown string, cuts []wire.Cut) {
	raw := string(t.Bytes)
	if t.Partial {
		raw += "…"
	}
	if shown = wire.BriefText(raw); t.Partial || shown != httpapi.Clean(raw) {
		return shown, []wire.Cut{{Field: "tag", Whole: new("/tags/" + common.Hash(t.Hash).Hex())}}
	}
	return shown, []wire.Cut{}
}

// encodeMeaning writes what the table of tags says.
func encodeMeaning(m *explain.TagMeaning) *TagMeaning {
	w := &TagMeaning{Unit: m.Unit, Better: string(m.Better), Channel: m.Channel, Use: string(m.Use), Reason: m.Reason,
		Weight: wire.DecimalOf(m.Weight)}
	if len(m.Range) == 2 {
		w.Min, w.Max = new(wire.DecimalOf(m.Range[0])), new(wire.DecimalOf(m.Range[1]))
	}
	return w
}

// EncodeLeader writes a ranked agent.
func EncodeLeader(l statsdb.Leader, by statsdb.Ranking) Leader {
	w := Leader{Rank: wire.Long(l.Rank), Value: float64(l.Value), Agent: wire.EncodeAgent(l.Agent),
		Growth: Growth{Reviewers: wire.Long(l.Reviewers)}}
	switch by {
	case statsdb.ByScore:
		w.Value = float64(l.Value) / 1000
	case statsdb.ByGrowth:
		w.NewReviewers, w.NewRatings = new(wire.Long(l.NewReviewers)), new(wire.Long(l.NewRatings))
	}
	return w
}
