package answers

import (
	"context"
	"slices"
	"strings"

	"repute"
	"repute/store"
	"repute/store/changedata"
)

// ChangesQuery are the parameters of the change feed.
type ChangesQuery struct {
	// Since is a cursor, Kinds a list divided by commas, Agent an id in any form, Finality latest or finalized. Each is
	// "" when it is not given.
	Since, Kinds, Agent, ChainID, Finality string
}

// Filter reads the parameters. repute.ErrInvalid names the one that is wrong, repute.ErrNotFound an agent's chain that
// is not indexed. The agent comes last, because its id needs a read of the database. It sets the chain too, so that
// chainId may be left out with a full id; a chainId that contradicts the id is refused by ParseAgent.
func (q *ChangesQuery) Filter(ctx context.Context, x *Index) (f store.ChangeFilter, err error) {
	if q.Since != "" {
		if _, err = store.ParseChangeCursor(q.Since); err != nil {
			return f, err
		}
	}
	if f.Kinds, err = parseChangeKinds(q.Kinds); err != nil {
		return f, err
	}
	if f.Final, err = parseChangeFinality(q.Finality); err != nil {
		return f, err
	}
	if q.ChainID != "" {
		if f.ChainID, err = repute.ParseChainID(q.ChainID); err != nil {
			return f, err
		}
	}
	if q.Agent == "" {
		return f, nil
	}
	ref, err := ParseAgent(q.Agent, q.ChainID)
	if err != nil {
		return f, err
	}
	id, err := x.Resolve(ctx, ref)
	if err != nil {
		return f, err
	}
	f.ChainID, f.TokenID = id.ChainID, &id.TokenID
	return f, nil
}

// parseChangeKinds reads kinds of changes divided by commas, none when empty. An empty element, as in "a,,b", is no
// kind.
func parseChangeKinds(s string) (kinds []string, err error) {
	if s == "" {
		return nil, nil
	}
	for kind := range strings.SplitSeq(s, ",") {
		kind = strings.TrimSpace(kind)
		if !slices.Contains(changedata.Kinds(), kind) {
			return nil, repute.Invalid("kinds", "not a kind of change", "of "+strings.Join(changedata.Kinds(), ", "))
		}
		kinds = append(kinds, kind)
	}
	return kinds, nil
}

// parseChangeFinality reads which changes are wanted: latest, which is the default, or finalized. Views by block or
// safe make no sense for a feed.
func parseChangeFinality(s string) (isFinal bool, err error) {
	switch repute.Finality(s) {
	case "", repute.Latest:
		return false, nil
	case repute.Finalized:
		return true, nil
	}
	return false, repute.Invalid("finality", "not a view of the feed", "latest or finalized")
}
