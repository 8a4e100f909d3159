package store

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/jackc/pgx/v5"

	"repute"
)

// ReasonDenied is the reason of a document that the operator's deny-list forbids.
const ReasonDenied = "denied"

// deniedDocument selects why the document of URI u must not be shown for agent a,
// null when it may.
func deniedDocument(u, a string) string {
	return `(select max(x.reason) from denied x where (x.kind, x.value) in (
		('sha256', encode(` + u + `.sha256, 'hex')), ('cid', encode(` + u + `.cid, 'hex')),
		('host', split_part(` + u + `.host, ':', 1)), ('agent', ` + a + `.chain_id || ':' || ` + a + `.token_id)))`
}

// denialOf gives a denial its stored form. repute.ErrInvalid: no such thing can be
// denied.
func denialOf(d repute.Denial) (repute.Denial, error) {
	value := strings.TrimSpace(d.Value)
	switch d.Kind {
	case repute.DenySHA256:
		sum, err := hex.DecodeString(strings.TrimPrefix(strings.ToLower(value), "0x"))
		if err != nil || len(sum) != 32 {
			return d, repute.Invalid("sha256", fmt.Sprintf("%.80q is no sha256", value), "64 hexadecimal digits")
		}
		d.Value = hex.EncodeToString(sum)
	case repute.DenyCID:
		hash := multihashOf(value)
		if hash == nil {
			return d, repute.Invalid("cid", fmt.Sprintf("%.80q is no CID", value), "e.g. bafkrei…")
		}
		d.Value = hex.EncodeToString(hash)
	case repute.DenyHost:
		if value == "" || len(value) > longestHost || strings.ContainsFunc(value, notOfHost) {
			return d, repute.Invalid("host", fmt.Sprintf("%.80q is no host", value), "a name without scheme, port and path, e.g. example.com")
		}
		d.Value = strings.ToLower(value)
	case repute.DenyAgent:
		id, err := repute.ParseAgentRef(value)
		if err != nil {
			return d, err
		}
		if id.ChainID == 0 {
			return d, repute.Invalid("agent", "names no chain", "{chainId}:{tokenId}")
		}
		d.Value = fmt.Sprintf("%d:%s", id.ChainID, id.TokenID.Dec())
	default:
		return d, repute.Invalid("kind", fmt.Sprintf("%.80q cannot be denied", d.Kind), "sha256, cid, host or agent")
	}
	return d, nil
}

func notOfHost(r rune) bool {
	return strings.ContainsRune(":/@?#", r) || unicode.IsSpace(r) || unicode.IsControl(r)
}

// Deny adds to the deny-list, or changes the reason. What it is about is not
// fetched, shown or served from now on. With drop the bytes are dropped too, where
// they are denied by their sha256 or CID.
func (db *DB) Deny(ctx context.Context, d repute.Denial, drop bool) error {
	d, err := denialOf(d)
	if err != nil {
		return err
	}
	if d.Reason = cleanText(strings.TrimSpace(d.Reason)); d.Reason == "" || len(d.Reason) > 500 {
		return repute.Invalid("reason", "is empty or longer than 500 bytes", "a sentence that callers may read")
	}
	return db.inTx(ctx, pgx.TxOptions{}, "deny", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `
			insert into denied (kind, value, reason) values ($1, $2, $3)
			on conflict (kind, value) do update set reason = excluded.reason`, d.Kind, d.Value, d.Reason)
		if err != nil || !drop {
			return err
		}
		_, err = tx.Exec(ctx, `
			update documents set body = null where body is not null and (
				$1 = 'sha256' and sha256 = decode($2, 'hex') or
				$1 = 'cid' and sha256 in (select sha256 from uris where cid = decode($2, 'hex')))`, d.Kind, hexOrNone(d))
		if err != nil {
			return err
		}
		return dropBlocks(ctx, tx)
	})
}

// hexOrNone is a value that decodes.
func hexOrNone(d repute.Denial) string {
	if d.Kind == repute.DenySHA256 || d.Kind == repute.DenyCID {
		return d.Value
	}
	return ""
}

// Undeny takes from the deny-list. What it was about is due again where it can be
// fetched. repute.ErrNotFound: it is not denied.
func (db *DB) Undeny(ctx context.Context, kind repute.DenyKind, value string) error {
	d, err := denialOf(repute.Denial{Kind: kind, Value: value})
	if err != nil {
		return err
	}
	return db.inTx(ctx, pgx.TxOptions{}, "allow", func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, "delete from denied where kind = $1 and value = $2", d.Kind, d.Value)
		if err == nil && tag.RowsAffected() == 0 {
			err = repute.Missing("a denial of %s %s", d.Kind, d.Value)
		}
		if err != nil {
			return err
		}
		_, err = requeue(ctx, tx, RetryFilter{Reason: ReasonDenied})
		return err
	})
}

// Denied looks for the first of subjects on the deny-list, nil when none is.
// Kind and Value of each count; a CID may be in any form.
func (db *DB) Denied(ctx context.Context, subjects ...repute.Denial) (*repute.Denial, error) {
	var kinds, values []string
	for _, s := range subjects {
		d, err := denialOf(s)
		if err != nil {
			return nil, err
		}
		kinds, values = append(kinds, string(d.Kind)), append(values, d.Value)
		if sum := sha256Of(d); sum != "" {
			kinds, values = append(kinds, string(repute.DenySHA256)), append(values, sum)
		}
	}
	var d repute.Denial
	err := db.readers.QueryRow(ctx, `
		select d.kind, d.value, d.reason, d.created from unnest($1::text[], $2::text[]) with ordinality as u(k, v, n)
		join denied d on d.kind = u.k and d.value = u.v order by u.n limit 1`, kinds, values).Scan(&d.Kind, &d.Value, &d.Reason, &d.Created)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	} else if err != nil {
		return nil, failed("look into the deny-list", err)
	}
	return &d, nil
}

// sha256Of is the sha256 that a CID's multihash holds, "" for others: raw blocks
// are stored documents.
func sha256Of(d repute.Denial) string {
	const sha256Multihash = "1220"
	if rest, ok := strings.CutPrefix(d.Value, sha256Multihash); ok && d.Kind == repute.DenyCID && len(rest) == 64 {
		return rest
	}
	return ""
}

// maxDenials is how many entries of the deny-list are listed.
const maxDenials = 10_000

// ListDenied lists the deny-list, the newest first, no more than 10,000.
func (db *DB) ListDenied(ctx context.Context) ([]repute.Denial, error) {
	rows, err := db.readers.Query(ctx, "select kind, value, reason, created from denied order by created desc, kind, value limit $1", maxDenials)
	if err != nil {
		return nil, failed("list denied", err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[repute.Denial])
	return list, failed("list denied", err)
}
