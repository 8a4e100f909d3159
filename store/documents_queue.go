package store

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"repute"
)

// Rank is whose document a URI is, which is the order of the queue. Lower comes
// first; a URI of several uses has that of the first.
type Rank int

// Ranks of URIs.
const (
	RankNew   Rank = iota // an agent's, never read
	RankAgent             // an agent's
	RankProof             // a domain's proof
	RankFile              // of feedback, a response or a validation
)

// claimTime is for how long a claimed URI is nobody else's. It doubles with
// every claim that was not followed by a success, up to 2^maxClaimDoublings, so
// that a document which kills its reader does so ever more rarely.
const (
	claimTime         = 5 * time.Minute
	maxClaimDoublings = 6
)

// lastRank is the last that is fetched.
func (db *DB) lastRank() Rank {
	if db.noFiles {
		return RankProof
	}
	return RankFile
}

// DueHosts names hosts with documents of agents to fetch now, "" for those that need
// no network: those of first, which never wait behind others and may have files only,
// and of each rank up to limit others, the one that waited longest before. A host
// whose documents were all fetched or failed stays until FinishHost.
func (db *DB) DueHosts(ctx context.Context, limit int, first ...string) ([]string, error) {
	if first == nil {
		first = []string{}
	}
	return db.hostsDue(ctx, RankNew, RankProof, limit, first, []string{})
}

// DueFileHosts names up to limit hosts where only files are to be fetched now, without
// those of except. Anybody makes any number of them at the price of a rating: they are
// apart from the hosts of agents.
func (db *DB) DueFileHosts(ctx context.Context, limit int, except ...string) ([]string, error) {
	if except == nil {
		except = []string{}
	}
	return db.hostsDue(ctx, RankFile, RankFile, limit, []string{}, except)
}

func (db *DB) hostsDue(ctx context.Context, from, to Rank, limit int, first, except []string) ([]string, error) {
	rows, err := db.pool.Query(ctx, `
		(select host from hosts where host = any($1) and turn <= now())
		union all
		select h.host from generate_series($3::int, $4::int) r
		cross join lateral (
			select host from hosts where rank = r and turn <= now() and host <> all($1) and host <> all($5)
			order by turn limit $2) h`, first, limit, from, to, except)
	if err != nil {
		return nil, failed("list due hosts", err)
	}
	hosts, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return hosts, failed("list due hosts", err)
}

// String names the rank where it is shown.
func (r Rank) String() string {
	if r < RankNew || r > RankFile {
		return "unknown"
	}
	return [...]string{"new", "agent", "proof", "file"}[r]
}

// turnTime is for how long a host whose turn has begun is nobody else's. Whoever has
// it ends its turn before, or died.
const turnTime = 135 * time.Second

// BeginHost begins a host's turn and tells whether it did: the host may not be due any
// more. For some two minutes it is not due then, unless new documents of it are. Of
// hundreds that are worked on none is then offered again.
func (db *DB) BeginHost(ctx context.Context, host string) (bool, error) {
	done, err := db.pool.Exec(ctx, "update hosts set turn = now() + $2::interval where host = $1 and turn <= now()", host, turnTime)
	return done.RowsAffected() == 1, failed("begin host", err)
}

// ReturnHost ends a turn in which not all was done that could be: the host is due again
// at once.
func (db *DB) ReturnHost(ctx context.Context, host string) error {
	_, err := db.pool.Exec(ctx, "update hosts set turn = least(turn, greatest(now(), rest_until)) where host = $1", host)
	return failed("return host", err)
}

