package manifestdb

import (
	"context"
	"fmt"

	"repute"
	"repute/store"
)

// SetProbed says whether checks of a domain may probe an endpoint of its manifest. Requests for the manifest and probes
// are not mixed: a change forgets what was measured before. repute.ErrNotFound: the domain is not known.
func SetProbed(ctx context.Context, db *store.DB, domain string, on bool) error {
	tag, err := db.Pool().Exec(ctx, `
		update manifests set probed = $2, latencies = case when probed = $2 then latencies else '{}' end,
			watched_at = case when probed = $2 then watched_at end, down_ms = case when probed = $2 then down_ms else 0 end,
			probe_failed_at = case when probed = $2 then probe_failed_at end
		where domain = $1`, domain, on)
	if err != nil {
		return store.Failed("set probed", err)
	}
	if tag.RowsAffected() == 0 {
		return fmt.Errorf("%w: manifest of %.253q", repute.ErrNotFound, domain)
	}
	return nil
}
