package resolver

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// Limits used where Options leaves them zero.
const (
	DefaultMaxBytes       = 1 << 20   // fetched documents
	DefaultMaxInlineBytes = 256 << 10 // data: URIs and bare JSON
	defaultTimeout        = 20 * time.Second
)

// Source says where bytes came from.
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
	// Gateways are trustless ipfs gateways ("https://host"), asked in order. They
	// pass the guard as well: a private one must also be in AllowHosts.
	Gateways []string
	// UserAgent should name the operator: "name/version (+https://contact)".
	UserAgent      string
	MaxBytes       int64
	MaxInlineBytes int64
	// Timeout limits one fetch with everything it takes: redirects, or all ipfs
	// gateways, who share it.
	Timeout time.Duration
}

// Document is the bytes behind a URI and where they came from. Its strings are valid
// UTF-8, bounded, and without control characters; the bytes are as they came.
type Document struct {
	Bytes     []byte
	MediaType string // as declared, without parameters, lower case; may be ""
	Source    Source
	// FinalURL is the URL that answered, after redirects; ipfs://{cid}[/path] for
	// ipfs, "" for documents written on chain.
	FinalURL string
	CID      string // ipfs only
	Gateway  string // the gateway that served the ipfs blocks
	// ETag and LastModified are the validators of an https answer, as sent; "" if
	// they are no decent text.
	ETag         string
	LastModified string
	FetchedAt    time.Time
}

// Client fetches documents. It is safe for concurrent use.
type Client struct {
	opts  Options
	guard *Guard
}

// New makes a client; it fails on a gateway that is not a URL.
func New(o Options) (*Client, error) {
	if o.MaxBytes <= 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	if o.MaxInlineBytes <= 0 {
		o.MaxInlineBytes = DefaultMaxInlineBytes
	}
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	if o.UserAgent == "" {
		o.UserAgent = "repute/0 (ERC-8004 document reader)"
	}
	gateways := make([]string, 0, len(o.Gateways))
	for _, g := range o.Gateways {
		u, err := url.Parse(g)
		if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			return nil, fmt.Errorf("ipfs gateway %q: want https://host: %w", g, errors.Join(err, errBadGateway))
		}
		gateways = append(gateways, strings.TrimRight(g, "/"))
	}
	o.Gateways = gateways
	return &Client{opts: o, guard: NewGuard(o.GuardOptions)}, nil
}

var errBadGateway = errors.New("not a gateway URL")

// Guard is the client's guard, for other requests to hosts that strangers named.
func (c *Client) Guard() *Guard { return c.guard }

// Close closes pooled connections.
func (c *Client) Close() { c.guard.CloseIdle() }

// Fetch reads the document behind uri. The error is always an *Error.
func (c *Client) Fetch(ctx context.Context, uri string) (Document, error) {
	ref := Classify(uri)
	doc, err := c.fetch(ctx, ref)
	if err != nil {
		return Document{}, networkError(ctx, err)
	}
	doc.FetchedAt = time.Now().UTC()
	return doc, nil
}

func (c *Client) fetch(ctx context.Context, ref Ref) (Document, error) {
	switch ref.Kind {
	case KindData:
		b, mediaType, err := decodeData(ref.URL, c.opts.MaxInlineBytes)
		return Document{Bytes: b, MediaType: storable(mediaType, maxShortText), Source: SourceData}, err
	case KindJSON:
		b, err := bounded([]byte(ref.URL), c.opts.MaxInlineBytes)
		return Document{Bytes: b, MediaType: "application/json", Source: SourceInline}, err
	case KindHTTPS, KindHTTP:
		return c.fetchWeb(ctx, ref.URL)
	case KindIPFS:
		return c.fetchIPFS(ctx, ref)
	}
	return Document{}, final(ref.Reason, "%.80q", ref.URL)
}
