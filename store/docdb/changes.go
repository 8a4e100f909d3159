package docdb

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"repute/store"
	"repute/store/column"
	"repute/store/trustmark"
)

const (
	// maxDirectChanges is the most agents whose changes are written in the transaction that
	// saves their document or the proof of their domain.
	maxDirectChanges = 1000
	// sharedChangesPause is the least time between two rounds of changes of a document that
	// more agents share.
	sharedChangesPause = time.Hour
)

// visibleChanges are visible changes to a set of URIs.
type visibleChanges struct {
	documents []int64  // URIs of changed documents
	data      []string // what each shows now, as JSON
	proofs    []int64  // URIs whose bytes or proof state changed, so that they may prove something else
	// was and is hold the hashes of the bytes that each of proofs returned before and returns now.
	was, is [][]byte
}

// add compares what a URI shows before and after. A document that its host no longer serves,
// or serves again, has changed too, because scores depend on it.
func (n *visibleChanges) add(id int64, before, after shown) error {
	same := before.equal(after)
	if !same || before.served != after.served {
		b, err := json.Marshal(after)
		if err != nil {
			return err
		}
		n.documents, n.data = append(n.documents, id), append(n.data, string(column.EscapeNUL(b)))
	}
	if !same || before.proofState != after.proofState {
		n.proofs = append(n.proofs, id)
		n.was, n.is = append(n.was, before.sum), append(n.is, after.sum)
	}
	return nil
}

// addVisibleChanges writes the changes of what URIs show to the change feed.
func addVisibleChanges(ctx context.Context, tx pgx.Tx, ids []int64, before map[int64]shown) error {
	after, err := readShown(ctx, tx, ids)
	if err != nil {
		return err
	}
	var n visibleChanges
	for _, id := range ids {
		if err := n.add(id, before[id], after[id]); err != nil {
			return err
		}
	}
	if n.documents != nil {
		if err := n.addDocumentChanges(ctx, tx); err != nil {
			return err
		}
	}
	if n.proofs != nil {
		return n.addProofChanges(ctx, tx)
	}
	return nil
}

// ShowURIs announces to SaveDocuments that agents show some URIs from a transaction on. The transaction MUST call it
// before it commits. It waits for transactions that are saving changes of these documents, so that a reader of the
// agents finds the new documents; later ones write their changes again once this transaction has ended.
func ShowURIs(ctx context.Context, tx pgx.Tx, ids []int64) error {
	if ids = slices.DeleteFunc(ids, func(id int64) bool { return id == 0 }); len(ids) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, "select from uris where id = any($1) order by id for key share", ids)
	return store.Failed("lock documents of agents", err)
}

// lockUnshown locks URIs against ShowURIs and returns those that it did not lock, because the transaction of an agent
// that shows one has not ended. It does not wait.
func lockUnshown(ctx context.Context, tx pgx.Tx, ids []int64) (busy []int64, err error) {
	rows, _ := tx.Query(ctx, "select id from uris where id = any($1) order by id for update skip locked", ids)
	locked, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	return slices.DeleteFunc(slices.Clone(ids), func(id int64) bool { return slices.Contains(locked, id) }), err
}

// addDocumentChanges writes one change per agent that shows a document. If more than maxDirectChanges agents show it,
// AddSharedChanges writes the changes instead. AddSharedChanges also writes them for all agents of the document if
// another transaction that makes an agent show it has not ended, or if no agent shows it yet. Such a transaction may
// commit before this one, and a reader of its agent would find the former document in between. The changes belong to no
// block, because a rewind does not undo what was read from a URI. Denied agents get none.
func (n *visibleChanges) addDocumentChanges(ctx context.Context, tx pgx.Tx) error {
	busy, err := lockUnshown(ctx, tx, n.documents)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `
		with k as materialized (
			select id, data, exists (select from agents a where a.uri_id = u.id offset $3) as crowd,
				not exists (select from agents a where a.uri_id = u.id) as alone
			from unnest($1::bigint[], $2::text[]) as u(id, data)),
		later as (
			insert into cursors (job, part, due) select 'shared document', id, now() from k
			where crowd or (alone or id = any($5)) and exists (select from uris u where u.id = k.id and u.rank < 2) order by id
			on conflict (job, chain_id, part) do update set
				state = cursors.state || jsonb_build_object('again', cursors.state ? 'chain'),
				due = coalesce(cursors.due, greatest(now(), cursors.begun + $4::interval))),
		told as (
			insert into changes (chain_id, kind, block, log_index, token_id, data)
			select a.chain_id, 'document.updated', 0, 0, a.token_id, k.data::jsonb
			from k join agents a on a.uri_id = k.id
			where not k.crowd and `+DeniedAgent("a")+` is null
			order by a.chain_id, a.token_id
			returning chain_id, token_id)
		`+trustmark.InsertAgents+`select distinct chain_id, token_id from told`, n.documents, n.data, maxDirectChanges, sharedChangesPause, busy)
	return err
}

