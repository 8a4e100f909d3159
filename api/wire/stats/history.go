package stats

import (
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"repute"
	"repute/api/wire"
	"repute/internal/httpapi"
	"repute/store/historydb"
)

// The shapes of a history.
type (
	// HistoryList is a page of the changes of an agent.
	HistoryList struct {
		Items []AgentChange `json:"items"`
		Next  *string       `json:"next" doc:"cursor of the next page, null at the end"`
		AsOf  []wire.AsOf   `json:"asOf"`
	}
	// AgentChange is one change of an agent.
	AgentChange struct {
		Agent wire.ID      `json:"agent" doc:"agent id"`
		Kind  string       `json:"kind" enum:"owner,wallet,approved,uri,metadata,operator" doc:"what changed; operator: an address that may act for the agent, because its owner lets it act for all agents"`
		Key   *ChangeValue `json:"key" doc:"of metadata; null for other kinds"`
		Old   *ChangeValue `json:"old" doc:"what it was before, null for nothing"`
		New   *ChangeValue `json:"new" doc:"what it is from then on, null for nothing"`
		At    wire.Point   `json:"at" doc:"the log that made the change; of several changes of one value in a block the last one; txHash is zero where no such log is stored"`
		Cut   []wire.Cut   `json:"cut" doc:"texts that were cut, which end with an ellipsis, and where the whole is"`
	}
	// ChangeValue is an address, a URI, or a key or value of metadata.
	ChangeValue struct {
		Text *string   `json:"text" doc:"an address or a URI, and metadata that is plain UTF-8 text; null for other bytes"`
		Hex  *wire.Hex `json:"hex" doc:"the raw bytes where text does not show them as they are; null otherwise"`
		Size wire.Long `json:"size" doc:"bytes of the whole on chain"`
	}
)

// Steady returns the body without what moves while nothing happens, for its ETag.
func (b HistoryList) Steady() any { b.AsOf = wire.Each(b.AsOf, wire.SteadyAsOf); return b }

// EncodeChange writes a change of an agent.
func EncodeChange(c historydb.Change) AgentChange {
	w := AgentChange{Agent: wire.ID(c.Agent.String()), Kind: string(c.Kind), At: wire.EncodePoint(c.At),
		Cut: []wire.Cut{}}
	show := encodeText
	switch c.Kind {
	case historydb.KindMetadata:
		show = encodeBytes
	case historydb.KindURI:
	default:
		show = encodeAddress
	}
	add := func(field, whole string, v *historydb.Value, show func(historydb.Value) (*ChangeValue, bool)) *ChangeValue {
		if v == nil {
			return nil
		}
		shown, isCut := show(*v)
		if isCut {
			w.Cut = append(w.Cut, wire.Cut{Field: field, Whole: wire.OrNull(whole)})
		}
		return shown
	}
	before := repute.At{Block: max(c.At.Block, 1) - 1}
	wholeOld, wholeNew := wire.URIPath(c.Agent, before), wire.URIPath(c.Agent, repute.At{Block: c.At.Block})
	if c.Kind == historydb.KindMetadata {
		wholeOld, wholeNew = "", wire.TextPath(c.Agent, c.At,
			"metadataValue") // of old, the item that set it has the path
		w.Key = add("key", wire.TextPath(c.Agent, c.At, "metadataKey"), c.Key, encodeText)
	}
	w.Old = add("old", wholeOld, c.Old, show)
	w.New = add("new", wholeNew, c.New, show)
	return w
}

// encodeAddress writes an address of 20 bytes.
func encodeAddress(v historydb.Value) (w *ChangeValue, isCut bool) {
	return &ChangeValue{Text: new(common.BytesToAddress(v.Bytes).Hex()), Size: wire.Long(v.Size)}, false
}

// maxHex is the longest text in bytes whose raw bytes come along when it had to be mended.
const maxHex = 512

// encodeText writes a text, with its raw bytes where it had to be mended and is short.
func encodeText(v historydb.Value) (w *ChangeValue, isCut bool) {
	w, isCut = shownText(string(v.Bytes), v)
	if raw := string(v.Bytes); httpapi.Clean(raw) != raw && len(raw) <= maxHex {
		w.Hex = wire.OrNull(wire.Hex(hexutil.Encode(v.Bytes)))
	}
	return w, isCut
}

