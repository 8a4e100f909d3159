package answers

import (
	"time"

	"repute"
	"repute/api/wire"
	"repute/store/docstats"
)

// StatusOf returns the status of the index, from the statuses of its chains.
func (x *Index) StatusOf(chains []repute.ChainStatus) wire.StatusAnswer {
	return wire.NewStatus(x.version, chains)
}

// How long documents may wait before the status reports it: without a process that fetches, and with one.
const (
	fetchStart = time.Minute
	fetchLate  = 15 * time.Minute
)

// FetchState is StatusAnswer.Documents: "" while documents are fetched in time,
// "unfetched" where they wait and no process fetches any, "late" where they wait long. A process that fetches may be
// busy with slow hosts for minutes, while one that is missing shows at once; so the two bounds differ.
func FetchState(f docstats.Fetching, now time.Time) string {
	switch waits := now.Sub(f.Since); {
	case f.Since.IsZero() || waits < fetchStart:
		return ""
	case !f.Workers:
		return "unfetched"
	case waits > fetchLate:
		return "late"
	}
	return ""
}
