package answers

import (
	"context"
	"strings"
	"time"

	"repute"
	"repute/api/wire"
	"repute/api/wire/stats"
	"repute/internal/httpapi"
	"repute/store/historydb"
)

// HistoryQuery are the parameters of an agent's history.
type HistoryQuery struct {
	Request
	AtQuery
	PageQuery
	Kinds string `query:"kind" pattern:"^ *(owner|wallet|approved|uri|metadata|operator) *(, *(owner|wallet|approved|uri|metadata|operator) *)*$" doc:"only changes of these, divided by commas: owner, wallet, approved, uri, metadata, operator"`
	Order string `query:"order" enum:"asc,desc" doc:"desc (default): newest first; asc: oldest first"`
}

// Filter reads the parameters of a history.
func (q *HistoryQuery) Filter() (f historydb.Filter, err error) {
	f.After = q.Cursor
	if f.At, err = ParseAt(q.At); err != nil {
		return f, err
	}
	if f.Kinds, f.OldestFirst, err = ParseHistory(q.Kinds, q.Order); err != nil {
		return f, err
	}
	f.Limit, err = httpapi.PageSize(q.Limit, httpapi.DefaultPage, httpapi.MaxPage)
	return f, err
}

// ParseHistory reads kinds of changes divided by commas, nil for "", and their order. GraphQL and the tools call it
// with their own arguments, which no pattern has checked.
func ParseHistory(kinds, order string) (list []historydb.Kind, oldestFirst bool, err error) {
	if kinds != "" {
		for kind := range strings.SplitSeq(kinds, ",") {
			list = append(list, historydb.Kind(strings.TrimSpace(kind)))
		}
	}
	switch order {
	case "", "asc", "desc":
		return list, order == "asc", nil
	}
	return nil, false, repute.Invalid("order", "unknown direction", "asc or desc")
}

// History returns a page of the changes of an agent.
func (x *Index) History(ctx context.Context, id repute.AgentID, f historydb.Filter) (stats.HistoryList, error) {
	page, err := historydb.History(ctx, x.DB, id, f)
	return stats.HistoryList{Items: wire.Each(page.Items, stats.EncodeChange), Next: wire.OrNull(page.Next),
		AsOf: wire.Each(page.AsOf, wire.EncodeAsOf)}, err
}

// SeriesQuery are the parameters of a series.
type SeriesQuery struct {
	Request
	AtQuery
	Measure string        `query:"measure" enum:"score,ratings,reviewers" doc:"score (default): the final score at the end of each bucket; ratings: live ratings given in it; reviewers: distinct clients of these"`
	Every   string        `query:"every" enum:"hour,day,week" doc:"length of a bucket in UTC, day when absent; weeks begin on Mondays"`
	From    httpapi.Since `query:"from" doc:"RFC 3339 time or date (UTC) in the first bucket; absent: thirty buckets up to the last one"`
	To      httpapi.Since `query:"to" doc:"RFC 3339 time or date (UTC) before which the last bucket begins; absent: that of the newest block"`
	Tag     string        `query:"tag" minLength:"0" doc:"only ratings with exactly this tag1; the empty tag is one too; not with measure=score"`
}

// Filter reads the parameters of a series.
func (q *SeriesQuery) Filter() (f historydb.SeriesFilter, err error) {
	if f.At, err = ParseAt(q.At); err != nil {
		return f, err
	}
	err = ParseSeries(&f, q.Measure, q.Every, string(q.From), string(q.To), q.optional("tag"))
	return f, err
}

// ParseSeries sets what a filter selects besides its view, from the texts of parameters. Measures and steps are checked
// by Check, which also bounds the number of buckets and refuses a tag with scores. The field of its error is that of
// the parameter.
func ParseSeries(f *historydb.SeriesFilter, measure, every, from, to string, tag *string) (err error) {
	f.Measure, f.Every, f.Tag = historydb.MeasureScore, historydb.StepDay, tag
	if measure != "" {
		f.Measure = historydb.Measure(measure)
	}
	if every != "" {
		f.Every = historydb.Step(every)
	}
	if f.From, err = parseMoment("from", from); err != nil {
		return err
	}
	if f.To, err = parseMoment("to", to); err != nil {
		return err
	}
	return f.Check()
}

// parseMoment reads a time, or a date, which begins at midnight UTC; zero for "". Years beyond 9999 have no form in RFC
// 3339, and none before 1970 has a block.
func parseMoment(field, s string) (t time.Time, err error) {
	if s == "" {
		return t, nil
	}
	if t, err = parseTime(field, s, "2026-01-31T12:00:00Z or 2026-01-31"); err != nil {
		return t, err
	}
	if t.Year() < 1970 || t.Year() > 9999 {
		return t, repute.Invalid(field, "is before or after all blocks", "a time from 1970 on, e.g. 2026-01-31")
	}
	return t.UTC(), nil
}

// Series returns a series of an agent.
func (x *Index) Series(ctx context.Context, id repute.AgentID, f historydb.SeriesFilter) (stats.SeriesAnswer, error) {
	s, err := historydb.ReadSeries(ctx, x.DB, id, f)
	return stats.EncodeSeries(s, f.Tag), err
}
