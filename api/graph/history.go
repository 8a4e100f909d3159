package graph

import (
	"context"
	"fmt"

	"repute"
	"repute/api/answers"
	"repute/api/wire"
	"repute/api/wire/stats"
	"repute/store"
	"repute/store/column"
	"repute/store/historydb"
)

// historyArgs are the arguments of Agent.history.
type historyArgs struct {
	Kinds *[]string
	Order *string
	First *int32
	After *string
}

// filter reads the arguments.
func (args historyArgs) filter() (f historydb.Filter, err error) {
	if f.Kinds, f.OldestFirst, err = answers.ParseHistory("", orEmpty(args.Order)); err != nil {
		return f, err
	}
	if args.Kinds != nil {
		f.Kinds = wire.Each(*args.Kinds, func(kind string) historydb.Kind { return historydb.Kind(kind) })
	}
	f.After = orEmpty(args.After)
	f.Limit, err = pageSize(args.First)
	return f, err
}

// History lists how the agent changed. A page after a cursor is read for one agent alone, because cursors of several
// agents differ.
func (n *agentNode) History(ctx context.Context, args historyArgs) (*connection[stats.AgentChange, *wire.AsOf], error) {
	f, err := args.filter()
	if err != nil {
		return nil, err
	}
	if n.group.list && args.After == nil {
		first, err := n.group.historyOf(ctx, n.key, f)
		if err != nil {
			return nil, err
		}
		return &connection[stats.AgentChange, *wire.AsOf]{Nodes: wire.Each(first.Items, stats.EncodeChange),
			PageInfo: pageInfo{HasNextPage: first.More}}, nil
	}
	if err := charge(ctx, readCost+f.Limit); err != nil {
		return nil, err
	}
	f.At = n.group.at
	list, err := n.group.index.History(ctx, n.key, f)
	if err != nil {
		return nil, renameCursor(err)
	}
	return &connection[stats.AgentChange, *wire.AsOf]{list.Items, pageInfo{list.Next != nil, list.Next},
		&list.AsOf[0]}, nil
}

// seriesArgs are the arguments of Agent.series.
type seriesArgs struct {
	Measure, Every *string
	From, To       *wire.Time
	Tag            *string
}

// key tells series apart that are read at once. An absent tag and the empty tag are different series.
func (args seriesArgs) key() string {
	return fmt.Sprintf("%s %s %s %s %t %q", orEmpty(args.Measure), orEmpty(args.Every), orEmpty(args.From),
		orEmpty(args.To),
		args.Tag != nil, orEmpty(args.Tag))
}

// Series are the agent's values over time.
func (n *agentNode) Series(ctx context.Context, args seriesArgs) (*stats.SeriesAnswer, error) {
	f := historydb.SeriesFilter{At: n.group.at}
	if err := answers.ParseSeries(&f, orEmpty(args.Measure), orEmpty(args.Every), orEmpty(args.From),
		orEmpty(args.To), args.Tag); err != nil {
		return nil, err
	}
	if n.group.list {
		s, err := n.group.seriesOf(ctx, n.key, args.key(), f)
		if err != nil {
			return nil, err
		}
		out := stats.EncodeSeries(s, f.Tag)
		return &out, nil
	}
	if err := charge(ctx, readCost+f.Most()); err != nil {
		return nil, err
	}
	w, err := n.group.index.Series(ctx, n.key, f)
	if err != nil {
		return nil, err
	}
	return &w, nil
}

// overTime are the histories and series of a cohort, each read once for all of its agents.
type overTime struct {
	histories memo[map[column.AgentKey]store.FirstRows[historydb.Change]]
	series    memo[map[column.AgentKey]historydb.Series]
}

// historyOf gives an agent's first changes and whether there are more.
func (c *cohort) historyOf(ctx context.Context, id repute.AgentID,
	f historydb.Filter) (store.FirstRows[historydb.Change], error) {
	key := fmt.Sprint(f.Kinds, f.OldestFirst, f.Limit)
	all, err := c.histories.get(key, func() (map[column.AgentKey]store.FirstRows[historydb.Change], error) {
		if err := charge(ctx, readCost+f.Limit*len(c.ids)); err != nil {
			return nil, err
		}
		return historydb.HistoryByAgents(ctx, c.index.DB, c.ids, f)
	})
	return all[column.KeyOf(id)], err
}

// seriesOf gives an agent's series.
func (c *cohort) seriesOf(ctx context.Context, id repute.AgentID, key string,
	f historydb.SeriesFilter) (historydb.Series, error) {
	all, err := c.series.get(key, func() (map[column.AgentKey]historydb.Series, error) {
		if err := charge(ctx, readCost+f.Most()*len(c.ids)); err != nil {
			return nil, err
		}
		return historydb.SeriesByAgents(ctx, c.index.DB, c.ids, f)
	})
	return all[column.KeyOf(id)], err
}
