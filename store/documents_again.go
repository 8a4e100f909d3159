package store

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// AgainHost is the queue of ipfs documents that failed twice or more: nobody may have
// them any more, and to find that out takes long, for which new ones must not wait.
const AgainHost = ipfsHost + "/again"

// ipfsHost is the queue of all other ipfs documents, as package resolver names it.
const ipfsHost = "ipfs"

// moveAgain moves what failed again to the queue of such.
func (s saving) moveAgain(ctx context.Context, tx pgx.Tx) error {
	var broken []int64
	for _, r := range s.results {
		if r.Reason != "" {
			broken = append(broken, r.URIID)
		}
	}
	if broken == nil {
		return nil
	}
	_, err := tx.Exec(ctx, `
		with moved as (
			update uris set host = $2 where id = any($1) and host = $3 and failures > 1 returning host, rank, next_due)
		insert into hosts (host, turn, rank)
		select host, min(next_due), min(rank) from moved where next_due is not null group by host `+earlierTurn, broken, AgainHost, ipfsHost)
	return err
}

// wishedOr is when URI u is due: when somebody wished so while it was fetched, which is
// before its claim ends, or else when the outcome k says.
func wishedOr(due string) string {
	return `case when u.next_due < k.claimed then u.next_due else ` + due + ` end`
}