// encodeBytes writes bytes, as text where they are plain text.
func encodeBytes(v historydb.Value) (w *ChangeValue, isCut bool) {
	if text := wire.PlainText(v.Bytes); text != nil {
		return shownText(*text, v)
	}
	return &ChangeValue{Hex: new(wire.Hex(hexutil.Encode(v.Bytes))), Size: wire.Long(v.Size)}, v.Partial
}

// shownText writes a text of bounded length, which ends with an ellipsis where it was cut.
func shownText(raw string, v historydb.Value) (w *ChangeValue, isCut bool) {
	if v.Partial {
		raw += "…"
	}
	shown := wire.BriefText(raw)
	return &ChangeValue{Text: &shown, Size: wire.Long(v.Size)}, v.Partial || shown != httpapi.Clean(raw)
}

// The shapes of a series.
type (
	// SeriesAnswer are the values of an agent over time.
	SeriesAnswer struct {
		Agent   wire.ID       `json:"agent" doc:"agent id"`
		Measure string        `json:"measure" enum:"score,ratings,reviewers"`
		Every   string        `json:"every" enum:"hour,day,week"`
		Tag     *string       `json:"tag" doc:"only ratings with this tag1 count; null for all"`
		From    wire.Time     `json:"from" format:"date-time" doc:"start of the first bucket"`
		To      wire.Time     `json:"to" format:"date-time" doc:"end of the last bucket"`
		Points  []SeriesPoint `json:"points" doc:"one for each bucket, also for those without data"`
		Undated wire.Long     `json:"undated" doc:"ratings or reviewers that are in no bucket, because the time of their blocks is not known"`
		AsOf    wire.AsOf     `json:"asOf"`
	}
	// SeriesPoint is the value of one bucket.
	SeriesPoint struct {
		Start   wire.Time  `json:"start" format:"date-time" doc:"in UTC; weeks begin on Mondays"`
		Value   *float64   `json:"value" doc:"the score, null before the first final one; or how many ratings or reviewers, 0 without any"`
		Carried bool       `json:"carried" doc:"no final score was stored in the bucket, so that value is the last one before it: a final score is stored where it differs from the one before"`
		Low     *float64   `json:"low" doc:"of a score, null for counts"`
		High    *float64   `json:"high" doc:"of a score, null for counts"`
		Status  *string    `json:"status" enum:"rated,thin,unrated" doc:"of a score, null for counts"`
		Epoch   *wire.Long `json:"epoch" doc:"that the score is of; null for counts"`
	}
)

// Steady returns the body without what moves while nothing happens, for its ETag.
func (b SeriesAnswer) Steady() any { b.AsOf = wire.SteadyAsOf(b.AsOf); return b }

// EncodeSeries writes a series of ratings with this tag, nil for all.
func EncodeSeries(s historydb.Series, tag *string) SeriesAnswer {
	w := SeriesAnswer{Agent: wire.ID(s.Agent.String()), Measure: string(s.Measure), Every: string(s.Every),
		From: timeOf(s.From), To: timeOf(s.To), Undated: wire.Long(s.Undated), AsOf: wire.EncodeAsOf(s.AsOf)}
	if tag != nil {
		w.Tag = new(wire.BriefText(*tag))
	}
	isScore := s.Measure == historydb.MeasureScore
	w.Points = wire.Each(s.Points, func(p historydb.Point) SeriesPoint { return encodePoint(p, isScore) })
	return w
}

// encodePoint writes the value of a bucket.
func encodePoint(p historydb.Point, isScore bool) SeriesPoint {
	w := SeriesPoint{Start: timeOf(p.Start), Carried: p.Carried}
	switch {
	case !isScore:
		w.Value = new(float64(p.Count))
	case p.Score != nil:
		w.Value, w.Low = new(wire.Points(p.Score.Score)), new(wire.Points(p.Score.Low))
		w.High, w.Status = new(wire.Points(p.Score.High)), new(string(p.Score.Status))
		w.Epoch = new(wire.Long(p.Score.Epoch))
	}
	return w
}

// timeOf writes a time, which is not zero.
func timeOf(t time.Time) wire.Time { return wire.Time(t.UTC().Format(time.RFC3339)) }
