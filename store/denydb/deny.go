package denydb

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/column"
	"repute/store/docdb"
)

// denialOf returns a denial in the form it is stored. repute.ErrInvalid when no such thing can be
// denied.
func denialOf(db *store.DB, d repute.Denial) (repute.Denial, error) {
	value := strings.TrimSpace(d.Value)
	switch d.Kind {
	case repute.DenySHA256:
		sum, err := hex.DecodeString(strings.TrimPrefix(strings.ToLower(value), "0x"))
		if err != nil || len(sum) != 32 {
			return d, repute.Invalid("sha256", fmt.Sprintf("%.80q is no sha256", value), "64 hexadecimal digits")
		}
		d.Value = hex.EncodeToString(sum)
	case repute.DenyCID:
		hash := docdb.MultihashOf(value)
		if hash == nil {
			return d, repute.Invalid("cid", fmt.Sprintf("%.80q is no CID", value), "e.g. bafkrei…")
		}
		d.Value = hex.EncodeToString(hash)
	case repute.DenyHost:
		if value == "" || len(value) > column.LongestHost || strings.ContainsFunc(value, notOfHost) {
			return d, repute.Invalid("host", fmt.Sprintf("%.80q is no host", value),
				"a name without scheme, port and path, e.g. example.com")
		}
		d.Value = hostOf(db, value)
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

// notOfHost reports whether a host name cannot contain r.
func notOfHost(r rune) bool {
	return strings.ContainsRune(":/@?#", r) || unicode.IsSpace(r) || unicode.IsControl(r)
}

// Deny adds an entry to the deny-list, or changes its reason. What it covers is not fetched, shown
// or served from now on. With drop its bytes are deleted too, except where something that is not
// denied returned them as well.
func Deny(ctx context.Context, db *store.DB, d repute.Denial, drop bool) error {
	d, err := denialOf(db, d)
	if err != nil {
		return err
	}
	if d.Reason = column.CleanText(strings.TrimSpace(d.Reason)); d.Reason == "" || len(d.Reason) > 500 {
		return repute.Invalid("reason", "is empty or longer than 500 bytes", "a sentence that callers may read")
	}
	return db.InTx(ctx, pgx.TxOptions{}, "deny", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `
			insert into denied (kind, value, reason) values ($1, $2, $3)
			on conflict (kind, value) do update set reason = excluded.reason`, d.Kind, d.Value, d.Reason)
		if err == nil && drop {
			err = dropDenied(ctx, tx, d)
		}
		if err != nil {
			return err
		}
		return markScoresStale(ctx, tx, d)
	})
}

// hostOf returns a host's name in the one form that Options.Classify uses.
func hostOf(db *store.DB, name string) string {
	if _, host := db.Options().Classify("https://" + name + "/"); host != "" {
		return host
	}
	return strings.TrimRight(strings.ToLower(name), ".")
}

// dropDenied deletes the bytes that d withholds.
func dropDenied(ctx context.Context, tx pgx.Tx, d repute.Denial) error {
	rows, _ := tx.Query(ctx, `
		with `+concerned+`
		update documents d set body = null from (
			select sha256 from concerned union
			select f.sha256 from gave g join fetches f on f.uri_id = g.id where f.sha256 is not null) c
		where d.sha256 = c.sha256 and d.body is not null and `+docdb.DeniedServed("d.sha256")+` is not null
		returning d.sha256`, concernedArgs(d)...)
	sums, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	if err != nil {
		return err
	}
	_, err = docdb.DropBlocks(ctx, tx, sums)
	return err
}

// concerned is the SQL of two relations: gave are the URIs that a denial covers, concerned the
// hashes of the bytes that it covers.
const concerned = `
	gave as materialized (
		select id, sha256 from uris where
			$1 = 'cid' and cid = decode($2, 'hex') or $1 = 'host' and $3 in (split_part(host, ':', 1), split_part(served_by, ':', 1))
		union
		select u.id, u.sha256 from agent_states s join uris u on u.id = s.uri_id
		where $1 = 'agent' and s.chain_id = $4 and s.token_id = $5),
	concerned as materialized (
		select sha256 from gave where sha256 is not null
		union select decode($2, 'hex') where $1 = 'sha256'
		union select substr(decode($2, 'hex'), 3) where $1 = 'cid' and $2 like '1220%'
		union select sha256 from documents where $1 = 'cid' and roots @> array[decode($2, 'hex')])`

// concernedArgs returns the parameters of concerned.
func concernedArgs(d repute.Denial) []any {
	var hash string
	var chain int64
	var token column.TokenNum
	switch d.Kind {
	case repute.DenySHA256, repute.DenyCID:
		hash = d.Value
	case repute.DenyAgent:
		if id, err := repute.ParseAgentRef(d.Value); err == nil { // as it was stored
			chain, token = int64(id.ChainID), column.TokenNum(id.TokenID)
		}
	case repute.DenyHost:
	}
	return []any{string(d.Kind), hash, d.Value, chain, token}
}

