package answers

import (
	"context"
	"strconv"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/api/wire"
	"repute/api/wire/stats"
	"repute/internal/httpapi"
	"repute/store/query"
	"repute/store/statsdb"
)

// ChainsQuery selects chains.
type ChainsQuery struct {
	ChainIDs string `query:"chainId" pattern:"^ *[1-9][0-9]{0,18} *(, *[1-9][0-9]{0,18} *)*$" doc:"chain ids divided by commas; all chains when absent"`
}

// AddressPath names an address.
type AddressPath struct {
	Address string `path:"address" pattern:"^0x[0-9a-fA-F]{40}$" doc:"0x and 40 hex digits" example:"0x8004A169FB4a3325136EB29fA0ceB6D2e539a432"`
}

// ClientQuery are the parameters of a reviewer.
type ClientQuery struct {
	Request
	AddressPath
	ChainsQuery
	PageQuery
	IncludeRevoked httpapi.Flag `query:"includeRevoked" doc:"also list ratings that were withdrawn"`
}

// Filter reads the parameters of a reviewer.
func (q *ClientQuery) Filter() (a common.Address, f query.ParticipantFilter, err error) {
	f.After = q.Cursor
	if f.IncludeRevoked, err = q.IncludeRevoked.Bool("includeRevoked"); err != nil {
		return a, f, err
	}
	a, err = readParticipant(&f, q.Address, q.ChainIDs, q.Limit)
	return a, f, err
}

// readParticipant reads the parameters that reviewers and validators have in common. It sets only the members that both
// have; the caller sets its own before.
func readParticipant(f *query.ParticipantFilter, address, chains string, limit httpapi.Number) (a common.Address,
	err error) {
	if a, err = repute.ParseAddress("address", address); err != nil {
		return a, err
	}
	if f.ChainIDs, err = ParseChains(chains); err != nil {
		return a, err
	}
	f.Limit, err = httpapi.PageSize(limit, httpapi.DefaultPage, httpapi.MaxPage)
	return a, err
}

// ClientPage returns a reviewer with a page of its ratings. The chains and the page are read in one transaction, so
// that both are of one state.
func (x *Index) ClientPage(ctx context.Context, a common.Address, f query.ParticipantFilter) (w stats.ClientAnswer,
	err error) {
	var chains []statsdb.ClientChain
	page, err := query.FeedbackOf(ctx, x.DB, a, f, statsdb.ClientInto(a, &chains))
	if err != nil {
		return w, err
	}
	w = stats.ClientAnswer{Items: wire.Each(page.Items, wire.EncodeFeedback), Next: wire.OrNull(page.Next),
		AsOf: wire.Each(page.AsOf, wire.EncodeAsOf)}
	w.Client, err = x.client(ctx, a, chains)
	return w, err
}

// Client returns a reviewer.
func (x *Index) Client(ctx context.Context, a common.Address, chainIDs []uint64) (stats.Client, []wire.AsOf, error) {
	chains, asOf, err := statsdb.Client(ctx, x.DB, a, chainIDs)
	if err != nil {
		return stats.Client{}, nil, err
	}
	w, err := x.client(ctx, a, chains)
	return w, wire.Each(asOf, wire.EncodeAsOf), err
}

// client adds what a reviewer weighs to what it did on each chain. The graph of a chain may have to be read for that,
// within the limit on walks that callers may cause.
func (x *Index) client(ctx context.Context, a common.Address,
	chains []statsdb.ClientChain) (w stats.Client, err error) {
	ids := make([]uint64, len(chains))
	for i, c := range chains {
		ids[i] = c.ChainID
	}
	trust, err := x.trust.Raters(ctx, ids, a, func() error { return x.admitWalk(ctx) })
	return stats.EncodeClient(a, chains, trust), err
}

// ValidatorQuery are the parameters of a validator.
type ValidatorQuery struct {
	Request
	AddressPath
	ChainsQuery
	PageQuery
	TrustedOnly httpapi.Flag `query:"trustedOnly" doc:"only requests in allow-listed contracts"`
}

