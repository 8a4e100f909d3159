package answers

import (
	"cmp"
	"context"
	"errors"

	"repute"
	"repute/internal/httpapi"
	"repute/store/chaindb"
)

// Resolve completes an agent id with the chain and the registry that the caller left out. When no such chain is
// indexed, the error has a hint with the forms of ids.
func (x *Index) Resolve(ctx context.Context, ref repute.AgentRef) (repute.AgentID, error) {
	id, err := chaindb.ResolveAgent(ctx, x.DB, ref, x.defaultChain)
	return id, Missing(err, repute.AgentIDForms+"; GET /chains lists the chains that are indexed")
}

// UnknownAgent adds a hint to repute.ErrNotFound of an agent whose id is valid: where agents are listed.
func UnknownAgent(err error) error {
	return Missing(err, "GET /agents and the tool repute_search_agents list the agents that are, "+
		"GET /chains how far each chain is indexed")
}

// Missing adds a hint to repute.ErrNotFound that has none. It returns other errors unchanged. It copies the problem
// before it changes it, since ErrorOf may return the caller's own.
func Missing(err error, hint string) error {
	if !errors.Is(err, repute.ErrNotFound) {
		return err
	}
	b := *httpapi.ErrorOf(err)
	b.Hint = cmp.Or(b.Hint, hint)
	return &b
}
