package answers

import (
	"cmp"
	"context"
	"errors"

	"repute"
	"repute/internal/httpapi"
	"repute/store/chaindb"
)

// Resolve fills in what the caller left open and says how ids look when there
// is nothing of that name.
func (x *Index) Resolve(ctx context.Context, ref repute.AgentRef) (repute.AgentID, error) {
	id, err := chaindb.ResolveAgent(ctx, x.DB, ref, x.defaultChain)
	return id, Missing(err, repute.AgentIDForms+"; GET /chains lists the chains that are indexed")
}

// UnknownAgent says where to look for an agent that is not there although its id can be.
func UnknownAgent(err error) error {
	return Missing(err, "GET /agents and the tool repute_search_agents list the agents that are, GET /chains how far each chain is indexed")
}

// Missing adds a hint to what was not found and has none.
func Missing(err error, hint string) error {
	if !errors.Is(err, repute.ErrNotFound) {
		return err
	}
	b := *httpapi.ErrorOf(err)
	b.Hint = cmp.Or(b.Hint, hint)
	return &b
}