// FinishHost ends a host's turn: the next is when its next document is due, behind
// all hosts that wait already.
func (db *DB) FinishHost(ctx context.Context, host string) error {
	return db.inTx(ctx, pgx.TxOptions{}, "finish host", func(tx pgx.Tx) error {
		// With the row locked nobody adds a due document unseen.
		if _, err := tx.Exec(ctx, "select from hosts where host = $1 for update", host); err != nil {
			return err
		}
		// What is due now goes by its rank, the rest by its time.
		done, err := tx.Exec(ctx, `
			with next as (
				select r as rank, u.due from generate_series(0, $2::int) r
				cross join lateral (
					select next_due as due from uris where host = $1 and rank = r and next_due is not null
					order by next_due limit 1) u
				order by greatest(u.due, now()), r limit 1)
			update hosts h set turn = greatest(n.due, now()), rank = n.rank, failures = 0, rest_until = null
			from next n where h.host = $1`, host, db.lastRank())
		if err == nil && done.RowsAffected() == 0 {
			_, err = tx.Exec(ctx, "delete from hosts where host = $1", host)
		}
		return err
	})
}

// wishedRest is for how long the silence of a host outweighs new documents and wishes:
// they come sooner than its turn, but nobody has it asked without a pause.
const wishedRest = 5 * time.Minute

// PostponeHost ends the turn of a host that did not answer: the next is after rest, or
// after shortest, doubled for each such turn in a row up to longest, if that is more.
// New documents give it a turn earlier, but never within rest, which it asked for, nor
// within five minutes of its silence.
func (db *DB) PostponeHost(ctx context.Context, host string, rest, shortest, longest time.Duration) error {
	_, err := db.pool.Exec(ctx, `
		with pause as (
			select least($3::interval * power(2, least(failures, 20)), $4::interval) * (0.9 + random() / 5) as silence
			from hosts where host = $1)
		update hosts set failures = failures + 1, turn = now() + greatest($2::interval, p.silence),
			rest_until = now() + greatest($2::interval, least(p.silence, $5::interval))
		from pause p where host = $1`, host, rest, shortest, longest, wishedRest)
	return failed("postpone host", err)
}

// ReleaseURI gives back a claim nothing came of: the URI is due again, and the
// claim does not count as an attempt.
func (db *DB) ReleaseURI(ctx context.Context, u URI) error {
	_, err := db.pool.Exec(ctx, `
		update uris set next_due = now(), attempts = attempts - 1
		where id = $1 and attempts = $2 and next_due is not null`, u.ID, u.Attempts)
	return failed("release document", err)
}

// DueURIs claims up to limit due URIs of a host in the order of their ranks, within
// one those that became due last first. A claim that is not followed by SaveDocument
// expires, and the URI is due again.
func (db *DB) DueURIs(ctx context.Context, host string, limit int) ([]URI, error) {
	rows, err := db.pool.Query(ctx, claimSQL(limit, db.lastRank()), host, claimTime, maxClaimDoublings)
	if err != nil {
		return nil, failed("claim due documents", err)
	}
	deny := false
	uris, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (u URI, err error) {
		var raw []byte
		err = row.Scan(&u.ID, &raw, &u.Kind, &u.Host, &u.Rank, &u.Attempts, &u.Failures, &u.ETag, &u.LastModified, &u.Used, &u.Claimed, &deny)
		u.URI = string(raw)
		return u, err
	})
	if err == nil && deny {
		err = db.judgeURIs(ctx, uris)
	}
	return uris, failed("claim due documents", err)
}

// claimSQL has its bounds in its text, and asks for no more than every fetch needs: it
// runs for every few documents, and Postgres plans it once only where it sees how many
// these are.
func claimSQL(limit int, last Rank) string {
	n := strconv.Itoa(limit)
	return `
		with due as materialized (
			select u.id, u.rank as place, u.next_due as since from generate_series(0, ` + strconv.Itoa(int(last)) + `) r
			cross join lateral (
				select id, rank, next_due from uris
				where host = $1 and rank = r and next_due <= now()
				order by next_due desc limit ` + n + ` for update skip locked) u
			limit ` + n + `),
		claimed as (
			update uris u set attempts = attempts + 1,
				next_due = now() + $2::interval * power(2, least(u.attempts, $3))
			from due where u.id = due.id
			returning u.id, u.uri, u.kind, u.host, u.rank, u.attempts, u.failures, u.sha256, u.etag, u.last_modified,
				u.tried_at, u.next_due, due.place, due.since)
		select id, uri, kind, host, rank, attempts, failures, ` + ifKept("etag") + `, ` + ifKept("last_modified") + `, ` + usedURI("claimed") + `,
			next_due, exists (select from denied)
		from claimed order by place, since desc, id desc`
}

