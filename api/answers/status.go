package answers

import (
	"time"

	"repute"
	"repute/api/wire"
	"repute/store/docdb"
)

// StatusOf writes the state of the index from that of chains.
func (x *Index) StatusOf(chains []repute.ChainStatus) wire.StatusAnswer {
	return wire.NewStatus(x.version, chains)
}

// How long documents may wait: for a process that starts, and for those that work.
const (
	fetchStart = time.Minute
	fetchLate  = 15 * time.Minute
)

// FetchState is StatusAnswer.Documents: "" while documents are fetched in time,
// "unfetched" where they wait and no process fetches any, "late" where they wait long.
func FetchState(f docdb.Fetching, now time.Time) string {
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
