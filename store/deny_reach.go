package store

import (
	"context"

	"repute"
)

// Reach is how much a denial is about.
type Reach struct {
	Agents    int64 // that show a document of it, or are it
	Documents int64 // different bytes that are known
}

// DenialReach counts what a denial is about, on the deny-list or not. It may read every
// URI: it is for operators. repute.ErrInvalid: no such thing can be denied.
func (db *DB) DenialReach(ctx context.Context, d repute.Denial) (r Reach, err error) {
	if d, err = db.denialOf(d); err != nil {
		return r, err
	}
	err = db.pool.QueryRow(ctx, `
		with `+concerned+`,
		whose as (
			select id from gave union
			select u.id from concerned c join uris u on u.sha256 = c.sha256 where $1 <> 'agent')
		select (select count(*) from concerned c join documents d on d.sha256 = c.sha256),
			case when $1 = 'agent' then (select count(*) from agents where chain_id = $4 and token_id = $5)
				else (select count(*) from agents a join whose w on w.id = a.uri_id) end`, concernedArgs(d)...).Scan(&r.Documents, &r.Agents)
	return r, failed("count what is denied", err)
}