// judgeURIs tells which of the URIs must not be fetched.
func (db *DB) judgeURIs(ctx context.Context, uris []URI) error {
	ids := make([]int64, len(uris))
	for i, u := range uris {
		ids[i] = u.ID
	}
	rows, err := db.pool.Query(ctx, `
		select id, reason from (select u.id, `+deniedURI("u")+` as reason from uris u where u.id = any($1)) d where reason is not null`, ids)
	if err != nil {
		return err
	}
	var id int64
	var reason string
	_, err = pgx.ForEachRow(rows, []any{&id, &reason}, func() error {
		uris[slices.Index(ids, id)].Denied = &repute.DeniedError{Reason: reason}
		return nil
	})
	return err
}

// ifKept is a validator of a claimed URI, empty when the bytes it stands for were
// dropped: a server that says they are unchanged would keep them away for ever.
func ifKept(column string) string {
	return `case when ` + column + ` <> '' and exists (select from documents d where d.sha256 = claimed.sha256 and d.body is not null) then ` + column + ` else '' end`
}

// usedURI tells whether a URI is of interest now: an agent has it at present, or a
// file that an agent shows names its domain. Files are what they were. What was never
// tried is due in front of whoever has it, which is on its way into the tables.
func usedURI(u string) string {
	return `case when ` + u + `.tried_at is null then true
		when ` + u + `.rank < 2 then exists (select from agents a where a.uri_id = ` + u + `.id)
		when ` + u + `.rank = 2 then exists (
			select from domains w join uris f on f.sha256 = w.sha256 join agents a on a.uri_id = f.id where w.uri_id = ` + u + `.id)
		else true end`
}

// PlanFiles makes due up to limit files of feedback, responses and validations that
// nobody asked for yet, and tells how many it found. Indexing leaves that to the
// documents loop: it stores what the chain says as fast as it can.
func (db *DB) PlanFiles(ctx context.Context, limit int) (int, error) {
	if db.noFiles {
		return 0, nil
	}
	var n int
	err := db.pool.QueryRow(ctx, `
		with picked as materialized (
			select id from uris where rank = 3 and next_due is null and tried_at is null and kind <> 'empty'
			order by id limit $1 for update skip locked),
		planned as (update uris u set next_due = now() from picked where u.id = picked.id returning u.host, u.rank),
		turns as (`+giveTurns("planned")+`)
		select count(*) from planned`, limit).Scan(&n)
	return n, failed("plan files", err)
}

// giveTurns gives the hosts of a relation a turn now, or once they rested, in the order
// of their names, as every writer does.
func giveTurns(relation string) string {
	return `
		insert into hosts (host, turn, rank)
		select host, now(), min(rank) from ` + relation + ` group by host order by host ` + earlierTurn
}

// earlierTurn makes a host's turn no later, and no less important, than the one to be
// inserted.
const earlierTurn = `
	on conflict (host) do update set
		turn = least(hosts.turn, greatest(excluded.turn, hosts.rest_until)), rank = least(hosts.rank, excluded.rank)
	where hosts.turn > greatest(excluded.turn, hosts.rest_until) or hosts.rank > excluded.rank`

// RestoreHosts gives a turn to every host with planned documents that has none, as
// after files were not wanted for a time. It reads the whole plan: once at a start.
func (db *DB) RestoreHosts(ctx context.Context) error {
	_, err := db.pool.Exec(ctx, `
		insert into hosts (host, turn, rank)
		select host, min(next_due), min(rank) from uris where next_due is not null and rank <= $1 group by host order by host`+
		earlierTurn, db.lastRank())
	return failed("restore hosts", err)
}
