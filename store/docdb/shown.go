package docdb

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store/column"
	"repute/store/docjson"
)

// DocumentRow receives the state of a URI's document.
type DocumentRow struct {
	source, reason, detail string
	sha256                 []byte
	size                   *int64
	fetched, due           *time.Time
	dead                   bool
	denied                 *string // why, nil when not
	registration, problems []byte  // nil when not parsed
	problemCount           *int64
	errors                 *int
}

// Into returns where to scan the columns of a document.
func (d *DocumentRow) Into() []any {
	return []any{&d.source, &d.sha256, &d.size, &d.fetched, &d.reason, &d.detail, &d.due, &d.dead, &d.denied,
		&d.registration, &d.problems, &d.problemCount, &d.errors}
}

// status returns the status that the API shows. Bytes that were read once stay while later fetches
// fail; the reason then names the failure.
func (d *DocumentRow) status(empty bool) repute.DocumentStatus {
	switch {
	case empty:
		return repute.DocumentNone
	case d.denied != nil:
		return repute.DocumentDenied
	case d.errors != nil && *d.errors > 0:
		return repute.DocumentInvalid
	case d.errors != nil:
		return repute.DocumentOK
	case d.dead:
		return repute.DocumentDead
	case d.reason != "":
		return repute.DocumentFailed
	}
	return repute.DocumentPending
}

// Document returns the document as the API shows it; empty says that the URI is empty.
func (d *DocumentRow) Document(empty bool) (repute.Document, error) {
	if d.denied != nil && !empty {
		return repute.Document{Status: repute.DocumentDenied, Reason: ReasonDenied, Detail: *d.denied}, nil
	}
	out := repute.Document{
		Status: d.status(empty), Source: d.source, FetchedAt: column.TimeOf(d.fetched),
		Reason: d.reason, Detail: d.detail, NextTry: column.TimeOf(d.due),
	}
	copy(out.SHA256[:], d.sha256)
	if d.size != nil {
		out.Size = *d.size
	}
	if d.errors == nil {
		return out, nil
	}
	out.ProblemCount = *d.problemCount
	var err error
	if out.Registration, err = docjson.DecodeRegistration(d.registration); err != nil {
		return out, fmt.Errorf("stored registration: %w", err)
	}
	if err := json.Unmarshal(d.problems, &out.Problems); err != nil {
		return out, fmt.Errorf("stored problems: %w", err)
	}
	return out, nil
}

// shown is what a reader sees of a document. Its JSON is the data of the change.
type shown struct {
	Status   repute.DocumentStatus `json:"status"`
	Source   string                `json:"source,omitempty"`
	SHA256   string                `json:"sha256,omitempty"`
	Reason   string                `json:"reason,omitempty"`
	Name     string                `json:"name,omitempty"`
	Problems int                   `json:"problems"`

	// parse is the whole stored parse.
	parse []byte
	// sum is the hash of the bytes read last, also when they are not shown.
	sum []byte
	// served says that these bytes count as what the URI's host serves: see StillServed.
	served bool
	// proofState is served with everything else that decides what the bytes prove.
	proofState string
}

// equal compares what readers see. The reason of a failed fetch does not count while bytes are
// shown: a host that fails now and then is no visible change for every agent that shares a file.
func (s shown) equal(o shown) bool {
	return s.Status == o.Status && s.Source == o.Source && s.SHA256 == o.SHA256 &&
		(s.Reason == o.Reason || s.SHA256 != "") &&
		bytes.Equal(s.parse, o.parse)
}

// readShown locks URIs in the order of their ids and returns what they show. The lock does not
// block foreign keys to them.
func readShown(ctx context.Context, tx pgx.Tx, ids []int64) (map[int64]shown, error) {
	rows, _ := tx.Query(ctx, `
		select u.id, u.uri = '', u.source, u.sha256, null::bigint, u.fetched_at, u.reason, u.detail, u.next_due, u.dead, `+DeniedFile("u")+`,
			p.content, p.problems, p.problem_count, p.errors, coalesce(`+stillServedAt("u", "u.tried_at")+`, false), `+proofState("u")+`
		from unnest($1::bigint[]) as k(id)
		join uris u on u.id = k.id
		left join lateral (
			select content, problems, jsonb_array_length(problems) as problem_count, errors from parses
			where parses.sha256 = u.sha256 and kind = 'registration' order by parser_version desc limit 1) p on true
		order by u.id for no key update of u`, ids)
	out := make(map[int64]shown, len(ids))
	var id int64
	var empty bool
	var d DocumentRow
	var served bool
	var state string
	_, err := pgx.ForEachRow(rows, slices.Concat([]any{&id, &empty}, d.Into(), []any{&served, &state}), func() error {
		s, err := d.shown(empty)
		s.sum, s.served, s.proofState = d.sha256, served, state
		out[id] = s
		return err
	})
	return out, err
}

// shown returns what a reader sees of the document.
func (d *DocumentRow) shown(empty bool) (shown, error) {
	doc, err := d.Document(empty)
	if err != nil {
		return shown{}, err
	}
	s := shown{Status: doc.Status, Source: doc.Source, Reason: doc.Reason, Problems: len(doc.Problems)}
	if d.denied != nil {
		return s, nil // the content of a denied document is not shown
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
