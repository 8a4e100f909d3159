package documents

import (
	"context"
	"errors"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"repute"
	"repute/indexer/node"
	"repute/resolver"
	"repute/store/docdb"
)

// reasonInternal is the reason of a document that caused a panic in this program.
const reasonInternal = "internal"

// Reasons returns all codes that an unreadable document may have.
func Reasons() []string {
	out := []string{docdb.ReasonDenied, reasonInternal}
	for _, r := range resolver.Reasons() {
		out = append(out, string(r))
	}
	slices.Sort(out)
	return out
}

// resolve fetches and parses one document, hands the result to the saver, and records how the host
// behaved. The error of saving arrives on the channel, which is nil if there is nothing to save.
func (t *hostClaim) resolve(ctx context.Context, u docdb.URI) (saved <-chan error, err error) {
	r, err := t.loop.outcome(ctx, u)
	t.note(err)
	if r == nil {
		return nil, t.loop.release(ctx, u)
	}
	return t.loop.saver.add(ctx, *r), nil
}

// note counts fetches without an answer, and records a pause that the host asked for. The failure
// of another host to which this one redirects does not count, because anyone can write a URI that
// leads there.
func (t *hostClaim) note(err error) {
	var failure *resolver.Error
	if !errors.As(err, &failure) || failure.AfterRedirect {
		t.silent.Store(0)
		return
	}
	if rest := failure.Rest(); rest > 0 {
		t.rest.Store(int64(rest))
	}
	switch {
	case failure.IsSilent():
		t.silent.Add(1)
	case failure.Reason != resolver.ReasonCanceled:
		t.silent.Store(0)
	}
}

// resolveMany reads documents that need no network and saves them together. Where
// that fails each is saved by itself.
func (l *Loop) resolveMany(ctx context.Context, due []docdb.URI) {
	results := make([]docdb.FetchResult, 0, len(due))
	for _, u := range due {
		r, _ := l.outcome(ctx, u)
		if r != nil {
			results = append(results, *r)
		} else if err := l.release(ctx, u); err != nil {
			l.opts.Log.Warn("documents: not released", "uri", u.ID, "error", err)
		}
	}
	for i, err := range l.saver.saveAll(ctx, results) {
		if err != nil {
			l.opts.Log.Warn("documents: not saved", "uri", results[i].URIID, "error", err)
		}
	}
}

// outcome fetches and parses one document; nil if nothing was learned about it. The error is the
// failure that the outcome records. The bytes are untrusted: a document that causes a panic must not stop the others.
func (l *Loop) outcome(ctx context.Context, u docdb.URI) (r *docdb.FetchResult, err error) {
	defer func() {
		if r != nil {
			r.Claimed = u.Claimed
		}
	}()
	defer func() {
		if broken := recover(); broken != nil {
			l.opts.Log.Error("documents: panic", "uri", u.ID, "panic", broken, "stack", string(debug.Stack()))
			outcome := l.broken(docdb.FetchResult{URIID: u.ID})
			r, err = &outcome, nil
		}
	}()
	if denied, err := l.denied(ctx, u); err != nil || denied != nil {
		return denied, err
	}
	limited, cancel := context.WithTimeout(ctx, fetchLimit)
	defer cancel()
	doc, err := l.fetch.FetchIfChanged(limited, u.URI, resolver.Validators{ETag: u.ETag, LastModified: u.LastModified})
	if err != nil {
		return l.failure(u, err), err
	}
	if host := resolver.HostOf(doc.FinalURL); doc.Source == resolver.SourceHTTPS && host != u.Host {
		// A redirect must not lead around the deny-list.
		if denied, err := deniedHost(ctx, l.db, host); err != nil || denied != nil {
			return refusal(u, denied), err
		}
	}
	return l.success(u, doc), nil
}

// broken is the outcome of a document that caused a panic in this program.
func (l *Loop) broken(of docdb.FetchResult) docdb.FetchResult {
	now := time.Now().UTC()
	return docdb.FetchResult{URIID: of.URIID, Claimed: of.Claimed, FetchedAt: now, Reason: reasonInternal, Dead: true,
		Detail:  "the document could not be read because of a fault of this program",
		NextDue: now.Add(node.Jitter(l.opts.RetryDead))}
}

