package docdb

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ipfs/go-cid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"repute"
	"repute/store"
	"repute/store/column"
	"repute/store/docjson"
)

// FetchResult is the outcome of fetching a claimed URI.
type FetchResult struct {
	URIID int64
	// Claimed is URI.Claimed of the claim, so that a refresh requested since then is not lost. It
	// is zero without a claim.
	Claimed time.Time
	// Denial is the entry of the deny-list that forbids the document, where Reason is ReasonDenied
	// and the URI itself is not covered.
	Denial repute.Denial
	// Body holds the bytes; nil when the fetch failed (Reason) or the bytes are those of the fetch
	// before (no Reason).
	Body []byte
	// MediaType and Source describe Body; Source is data, inline, https or ipfs.
	MediaType, Source string
	// CID is the one of an ipfs document's URI.
	CID string
	// Root is the multihash of an ipfs document's file, at the end of the path that begins with
	// CID.
	Root []byte
	// ServedBy is the host that answered over HTTP(S) after redirects; empty for other sources.
	ServedBy string
	// Blocks prove the Body of an ipfs document.
	Blocks []Block
	// ETag and LastModified are the HTTP validators of Body.
	ETag, LastModified string
	FetchedAt          time.Time
	// What Body is: see Parsed.
	ParserVersion int
	Registration  *repute.Registration
	Problems      []repute.Problem
	FileOnly      bool
	Files         []FileParse
	Domains       []Domain
	// Reason is the code of a failure, empty for success; Detail is its text for people.
	Reason, Detail string
	// Dead says that the failure is permanent, or one too many.
	Dead bool
	// NextDue is when to fetch again, zero for never.
	NextDue time.Time

	sum, keccak []byte // of Body
	denied      bool   // the bytes are: they are not kept, nor read
}

// Read sets the fields that a parse of Body fills.
func (r *FetchResult) Read(p Parsed) {
	r.ParserVersion, r.Registration, r.Problems = p.ParserVersion, p.Registration, p.Problems
	r.FileOnly, r.Files, r.Domains = p.FileOnly, p.Files, p.Domains
}

// parsed returns what Read set.
func (r FetchResult) parsed() Parsed {
	return Parsed{ParserVersion: r.ParserVersion, Registration: r.Registration, Problems: r.Problems,
		FileOnly: r.FileOnly, Files: r.Files, Domains: r.Domains}
}

// Parsed is the result of parsing a document's bytes by package manifest.
type Parsed struct {
	ParserVersion int
	// Registration is the result of parsing the bytes as a registration file, with its Problems;
	// nil when they are no document, or no registration file.
	Registration *repute.Registration
	Problems     []repute.Problem
	// FileOnly says that the bytes are not used as a registration; Registration and Problems are
	// empty.
	FileOnly bool
	// Files are the results of parsing them as files of other kinds.
	Files []FileParse
	// Domains are the ones of the registration's endpoints.
	Domains []Domain
}

// FileParse is the result of parsing bytes as a file of one kind.
type FileParse struct {
	Kind     repute.DocumentKind
	Feedback *repute.FeedbackFile // of kind repute.FeedbackDocument
	Card     *repute.AgentCard    // of kind repute.CardDocument
	Problems []repute.Problem
}

// stored returns the JSON of the file that is kept; null when the bytes are no such file.
func (f FileParse) stored() ([]byte, error) {
	if f.Feedback != nil {
		return docjson.EncodeFeedback(f.Feedback)
	}
	return docjson.EncodeCard(f.Card)
}

// Domain is a domain that the endpoints of a registration use.
type Domain struct {
	Name string // lower case
	// Proof is the URI of the file that proves the domain.
	Proof string
}

// SaveDocuments stores the outcomes of fetches of different URIs in one transaction, all or none.
// After a failure the bytes of the last success stay. Agents whose current URI it is get a change
// when what they show changed. repute.ErrNotFound when there is no such URI.
func SaveDocuments(ctx context.Context, db *store.DB, results ...FetchResult) error {
	ctx, cancel := context.WithTimeout(ctx, store.DocumentTimeout)
	defer cancel()
	batch, err := newSaving(results)
	if err != nil {
		return err
	}
	if err := markDenied(ctx, db, batch.results); err != nil {
		return store.Failed("look into the deny-list", err)
	}
	// In a transaction of its own before the batch, so that no batch waits for another one's
	// URIs.
	proofs, err := internProofs(ctx, db, batch.results)
	if err != nil {
		return store.Failed("plan proofs", err)
	}
	save := func(tx pgx.Tx) error { return batch.save(ctx, tx, proofs) }
	err = db.InTx(ctx, pgx.TxOptions{}, "save documents", save)
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "40P01" { // a deadlock of two batches: the other one continues
		err = db.InTx(ctx, pgx.TxOptions{}, "save documents", save)
	}
	return err
}

// saving is a batch of outcomes, ordered by URI, of which each URI has one.
type saving struct {
	results []FetchResult
	ids     []int64
}

