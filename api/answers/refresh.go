package answers

import (
	"context"
	"fmt"
	"time"

	"repute"
	"repute/api/wire"
	"repute/internal/httpapi"
	"repute/store/query"
)

// Rate limit of refreshes: refreshBurst at once, then one per refreshPeriod.
const (
	refreshBurst  = 10
	refreshPeriod = 6 * time.Second
)

// RequestRefresh schedules another read of an agent's document, within the limits of the caller of ctx and of the
// document. The caller's limit comes first and is used up also by an id that does not exist, so that nobody can probe
// ids for free. The document's own limit is kept in the database and holds for all callers together.
func (x *Index) RequestRefresh(ctx context.Context, ref repute.AgentRef) (*wire.RefreshAnswer, error) {
	if wait := x.refreshes.Allow(ctx, httpapi.CallerOf(ctx)); wait > 0 && x.limited {
		return nil, tooSoon("too many refreshes", wait)
	}
	id, err := x.Resolve(ctx, ref)
	if err != nil {
		return nil, err
	}
	r, err := query.RequestRefresh(ctx, x.DB, id)
	if err != nil {
		return nil, UnknownAgent(err)
	}
	if !r.Queued {
		return nil, tooSoon("the document was refreshed lately", time.Until(r.NextAllowed))
	}
	return &wire.RefreshAnswer{Queued: true, NextAllowedAt: wire.EncodeTime(r.NextAllowed)}, nil
}

// PermitFetch counts a file that is read for the caller of ctx, and returns why it may not be read now; nil if it may.
// Reads and refreshes have one limit.
func (x *Index) PermitFetch(ctx context.Context) error {
	if wait := x.refreshes.Allow(ctx, httpapi.CallerOf(ctx)); wait > 0 && x.limited {
		return tooSoon("too many files were read for this caller", wait)
	}
	return nil
}

// tooSoon makes the answer 429 that says when to ask again. Retry is at least a second, because the header has whole
// seconds and 0 would invite the next request at once.
func tooSoon(detail string, wait time.Duration) error {
	b := *httpapi.ErrorOf(fmt.Errorf("%s: %w", detail, repute.ErrLimited))
	b.Retry = max(wait, time.Second)
	b.Hint = "wait as long as Retry-After says"
	return &b
}