// denied returns the outcome of a document that the operator's deny-list forbids to fetch; nil if
// it does not.
func (l *Loop) denied(ctx context.Context, u docdb.URI) (*docdb.FetchResult, error) {
	if u.Denied != nil {
		return refusal(u, &repute.Denial{Reason: u.Denied.Reason}), nil
	}
	if ref := resolver.Classify(u.URI); ref.Kind != resolver.KindIPFS && ref.Host == u.Host {
		return nil, nil // claims tell of the host, unless it was queued when hosts had other spellings
	}
	d, err := Denied(ctx, l.db, u.URI)
	return refusal(u, d), err
}

// refusal returns the outcome of a document that d forbids; nil if d is nil.
func refusal(u docdb.URI, d *repute.Denial) *docdb.FetchResult {
	if d == nil {
		return nil
	}
	return &docdb.FetchResult{URIID: u.ID, FetchedAt: time.Now().UTC(), Reason: docdb.ReasonDenied,
		Detail: plain(d.Reason), Dead: true, Denial: *d}
}

// success returns the outcome of a fetched document, with the time of its next fetch.
func (l *Loop) success(u docdb.URI, doc resolver.Document) *docdb.FetchResult {
	r := &docdb.FetchResult{URIID: u.ID, Source: string(doc.Source), CID: doc.CID, Root: doc.Root,
		ETag: plain(doc.ETag), LastModified: plain(doc.LastModified), FetchedAt: doc.FetchedAt}
	if doc.Source == resolver.SourceHTTPS {
		r.ServedBy = resolver.HostOf(doc.FinalURL)
		r.NextDue = doc.FetchedAt.Add(node.Jitter(max(l.refetch(u), doc.FreshFor)))
	}
	if doc.NotModified {
		if r.ETag == "" && r.LastModified == "" {
			r.ETag, r.LastModified = u.ETag, u.LastModified
		}
		return r
	}
	r.Body, r.MediaType = doc.Bytes, plain(doc.MediaType)
	for _, b := range doc.Blocks {
		r.Blocks = append(r.Blocks, docdb.Block{Multihash: b.Multihash, Data: b.Data, Node: b.Node})
	}
	r.Read(parse(doc.Bytes, u.Rank < docdb.RankFile, u.Rank <= docdb.RankAgent))
	return r
}

// refetch returns the interval between fetches of a document that can change.
func (l *Loop) refetch(u docdb.URI) time.Duration {
	switch {
	case !u.Used:
		return l.opts.RefetchIdle
	case u.Rank == docdb.RankFile:
		return l.opts.RefetchFiles
	}
	return l.opts.Refetch
}

// failure returns what is stored about a fetch that failed, with the time of the next one. It returns
// nil where the error does not concern the document: it is no *resolver.Error, or the fetch was canceled.
func (l *Loop) failure(u docdb.URI, err error) *docdb.FetchResult {
	var failure *resolver.Error
	if !errors.As(err, &failure) || failure.Reason == resolver.ReasonCanceled {
		return nil
	}
	now := time.Now().UTC()
	r := &docdb.FetchResult{URIID: u.ID, FetchedAt: now, Reason: string(failure.Reason),
		Detail: plain(failure.Detail()),
		Dead:   !failure.Retry || u.Failures+1 >= l.opts.DeadAfter}
	wait := l.delay(u.Attempts)
	switch {
	case r.Dead && !onNetwork(u.Kind):
		return r // the fault is in the URI
	case r.Dead:
		wait = node.Jitter(l.opts.RetryDead)
	case !u.Used:
		wait = max(wait, node.Jitter(l.opts.Refetch))
	}
	r.NextDue = now.Add(max(wait, min(failure.RetryAfter, l.opts.RetryMax)))
	return r
}

// onNetwork reports whether fetching a URI of this kind asks another machine, which limits per
// host then apply to.
func onNetwork(kind string) bool {
	switch resolver.Kind(kind) {
	case resolver.KindHTTPS, resolver.KindHTTP, resolver.KindIPFS:
		return true
	}
	return false
}

// release returns claims, also after the end of ctx. It stops at the first failure, because claims
// expire.
func (l *Loop) release(ctx context.Context, uris ...docdb.URI) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), returnLimit)
	defer cancel()
	for _, u := range uris {
		if err := docdb.ReleaseURI(ctx, l.db, u); err != nil {
			return err
		}
	}
	return nil
}

// delay returns the pause after a number of consecutive failures.
func (l *Loop) delay(attempts int) time.Duration {
	return node.Doubled(l.opts.RetryMin, l.opts.RetryMax, attempts-1)
}

// plain removes from untrusted text what a text column cannot store.
func plain(s string) string {
	const most = 500
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "")
	}
	return s
}