// newSaving orders outcomes and refuses two of one URI.
func newSaving(results []FetchResult) (saving, error) {
	s := saving{results: slices.Clone(results)}
	slices.SortFunc(s.results, func(a, b FetchResult) int { return cmp.Compare(a.URIID, b.URIID) })
	for i := range s.results {
		r := &s.results[i]
		if i > 0 && r.URIID == s.results[i-1].URIID {
			return s, fmt.Errorf("uri %d comes twice: %w", r.URIID, repute.ErrInvalid)
		}
		s.ids = append(s.ids, r.URIID)
		if r.Body != nil && r.Reason == "" {
			sum := sha256.Sum256(r.Body)
			r.sum, r.keccak = sum[:], crypto.Keccak256(r.Body)
		}
	}
	return s, nil
}

// save stores the batch. URIs are locked before documents, in order; proofs are the ids of the URIs that prove
// domains.
func (s saving) save(ctx context.Context, tx pgx.Tx, proofs map[string]int64) error {
	if err := s.holdDenials(ctx, tx); err != nil {
		return err
	}
	before, err := readShown(ctx, tx, s.ids)
	if err != nil {
		return err
	}
	for _, id := range s.ids {
		if _, known := before[id]; !known {
			return fmt.Errorf("uri %d: %w", id, repute.ErrNotFound)
		}
	}
	if s, err = s.withoutAllowed(ctx, tx); err != nil {
		return err
	}
	if err := s.saveBodies(ctx, tx); err != nil {
		return err
	}
	if err := saveParses(ctx, tx, s.parsed(), proofs); err != nil {
		return err
	}
	if err := s.saveOutcomes(ctx, tx); err != nil {
		return err
	}
	if err := s.moveToRetryHost(ctx, tx); err != nil {
		return err
	}
	if err := s.saveFetches(ctx, tx); err != nil {
		return err
	}
	if err := s.saveClaims(ctx, tx); err != nil {
		return err
	}
	return addVisibleChanges(ctx, tx, s.ids, before)
}

// saveBodies stores bytes once each. Denied bytes are not stored, and bytes that were dropped are
// stored again.
func (s saving) saveBodies(ctx context.Context, tx pgx.Tx) error {
	var sums, bodies, keccaks [][]byte
	var types []string
	var seen []time.Time
	var versions []int
	var denied []bool
	for _, r := range s.results {
		if r.sum != nil {
			sums, bodies, keccaks = append(sums, r.sum), append(bodies, r.Body), append(keccaks, r.keccak)
			types, seen, versions = append(types, column.CleanText(r.MediaType)), append(seen, r.FetchedAt),
				append(versions, r.ParserVersion)
			denied = append(denied, r.denied)
		}
	}
	if sums == nil {
		return nil
	}
	_, err := tx.Exec(ctx, `
		insert into documents (sha256, body, media_type, first_seen, keccak, parsed, size)
		select distinct on (sum) sum, case when not denied then body end, type, seen, keccak, version, octet_length(body)
		from unnest($1::bytea[], $2::bytea[], $3::text[], $4::timestamptz[], $5::bytea[], $6::int[], $7::bool[])
			as u(sum, body, type, seen, keccak, version, denied)
		order by sum
		on conflict (sha256) do update set body = excluded.body, keccak = excluded.keccak, size = excluded.size,
			parsed = greatest(documents.parsed, excluded.parsed)
		where documents.body is null or documents.keccak is null or documents.parsed < excluded.parsed`,
		sums, bodies, types, seen, keccaks, versions, denied)
	if err != nil {
		return err
	}
	if err := s.saveBlocks(ctx, tx); err != nil {
		return err
	}
	return s.saveRoots(ctx, tx)
}

// saveRoots stores the CIDs that name whole bodies, besides their sha256. The documents' rows are
// locked by saveBodies, in one order.
func (s saving) saveRoots(ctx context.Context, tx pgx.Tx) error {
	var sums, roots [][]byte
	for _, r := range s.results {
		if r.sum != nil && r.Root != nil && !bytes.Equal(r.Root, slices.Concat([]byte(sha256Prefix), r.sum)) {
			sums, roots = append(sums, r.sum), append(roots, r.Root)
		}
	}
	if sums == nil {
		return nil
	}
	_, err := tx.Exec(ctx, `
		update documents d set roots = array(select distinct unnest(d.roots || k.roots))
		from (select sum, array_agg(root) as roots from unnest($1::bytea[], $2::bytea[]) as u(sum, root) group by sum) k
		where d.sha256 = k.sum and not d.roots @> k.roots`, sums, roots)
	return err
}

// parsed returns the parses of the batch by the hash of their bytes, without denied ones.
func (s saving) parsed() (out []parsedBody) {
	for _, r := range s.results {
		if r.sum != nil && !r.denied {
			out = append(out, parsedBody{r.sum, r.parsed()})
		}
	}
	return out
}

// saveOutcomes updates the rows of the URIs.
func (s saving) saveOutcomes(ctx context.Context, tx pgx.Tx) error {
	var read, failed []FetchResult
	for _, r := range s.results {
		if r.Reason == "" {
			read = append(read, r)
		} else {
			failed = append(failed, r)
		}
	}
	b := &pgx.Batch{}
	queueRead(b, read)
	queueFailed(b, failed)
	return tx.SendBatch(ctx, b).Close()
}

