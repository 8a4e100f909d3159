package store

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"repute"
)

// shown is what a reader sees of a document; its JSON is the change.
type shown struct {
	Status   repute.DocumentStatus `json:"status"`
	Source   string                `json:"source,omitempty"`
	SHA256   string                `json:"sha256,omitempty"`
	Reason   string                `json:"reason,omitempty"`
	Name     string                `json:"name,omitempty"`
	Problems int                   `json:"problems"`

	parse []byte // all of it, as stored
}

// equal leaves out why the last fetch failed where bytes are shown all the same: a host
// that comes and goes is no news to every agent that shares a file.
func (s shown) equal(o shown) bool {
	return s.Status == o.Status && s.Source == o.Source && s.SHA256 == o.SHA256 && (s.Reason == o.Reason || s.SHA256 != "") &&
		bytes.Equal(s.parse, o.parse)
}

// readShown locks URIs, in their order, and gives what they show. The lock lets
// others refer to them.
func readShown(ctx context.Context, tx pgx.Tx, ids []int64) (map[int64]shown, error) {
	rows, err := tx.Query(ctx, `
		select u.id, u.uri = '', u.source, u.sha256, null::bigint, u.fetched_at, u.reason, u.detail, u.next_due, u.dead, `+deniedFile("u")+`,
			p.registration, p.problems, p.problem_count, p.errors
		from unnest($1::bigint[]) as k(id)
		join uris u on u.id = k.id
		left join lateral (
			select registration, problems, jsonb_array_length(problems) as problem_count, errors from parses
			where parses.sha256 = u.sha256 order by parser_version desc limit 1) p on true
		order by u.id for no key update of u`, ids)
	if err != nil {
		return nil, err
	}
	out := make(map[int64]shown, len(ids))
	var id int64
	var empty bool
	var d documentRow
	_, err = pgx.ForEachRow(rows, append([]any{&id, &empty}, d.into()...), func() (err error) {
		out[id], err = d.shown(empty)
		return err
	})
	return out, err
}

func (d *documentRow) shown(empty bool) (shown, error) {
	doc, err := d.document(empty)
	if err != nil {
		return shown{}, err
	}
	s := shown{Status: doc.Status, Source: doc.Source, Reason: doc.Reason, Problems: len(doc.Problems)}
	if d.denied != nil {
		return s, nil // what it was is nobody's business now
	}
	s.parse = slices.Concat(d.registration, []byte{0}, d.problems)
	if d.sha256 != nil {
		s.SHA256 = fmt.Sprintf("0x%x", d.sha256)
	}
	if doc.Registration != nil {
		s.Name = doc.Registration.Name
	}
	return s, nil
}

// announceAll writes the changes of what URIs show.
func announceAll(ctx context.Context, tx pgx.Tx, ids []int64, before map[int64]shown) error {
	after, err := readShown(ctx, tx, ids)
	if err != nil {
		return err
	}
	var changed []int64
	var data []string
	for _, id := range ids {
		if before[id].equal(after[id]) {
			continue
		}
		b, err := json.Marshal(after[id])
		if err != nil {
			return err
		}
		changed, data = append(changed, id), append(data, string(escapeNUL(b)))
	}
	if changed == nil {
		return nil
	}
	return announce(ctx, tx, changed, data)
}

// announce writes one change per agent that shows a document, and per agent whose
// file names a domain that it proves. They belong to no block: a rewind does not undo
// what was read from a URI. Of agents that are denied nothing is told.
func announce(ctx context.Context, tx pgx.Tx, uris []int64, data []string) error {
	_, err := tx.Exec(ctx, `
		insert into changes (chain_id, kind, block, log_index, token_id, data)
		select a.chain_id, 'document.updated', 0, 0, a.token_id, k.data::jsonb
		from unnest($1::bigint[], $2::text[]) as k(id, data) join agents a on a.uri_id = k.id
		where `+deniedAgent("a")+` is null
		order by a.chain_id, a.token_id`, uris, data)
	if err != nil {
		return err
	}
	// Step by step, through an index each: statistics of tables that grow from nothing
	// would have all agents read for every batch.
	_, err = tx.Exec(ctx, `
		with proven as materialized (select sha256, domain from domains where uri_id = any($1))
		insert into changes (chain_id, kind, block, log_index, token_id, data)
		select a.chain_id, 'proof.updated', 0, 0, a.token_id, jsonb_build_object('domain', w.domain)
		from proven w
		cross join lateral (select id from uris where sha256 = w.sha256 offset 0) f
		cross join lateral (select chain_id, token_id from agents where uri_id = f.id offset 0) a
		where `+deniedAgent("a")+` is null
		order by a.chain_id, a.token_id, w.domain`, uris)
	return err
}
