package resolver

import (
	"context"
	"log/slog"
	"time"
)

// Limits used where Options leaves them zero.
const (
	DefaultMaxBytes       = 1 << 20   // fetched documents
	defaultMaxInlineBytes = 256 << 10 // data: URIs and bare JSON
	defaultTimeout        = 20 * time.Second
)

// Source is the origin of bytes.
type Source string

// Sources of documents. Bytes from SourceIPFS were verified against the CID; data
// and inline are part of the chain itself; https can change at any time.
const (
	SourceData   Source = "data"
	SourceInline Source = "inline"
	SourceHTTPS  Source = "https"
	SourceIPFS   Source = "ipfs"
)

// Options configure a Client. The zero value reads public https and data: URIs.
type Options struct {
	GuardOptions
	// Gateways are trustless ipfs gateways ("https://host"), asked in order, those with recent
	// failures last. The guard applies to them too: a private one must also be in AllowHosts.
	Gateways []string
	// Node is the trustless gateway of the operator's own ipfs node, e.g. "http://127.0.0.1:8080".
	// It is asked first and may be private. URIs of documents must not reach it.
	Node string
	// UserAgent should name the operator: "name/version (+https://contact)".
	UserAgent      string
	MaxBytes       int64
	MaxInlineBytes int64
	// Timeout bounds one fetch with all redirects, or with all ipfs gateways together.
	Timeout time.Duration
	// Log receives messages about gateways that return wrong bytes. Nil: discarded.
	Log *slog.Logger
}

// Document is the bytes behind a URI and their origin. Its strings are valid UTF-8, bounded, and
// without control characters; the bytes are unchanged.
type Document struct {
	Bytes     []byte // never nil, but where NotModified is set
	MediaType string // as declared, without parameters, lower case; may be ""
	Source    Source
	// FinalURL is the URL that answered, after redirects; ipfs://{cid}[/path] for
	// ipfs, "" for documents written on chain.
	FinalURL string
	CID      string // ipfs only
	Gateway  string // scheme and host of the gateway that served the ipfs blocks
	// Root is the multihash of the file itself, at the end of the path; ipfs only.
	Root []byte
	// Blocks are the blocks that prove an ipfs document, each once: those of the path from the root
	// and those of the file. Identity blocks, whose CID contains the bytes, are not included.
	Blocks []Block
	// ETag and LastModified are the validators of an https answer, as sent; "" if
	// they are no decent text.
	ETag         string
	LastModified string
	// FreshFor is how long an https answer is valid according to Cache-Control, between five minutes
	// and seven days; 0 without the header.
	FreshFor time.Duration
	// NotModified reports that the server still has the version of the given validators. Bytes and
	// MediaType are empty then.
	NotModified bool
	FetchedAt   time.Time
}

// Block is an ipfs block whose bytes were verified against its CID.
type Block struct {
	CID       string
	Multihash []byte // of the CID: the same for each of its spellings
	Data      []byte
	Node      bool // read as a dag-pb node, not as a part of the file alone
}

// Validators identify a known version of a document for the server, which then need not send it
// again. They are the fields of the same names of Document. Empty ones are not sent.
type Validators struct {
	ETag, LastModified string
}

// Client fetches documents. It is safe for concurrent use.
type Client struct {
	opts  Options
	guard *Guard
	peers *peers
	// pace is the period within which a body must make progress.
	pace time.Duration
}

// New returns a client. It fails on a gateway or node that is not a plain URL.
func New(o Options) (*Client, error) {
	if o.MaxBytes <= 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	if o.MaxInlineBytes <= 0 {
		o.MaxInlineBytes = defaultMaxInlineBytes
	}
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.UserAgent == "" {
		o.UserAgent = "repute/0 (ERC-8004 document reader)"
	}
	c := &Client{opts: o, guard: NewGuard(o.GuardOptions), pace: paceWindow}
	var err error
	c.peers, err = newPeers(c.guard, o)
	return c, err
}

// Close closes pooled connections.
func (c *Client) Close() {
	c.guard.CloseIdle()
	c.peers.closeIdle()
}

// Fetch reads the document behind uri. The error is always an *Error.
func (c *Client) Fetch(ctx context.Context, uri string) (Document, error) {
	return c.FetchIfChanged(ctx, uri, Validators{})
}

// FetchIfChanged is Fetch for a document with a known version: an https server that still has it
// may answer NotModified. Other forms ignore the validators, because their contents cannot change.
func (c *Client) FetchIfChanged(ctx context.Context, uri string, known Validators) (Document, error) {
	return c.FetchWithin(ctx, uri, known, Limits{})
}

// Limits restrict a fetch further than the client's options do.
type Limits struct {
	MaxBytes int64 // of a fetched document; 0 for the client's
	// SameOrigin reads https alone, and refuses redirects to another scheme, host or port: for documents that
	// speak for the host that serves them.
	SameOrigin bool
}

// FetchWithin is FetchIfChanged within limits.
func (c *Client) FetchWithin(ctx context.Context, uri string, known Validators, limits Limits) (Document, error) {
	doc, err := c.fetch(ctx, Classify(uri), known, limits)
	if err != nil {
		return Document{}, networkError(ctx, err)
	}
	doc.FetchedAt = time.Now().UTC()
	if doc.Bytes == nil && !doc.NotModified {
		doc.Bytes = []byte{} // an empty file, such as an ipfs file without blocks
	}
	return doc, nil
}

// fetch reads a document by its kind, without retries.
func (c *Client) fetch(ctx context.Context, ref Ref, known Validators, limits Limits) (Document, error) {
	if limits.SameOrigin && ref.Kind != KindHTTPS {
		return Document{}, final(ReasonHTTPDisabled, "%.80q is not https", ref.URL)
	}
	switch ref.Kind {
	case KindData:
		b, mediaType, err := decodeData(ref.URL, c.opts.MaxInlineBytes)
		return Document{Bytes: b, MediaType: storable(mediaType, maxShortText), Source: SourceData}, err
	case KindJSON:
		b, err := bounded([]byte(ref.URL), c.opts.MaxInlineBytes)
		return Document{Bytes: b, MediaType: "application/json", Source: SourceInline}, err
	case KindHTTPS, KindHTTP:
		return c.fetchWeb(ctx, ref.URL, known, limits)
	case KindIPFS:
		return c.fetchIPFS(ctx, ref)
	}
	return Document{}, final(ref.Reason, "%.80q", ref.URL)
}