// Undeny removes an entry from the deny-list. What it covered is due again where it can be fetched.
// repute.ErrNotFound when it is not denied.
func Undeny(ctx context.Context, db *store.DB, kind repute.DenyKind, value string) error {
	d, err := denialOf(db, repute.Denial{Kind: kind, Value: value})
	if err != nil {
		return err
	}
	return db.InTx(ctx, pgx.TxOptions{}, "allow", func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, "delete from denied where kind = $1 and value = $2", d.Kind, d.Value)
		if err == nil && tag.RowsAffected() == 0 {
			err = &repute.MissingError{What: fmt.Sprintf("%s %s", d.Kind, d.Value), Why: "is not denied"}
		}
		if err != nil {
			return err
		}
		if err := requeueDropped(ctx, tx, d); err != nil {
			return err
		}
		if _, err = docdb.Requeue(ctx, tx, docdb.RetryFilter{Reason: docdb.ReasonDenied}); err != nil {
			return err
		}
		return markScoresStale(ctx, tx, d)
	})
}

// requeueDropped makes URIs due whose bytes were not stored because of d.
func requeueDropped(ctx context.Context, tx pgx.Tx, d repute.Denial) error {
	_, err := tx.Exec(ctx, `
		with `+concerned+`,
		due as (
			update uris u set next_due = now(), attempts = 0 from concerned c join documents d on d.sha256 = c.sha256
			where u.sha256 = c.sha256 and d.body is null and u.kind <> 'empty' returning u.host, u.rank)`+docdb.ScheduleHosts("due"), concernedArgs(d)...)
	return err
}

// Denied returns the first of subjects that is on the deny-list, nil when none is. It compares kind
// and value; a CID may be in any form.
func Denied(ctx context.Context, db *store.DB, subjects ...repute.Denial) (*repute.Denial, error) {
	var kinds, values []string
	for _, s := range subjects {
		d, err := denialOf(db, s)
		if err != nil {
			return nil, err
		}
		kinds, values = append(kinds, string(d.Kind)), append(values, d.Value)
		if sum := sha256Of(d); sum != "" {
			kinds, values = append(kinds, string(repute.DenySHA256)), append(values, sum)
		}
	}
	var d repute.Denial
	err := db.Readers().QueryRow(ctx, `
		select d.kind, d.value, d.reason, d.created from unnest($1::text[], $2::text[]) with ordinality as u(k, v, n)
		join denied d on d.kind = u.k and d.value = u.v order by u.n limit 1`, kinds, values).Scan(&d.Kind, &d.Value, &d.Reason, &d.Created)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	} else if err != nil {
		return nil, store.Failed("look into the deny-list", err)
	}
	return &d, nil
}

// sha256Of returns the sha256 within a CID's multihash, "" for other hashes. Raw blocks are stored
// as documents under it.
func sha256Of(d repute.Denial) string {
	const sha256Multihash = "1220"
	if rest, ok := strings.CutPrefix(d.Value, sha256Multihash); ok && d.Kind == repute.DenyCID && len(rest) == 64 {
		return rest
	}
	return ""
}

// maxDenials is how many entries ListDenied returns.
const maxDenials = 10_000

// ListDenied returns the deny-list, the newest entry first, at most maxDenials.
func ListDenied(ctx context.Context, db *store.DB) ([]repute.Denial, error) {
	rows, _ := db.Readers().Query(ctx,
		"select kind, value, reason, created from denied order by created desc, kind, value limit $1", maxDenials)
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[repute.Denial])
	return list, store.Failed("list denied", err)
}

// Reach counts what a denial covers.
type Reach struct {
	Agents    int64 // that show a document of it, or are it
	Documents int64 // different bytes that are known
}

// DenialReach counts what a denial covers, whether it is on the deny-list or not. It may read every
// URI, so it is for operators. repute.ErrInvalid when no such thing can be denied.
func DenialReach(ctx context.Context, db *store.DB, d repute.Denial) (r Reach, err error) {
	if d, err = denialOf(db, d); err != nil {
		return r, err
	}
	err = db.Pool().QueryRow(ctx, `
		with `+concerned+`,
		whose as (
			select id from gave union
			select u.id from concerned c join uris u on u.sha256 = c.sha256 where $1 <> 'agent')
		select (select count(*) from concerned c join documents d on d.sha256 = c.sha256),
			case when $1 = 'agent' then (select count(*) from agents where chain_id = $4 and token_id = $5)
				else (select count(*) from agents a join whose w on w.id = a.uri_id) end`, concernedArgs(d)...).Scan(&r.Documents, &r.Agents)
	return r, store.Failed("count what is denied", err)
}