// addProofChanges writes one change per agent whose file names a domain that a URI proves. When
// there are more than maxDirectChanges, only agents that the proof names, or named before, get one:
// for others the result for the domain is the same. The statement uses one index per step, because
// early statistics of growing tables would otherwise make Postgres read all agents for every batch.
func (n *visibleChanges) addProofChanges(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, `
		with k as materialized (
			select id, was, is_now, exists (select from `+proven("u.id")+` offset $4) as crowd
			from unnest($1::bigint[], $2::bytea[], $3::bytea[]) as u(id, was, is_now)),
		named as materialized (
			select k.id, a.chain_id, a.token_id, a.uri_id
			from k
			cross join lateral (select chain_id, registry, token_id from links where sha256 in (k.was, k.is_now) offset 0) l
			join chains c on c.chain_id = l.chain_id and c.identity = l.registry
			cross join lateral (select chain_id, token_id, uri_id from agents
				where chain_id = l.chain_id and token_id = l.token_id offset 0) a
			where k.crowd),
		told as (
			select p.chain_id, p.token_id, p.domain from k cross join lateral (select * from `+proven("k.id")+`) p where not k.crowd
			union
			select n.chain_id, n.token_id, w.domain
			from named n
			cross join lateral (select sha256 from uris where id = n.uri_id offset 0) f
			cross join lateral (select domain, uri_id from domains where sha256 = f.sha256 offset 0) w
			where w.uri_id = n.id),
		changed as (
			insert into changes (chain_id, kind, block, log_index, token_id, data)
			select a.chain_id, 'proof.updated', 0, 0, a.token_id, jsonb_build_object('domain', a.domain)
			from told a where `+DeniedAgent("a")+` is null
			order by a.chain_id, a.token_id, a.domain
			returning chain_id, token_id)
		`+trustmark.InsertAgents+`select distinct chain_id, token_id from changed`, n.proofs, n.was, n.is, maxDirectChanges)
	return err
}

// proven returns the SQL of the agents whose file names a domain that a URI proves.
func proven(uri string) string {
	return `(select sha256, domain from domains where uri_id = ` + uri + ` offset 0) w
		cross join lateral (select id from uris where sha256 = w.sha256 offset 0) f
		cross join lateral (select chain_id, token_id from agents where uri_id = f.id offset 0) a`
}

// AddSharedChanges writes changes of documents that many agents share, for up to limit more
// agents, and reports whether there are more. A document has one such round per hour.
func AddSharedChanges(ctx context.Context, db *store.DB, limit int) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, store.DocumentTimeout)
	defer cancel()
	err = db.InTx(ctx, pgx.TxOptions{}, "add shared changes", func(tx pgx.Tx) error {
		var uri int64
		err := tx.QueryRow(ctx, `
			select coalesce((select part from cursors where job = 'shared document' and due <= now() order by due limit 1),
				0)`).Scan(&uri)
		if err != nil {
			return err
		}
		if more = uri != 0; !more {
			_, err = tx.Exec(ctx,
				"delete from cursors where job = 'shared document' and due is null and begun < now() - $1::interval",
				sharedChangesPause)
			return err
		}
		return addSomeChanges(ctx, tx, uri, limit)
	})
	return more, err
}

// maxWaits is how often a round waits for transactions that store agents. The pause begins with a second and doubles,
// so that a round waits for about four minutes while new agents of one file arrive without a break.
const maxWaits = 8

// waitForAgents postpones a round that has not begun while a transaction has not ended that stores an agent which shows
// the URI, and reports whether it did.
func waitForAgents(ctx context.Context, tx pgx.Tx, uri int64) (waits bool, err error) {
	busy, err := lockUnshown(ctx, tx, []int64{uri})
	if err != nil || len(busy) == 0 {
		return false, err
	}
	tag, err := tx.Exec(ctx, `
		update cursors set due = now() + interval '1 second' * power(2, coalesce((state->>'waits')::int, 0)),
			state = state || jsonb_build_object('waits', coalesce((state->>'waits')::int, 0) + 1)
		where job = 'shared document' and chain_id = 0 and part = $1 and not state ? 'chain'
			and coalesce((state->>'waits')::int, 0) < $2`, uri, maxWaits)
	return tag.RowsAffected() > 0, err
}

// addSomeChanges continues the round of one URI. It locks the URI first, as SaveDocuments does. In
// the cursor's state, chain and token are the last agent whose change was written, absent between
// rounds; again says that the document changed during the round.
func addSomeChanges(ctx context.Context, tx pgx.Tx, uri int64, limit int) error {
	if waits, err := waitForAgents(ctx, tx, uri); err != nil || waits {
		return err
	}
	now, err := readShown(ctx, tx, []int64{uri})
	if err != nil {
		return err
	}
	data, err := json.Marshal(now[uri])
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `
		with place as materialized (
			select coalesce((state->>'chain')::bigint, -1) as chain_id, coalesce((state->>'token')::numeric, -1) as token_id
			from cursors where job = 'shared document' and chain_id = 0 and part = $1 and due <= now() for update),
		portion as materialized (
			select a.chain_id, a.token_id from place p cross join lateral (
				select chain_id, token_id from agents
				where uri_id = $1 and (chain_id, token_id) > (p.chain_id, p.token_id)
				order by chain_id, token_id limit $2) a),
		told as (
			insert into changes (chain_id, kind, block, log_index, token_id, data)
			select a.chain_id, 'document.updated', 0, 0, a.token_id, $3::jsonb from portion a
			where `+DeniedAgent("a")+` is null order by a.chain_id, a.token_id
			returning chain_id, token_id),
		marked as (`+trustmark.InsertAgents+`select chain_id, token_id from told),
		last as (select chain_id, token_id, (select count(*) from portion) = $2 as full_step from portion order by 1 desc,
			2 desc limit 1)
		update cursors n set
			begun = case when n.state ? 'chain' then n.begun else now() end,
			state = case when l.full_step then n.state || jsonb_build_object('chain', l.chain_id, 'token', l.token_id) else '{}' end,
			due = case when l.full_step then now() when (n.state->>'again')::boolean then coalesce(n.begun, now()) + $4::interval end
		from place p left join last l on true
		where n.job = 'shared document' and n.chain_id = 0 and n.part = $1`, uri, limit, string(column.EscapeNUL(data)), sharedChangesPause)
	return err
}