// queueRead updates URIs whose fetch succeeded.
func queueRead(b *pgx.Batch, results []FetchResult) {
	if results == nil {
		return
	}
	c := newOutcomes(results)
	n := len(results)
	sums, cids := make([][]byte, n), make([][]byte, n)
	sources, etags, modified, servers := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	for i, r := range results {
		sums[i], cids[i], sources[i] = r.sum, MultihashOf(r.CID), r.Source
		etags[i], modified[i], servers[i] = column.CleanText(r.ETag), column.CleanText(r.LastModified),
			column.PlainText(r.ServedBy, column.LongestHost)
	}
	b.Queue(`
		update uris u set sha256 = coalesce(k.sum, u.sha256), source = case when k.source = '' then u.source else k.source
			end,
			fetched_at = k.at, next_due = `+requestedOr("k.due")+`, etag = k.etag, last_modified = k.modified, cid = coalesce(k.cid, u.cid), tried_at = k.at,
			attempts = 0, failures = 0, dead = false, gone = false, reason = '', detail = '', rank = greatest(u.rank, 1), served_by = nullif(k.server, '')
		from unnest($1::bigint[], $2::timestamptz[], $3::timestamptz[], $4::bytea[], $5::text[], $6::text[], $7::text[],
			$8::bytea[], $9::text[], $10::timestamptz[])
			as k(id, at, due, sum, source, etag, modified, cid, server, claimed)
		where u.id = k.id`, c.ids, c.at, c.due, sums, sources, etags, modified, cids, servers, c.claimed)
}

// queueFailed updates URIs whose fetch failed. What was read before stays. A file that its
// host removed stays marked as removed until the host serves one.
func queueFailed(b *pgx.Batch, results []FetchResult) {
	if results == nil {
		return
	}
	c := newOutcomes(results)
	n := len(results)
	reasons, details, dead := make([]string, n), make([]string, n), make([]bool, n)
	for i, r := range results {
		reasons[i], details[i], dead[i] = column.CleanText(r.Reason), column.CleanText(r.Detail), r.Dead
	}
	b.Queue(`
		update uris u set reason = k.reason, detail = k.detail, next_due = `+requestedOr("k.due")+`, tried_at = k.at, dead = k.dead, failures = u.failures + 1,
			gone = u.gone or k.reason = '`+reasonNotFound+`', rank = greatest(u.rank, 1)
		from unnest($1::bigint[], $2::timestamptz[], $3::timestamptz[], $4::text[], $5::text[], $6::bool[], $7::timestamptz[])
			as k(id, at, due, reason, detail, dead, claimed)
		where u.id = k.id`, c.ids, c.at, c.due, reasons, details, dead, c.claimed)
}

// outcomes holds the columns that successes and failures have in common.
type outcomes struct {
	ids []int64
	at  []time.Time
	due []*time.Time // nil: never again

	claimed []*time.Time
}

// newOutcomes returns these columns of fetch results.
func newOutcomes(results []FetchResult) (c outcomes) {
	for _, r := range results {
		c.ids, c.at, c.due = append(c.ids, r.URIID), append(c.at, r.FetchedAt), append(c.due,
			column.MaybeTime(r.NextDue))
		c.claimed = append(c.claimed, column.MaybeTime(r.Claimed))
	}
	return c
}

// saveFetches adds to the URIs' fetches when the outcome differs from the one before: a year of
// unchanged daily fetches is one row. It marks URIs that have too many for PruneVersions.
func (s saving) saveFetches(ctx context.Context, tx pgx.Tx) error {
	at, reasons := make([]time.Time, len(s.ids)), make([]string, len(s.ids))
	for i, r := range s.results {
		at[i], reasons[i] = r.FetchedAt, column.CleanText(r.Reason)
	}
	_, err := tx.Exec(ctx, `
		with new as (
			select u.id, n.at, n.reason, case when n.reason = '' then u.sha256 end as sha256,
				case when n.reason = '' then u.source else '' end as source
			from unnest($1::bigint[], $2::timestamptz[], $3::text[]) as n(id, at, reason) join uris u on u.id = n.id),
		added as (
			insert into fetches (uri_id, fetched_at, sha256, source, reason)
			select n.id, n.at, n.sha256, n.source, n.reason from new n
			left join lateral (
				select sha256, source, reason from fetches where uri_id = n.id order by fetched_at desc limit 1) l on true
			where l.source is null or (l.sha256, l.source, l.reason) is distinct from (n.sha256, n.source, n.reason)
			on conflict do nothing returning uri_id)
		update uris u set overgrown = true from added a
		where u.id = a.uri_id and not u.overgrown and exists (select from fetches f where f.uri_id = a.uri_id offset $4)`, s.ids, at, reasons, maxVersions)
	return err
}

// MultihashOf returns the multihash of a CID in any form; nil when the text is no CID.
func MultihashOf(text string) []byte {
	c, err := cid.Decode(text)
	if err != nil {
		return nil
	}
	return c.Hash()
}
