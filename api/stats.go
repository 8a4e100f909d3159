package api

import (
	"context"

	"github.com/ethereum/go-ethereum/common"

	"repute/api/answers"
	"repute/api/wire/stats"
	"repute/store/query"
	"repute/store/statsdb"
)

// mountStats adds the operations on reviewers, validators, tags and leaderboards.
func (a *API) mountStats() {
	get(a, "/clients/{address}", "get-client",
		"Returns a reviewer: what it rated, what it weighs and why, and addresses that are no strangers to it",
		byAddress((*answers.ClientQuery).Filter, a.ClientPage))
	get(a, "/validators", "list-validators", "Lists validators with how they answer, those with most requests first",
		byFilter((*answers.ValidatorsQuery).Filter, a.Validators))
	get(a, "/validators/{address}", "get-validator", "Returns a validator: how it answers, and its validations",
		byAddress((*answers.ValidatorQuery).Filter, a.ValidatorPage))
	get(a, "/tags", "list-tags", "Lists the tags of ratings with their use and meaning, the most used first",
		byFilter((*answers.TagsQuery).Filter, a.Tags))
	get(a, "/leaderboard", "get-leaderboard", "Ranks agents by score, by reviewers or by new reviewers of a period",
		byFilter((*answers.LeadersQuery).Filter,
			func(ctx context.Context, f statsdb.LeaderFilter) (stats.LeaderList, error) {
				list, _, err := a.Leaders(ctx, f)
				return list, err
			}))
}

// byAddress is byFilter for what an address did.
func byAddress[I, B any](filter func(*I) (common.Address, query.ParticipantFilter, error),
	read func(context.Context, common.Address, query.ParticipantFilter) (B, error),
) func(context.Context, *I) (*output[B], error) {
	return func(ctx context.Context, in *I) (*output[B], error) {
		address, f, err := filter(in)
		if err != nil {
			return nil, err
		}
		body, err := read(ctx, address, f)
		if err != nil {
			return nil, err
		}
		return ok(body), nil
	}
}
