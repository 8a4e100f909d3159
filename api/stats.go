package api

import (
	"context"

	"repute/api/answers"
	"repute/api/wire/stats"
	"repute/store/statsdb"
)

// Inputs of the operations on all agents at once.
type (
	clientInput     struct{ answers.ClientQuery }
	validatorInput  struct{ answers.ValidatorQuery }
	validatorsInput struct{ answers.ValidatorsQuery }
	tagsInput       struct{ answers.TagsQuery }
	leadersInput    struct{ answers.LeadersQuery }
)

// mountStats adds the operations on reviewers, validators, tags and leaderboards.
func (a *API) mountStats() {
	get(a, "/clients/{address}", "get-client",
		"Returns a reviewer: what it rated, what it weighs and why, and addresses that are no strangers to it",
		a.getClient)
	get(a, "/validators", "list-validators", "Lists validators with how they answer, those with most requests first",
		a.listValidators)
	get(a, "/validators/{address}", "get-validator", "Returns a validator: how it answers, and its validations",
		a.getValidator)
	get(a, "/tags", "list-tags", "Lists the tags of ratings with their use and meaning, the most used first",
		a.listTags)
	get(a, "/leaderboard", "get-leaderboard", "Ranks agents by score, by reviewers or by new reviewers of a period",
		a.leaderboard)
}

// getClient serves GET /clients/{address}.
func (a *API) getClient(ctx context.Context, in *clientInput) (*output[stats.ClientAnswer], error) {
	address, f, err := in.Filter()
	if err != nil {
		return nil, err
	}
	client, err := a.ClientPage(ctx, address, f)
	if err != nil {
		return nil, err
	}
	return ok(client), nil
}

// readList answers with what read returns by a filter of the request.
func readList[F, B any](ctx context.Context, filter func() (F, error),
	read func(context.Context, F) (B, error)) (*output[B], error) {
	f, err := filter()
	if err != nil {
		return nil, err
	}
	list, err := read(ctx, f)
	if err != nil {
		return nil, err
	}
	return ok(list), nil
}

// listValidators serves GET /validators.
func (a *API) listValidators(ctx context.Context, in *validatorsInput) (*output[stats.ValidatorList], error) {
	return readList(ctx, in.Filter, a.Validators)
}

// getValidator serves GET /validators/{address}.
func (a *API) getValidator(ctx context.Context, in *validatorInput) (*output[stats.ValidatorAnswer], error) {
	address, f, err := in.Filter()
	if err != nil {
		return nil, err
	}
	validator, err := a.ValidatorPage(ctx, address, f)
	if err != nil {
		return nil, err
	}
	return ok(validator), nil
}

// listTags serves GET /tags.
func (a *API) listTags(ctx context.Context, in *tagsInput) (*output[stats.TagList], error) {
	return readList(ctx, in.Filter, a.Tags)
}

// leaderboard serves GET /leaderboard.
func (a *API) leaderboard(ctx context.Context, in *leadersInput) (*output[stats.LeaderList], error) {
	return readList(ctx, in.Filter, func(ctx context.Context, f statsdb.LeaderFilter) (stats.LeaderList, error) {
		list, _, err := a.Leaders(ctx, f)
		return list, err
	})
}