// Filter reads the parameters of a validator.
func (q *ValidatorQuery) Filter() (a common.Address, f query.ParticipantFilter, err error) {
	f.After = q.Cursor
	if f.TrustedOnly, err = q.TrustedOnly.Bool("trustedOnly"); err != nil {
		return a, f, err
	}
	a, err = readParticipant(&f, q.Address, q.ChainIDs, q.Limit)
	return a, f, err
}

// ValidatorsQuery are the parameters of a list of validators.
type ValidatorsQuery struct {
	Request
	ChainsQuery
	PageQuery
	TrustedOnly httpapi.Flag `query:"trustedOnly" doc:"only requests in allow-listed contracts"`
}

// Filter reads the parameters of a list of validators.
func (q *ValidatorsQuery) Filter() (f statsdb.ValidatorFilter, err error) {
	f.After = q.Cursor
	if f.TrustedOnly, err = q.TrustedOnly.Bool("trustedOnly"); err != nil {
		return f, err
	}
	if f.ChainIDs, err = ParseChains(q.ChainIDs); err != nil {
		return f, err
	}
	f.Limit, err = httpapi.PageSize(q.Limit, httpapi.DefaultPage, httpapi.MaxPage)
	return f, err
}

// Validators returns a page of validators.
func (x *Index) Validators(ctx context.Context, f statsdb.ValidatorFilter) (stats.ValidatorList, error) {
	page, err := statsdb.Validators(ctx, x.DB, f)
	return stats.ValidatorList{Items: wire.Each(page.Items, stats.EncodeValidator), Next: wire.OrNull(page.Next),
		AsOf: wire.Each(page.AsOf, wire.EncodeAsOf)}, err
}

// ValidatorPage returns how a validator answers on each chain, with a page of its validations.
func (x *Index) ValidatorPage(ctx context.Context, a common.Address, f query.ParticipantFilter) (stats.ValidatorAnswer,
	error) {
	var chains []statsdb.Validator
	page, err := query.ValidationsOf(ctx, x.DB, a, f, statsdb.ValidatorInto(a, f.TrustedOnly, &chains))
	return stats.ValidatorAnswer{Address: wire.AddressOf(a), Chains: wire.Each(chains, stats.EncodeValidator),
		Items: wire.Each(page.Items, wire.EncodeValidation), Next: wire.OrNull(page.Next),
		AsOf: wire.Each(page.AsOf, wire.EncodeAsOf)}, err
}

// Validator returns how a validator answers on the chains of a filter.
func (x *Index) Validator(ctx context.Context, a common.Address, f query.ParticipantFilter) ([]stats.ValidatorChain,
	[]wire.AsOf, error) {
	list, err := x.Validators(ctx, statsdb.ValidatorFilter{ChainIDs: f.ChainIDs, Address: &a,
		TrustedOnly: f.TrustedOnly,
		Limit:       httpapi.MaxPage})
	return list.Items, list.AsOf, err
}

// TagsQuery are the parameters of a list of tags.
type TagsQuery struct {
	Request
	ChainsQuery
	PageQuery
	Tag1 string `query:"tag1" minLength:"0" doc:"lists the second tags of ratings with exactly this tag1; the empty tag is one too; absent: lists all tag1"`
}

// Filter reads the parameters of a list of tags.
func (q *TagsQuery) Filter() (f statsdb.TagFilter, err error) {
	f = statsdb.TagFilter{Tag1: q.optional("tag1"), After: q.Cursor}
	if f.ChainIDs, err = ParseChains(q.ChainIDs); err != nil {
		return f, err
	}
	f.Limit, err = httpapi.PageSize(q.Limit, httpapi.DefaultPage, httpapi.MaxPage)
	return f, err
}

// Tags returns a page of tags with their meanings. The ranges of scored tags are passed to the statement, because the
// database has no dictionary of tags.
func (x *Index) Tags(ctx context.Context, f statsdb.TagFilter) (stats.TagList, error) {
	tags, bounds := x.trust.ScoredTags()
	for _, tag := range tags {
		f.Scored = append(f.Scored, statsdb.TagRange{Tag: tag, Low: wire.DecimalOf(bounds[tag][0]),
			High: wire.DecimalOf(bounds[tag][1])})
	}
	page, err := statsdb.Tags(ctx, x.DB, f)
	return stats.TagList{Next: wire.OrNull(page.Next), AsOf: wire.Each(page.AsOf, wire.EncodeAsOf),
		Items: wire.Each(page.Items, func(t statsdb.Tag) stats.Tag {
			if f.Tag1 != nil {
				return stats.EncodeTag(t, f.Tag1, x.trust.Meaning(*f.Tag1))
			}
			return stats.EncodeTag(t, nil, x.trust.Meaning(string(t.Bytes)))
		})}, err
}

// LeadersQuery are the parameters of a leaderboard.
type LeadersQuery struct {
	Request
	ChainsQuery
	PageQuery
	By           string         `query:"by" enum:"score,reviewers,growth" doc:"score (default): of rated agents; reviewers: distinct clients with a live rating; growth: clients that rated the agent for the first time in the period"`
	Period       string         `query:"period" enum:"7d,30d,90d" doc:"of by=growth, up to the newest block: 30d when absent"`
	MinReviewers httpapi.Number `query:"minReviewers" minimum:"0" doc:"only agents with so many distinct clients with a live rating"`
}

// Filter reads the parameters of a leaderboard. By is checked by statsdb, which knows the rankings.
func (q *LeadersQuery) Filter() (f statsdb.LeaderFilter, err error) {
	f = statsdb.LeaderFilter{By: statsdb.ByScore, After: q.Cursor}
	if q.By != "" {
		f.By = statsdb.Ranking(q.By)
	}
	if f.Period, err = parsePeriod(q.Period, f.By); err != nil {
		return f, err
	}
	if q.MinReviewers != "" {
		f.MinReviewers, err = strconv.ParseInt(string(q.MinReviewers), 10, 64)
		if err != nil || f.MinReviewers < 0 || q.MinReviewers[0] == '+' {
			return f, repute.Invalid("minReviewers", "not a number of reviewers", "0 or more, e.g. 3")
		}
	}
	if f.ChainIDs, err = ParseChains(q.ChainIDs); err != nil {
		return f, err
	}
	f.Limit, err = httpapi.PageSize(q.Limit, httpapi.DefaultPage, httpapi.MaxPage)
	return f, err
}

// parsePeriod reads the period of a ranking by growth, 0 for others.
func parsePeriod(s string, by statsdb.Ranking) (time.Duration, error) {
	days := map[string]int{"7d": 7, "30d": 30, "90d": 90}[s]
	switch {
	case s != "" && days == 0:
		return 0, repute.Invalid("period", "unknown period", "7d, 30d or 90d")
	case s != "" && by != statsdb.ByGrowth:
		return 0, repute.Invalid("period", "goes with by=growth alone", "leave out period, or ask for by=growth")
	case s == "" && by == statsdb.ByGrowth:
		days = 30
	}
	return time.Duration(days) * 24 * time.Hour, nil
}

// Leaders returns a page of a leaderboard. The agents are in the order of the items, for callers that write more about
// them, as GraphQL does.
func (x *Index) Leaders(ctx context.Context, f statsdb.LeaderFilter) (stats.LeaderList, []repute.Agent, error) {
	page, err := statsdb.Leaders(ctx, x.DB, f)
	if err != nil {
		return stats.LeaderList{}, nil, err
	}
	list := stats.LeaderList{Items: make([]stats.Leader, len(page.Items)), Next: wire.OrNull(page.Next),
		AsOf: wire.Each(page.AsOf, wire.EncodeAsOf)}
	agents := make([]repute.Agent, len(page.Items))
	for i, l := range page.Items {
		list.Items[i], agents[i] = stats.EncodeLeader(l, f.By), l.Agent
	}
	return list, agents, nil
}
