// Package ipfs serves the stored documents to IPFS clients through a read-only trustless gateway (specs.ipfs.tech): raw
// blocks and CAR files only, so that callers verify the bytes and a browser never renders foreign pages from this host.
//
// The protocol is boxo's. This package gives it a block store over the database that has no network behind it, bounds
// what one answer may read (blocks, bytes, and links, whose decoding takes several times their bytes), and answers
// failures as problems like every other route.
package ipfs

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/ipfs/boxo/blockservice"
	"github.com/ipfs/boxo/exchange/offline"
	"github.com/ipfs/boxo/gateway"
	"github.com/ipfs/go-cid"
	format "github.com/ipfs/go-ipld-format"
	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"repute"
	"repute/internal/httpapi"
	"repute/store"
)

// gatewayPath is the path of all gateways of IPFS.
const gatewayPath = "/ipfs/"

// Limits of one answer: a directory's CAR can contain every stored document of the directory. A
// decoded link takes several times its encoded bytes, and no block is a quarter links.
const (
	maxGatewayBlocks = 1000
	maxGatewayBytes  = 32 << 20
	maxGatewayLinks  = 200_000
)

// ipfsGateway is a read-only trustless gateway (specs.ipfs.tech) over the stored blocks and
// documents. It serves only raw blocks and CARs, so that callers verify the bytes and a browser
// never renders foreign pages from this host.
type ipfsGateway struct {
	kept *keptBlocks
	next http.Handler
	fail func(context.Context, error) *httpapi.ErrorBody
}

// newIPFSGateway returns a gateway over blocks. fail converts errors to answers.
func newIPFSGateway(blocks blockSource, timeout time.Duration,
	fail func(context.Context, error) *httpapi.ErrorBody) (*ipfsGateway,
	error) {
	kept := &keptBlocks{from: blocks}
	// Nothing is fetched for a caller: only stored blocks exist.
	backend, err := gateway.NewBlocksBackend(blockservice.New(kept, offline.Exchange(kept)))
	if err != nil {
		return nil, fmt.Errorf("ipfs gateway: %w", err)
	}
	handler := gateway.NewHandler(gateway.Config{
		NoDNSLink: true, DisableHTMLErrors: true, MaxRequestDuration: timeout,
		// These metrics are not exported, because the server counts all requests. Without a
		// registry the library would register them globally.
		MetricsRegistry: prometheus.NewRegistry(),
	}, backend)
	return &ipfsGateway{kept: kept, next: handler, fail: fail}, nil
}

// ServeHTTP answers GET /ipfs/{cid}[/path]. Failures are problems like everywhere.
func (g *ipfsGateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	left := newAllowance()
	r = r.WithContext(context.WithValue(r.Context(), allowanceKey{}, left))
	if err := g.check(r); err != nil {
		g.fail(r.Context(), err).Write(w)
		return
	}
	answer := &gatewayAnswer{ResponseWriter: w}
	g.next.ServeHTTP(answer, r)
	if answer.refused == 0 {
		return
	}
	answer.dropHeaders()
	if err := left.failure(); err != nil {
		g.fail(r.Context(), err).Write(w) // the library's answer contains only the text of the error
		return
	}
	g.fail(r.Context(), answer.problem()).Write(w)
}

// check refuses requests for which the library has less helpful errors, or redirects. It reads the
// root block, because the library starts a CAR before it knows whether the root exists.
func (g *ipfsGateway) check(r *http.Request) error {
	text, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, gatewayPath), "/")
	id, err := cid.Decode(text)
	if err != nil || len(text) > maxCIDText {
		return repute.Invalid("cid", "not a CID",
			"e.g. /ipfs/bafkrei…?format=raw; the sha256 of a document is part of its raw CIDv1")
	}
	_, err = g.kept.Get(r.Context(), id)
	if format.IsNotFound(err) {
		return httpapi.NewError(http.StatusNotFound, "not_found", "Not found", notKept)
	}
	return err
}

// CacheImmutable is the Cache-Control of bytes that never change. It is a day and not a year, so
// that denied documents disappear from caches.
const CacheImmutable = "public, max-age=86400, immutable"

// notKept is the text of the error about content that this index does not keep. Other gateways may have it.
const notKept = "not among the documents that are kept here"

// maxCIDText bounds the text of a CID; no CID of a known hash is longer.
const maxCIDText = 256

// gatewayAnswer withholds failures of the library, which are answered as problem details instead.
type gatewayAnswer struct {
	http.ResponseWriter
	begun   bool
	refused int
	words   strings.Builder
}

// WriteHeader forwards only successful answers, with a shorter cache time than the library's year.
func (a *gatewayAnswer) WriteHeader(status int) {
	a.begun = true
	if status >= 400 {
		a.refused = status
		return
	}
	a.Header().Set("Cache-Control", CacheImmutable)
	a.ResponseWriter.WriteHeader(status)
}

// Write stores the beginning of a failure's text.
func (a *gatewayAnswer) Write(b []byte) (int, error) {
	if !a.begun {
		a.WriteHeader(http.StatusOK)
	}
	if a.refused == 0 {
		return a.ResponseWriter.Write(b)
	}
	if a.words.Len() < 512 {
		a.words.Write(b[:min(len(b), 512)])
	}
	return len(b), nil
}

// Unwrap is for http.ResponseController.
func (a *gatewayAnswer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// dropHeaders removes headers that describe the withheld answer.
func (a *gatewayAnswer) dropHeaders() {
	for _, name := range []string{"Content-Disposition", "Content-Location", "Cache-Control", "Etag", "Last-Modified",
		"Accept-Ranges"} {
		a.Header().Del(name)
	}
}

// problem writes a refusal of the gateway as problem details, like every other route.
func (a *gatewayAnswer) problem() *httpapi.ErrorBody {
	words := httpapi.Clean(strings.TrimSpace(a.words.String()))
	switch a.refused {
	case http.StatusNotAcceptable:
		b := httpapi.NewError(a.refused, "not_acceptable", "Not acceptable",
			"this is a trustless gateway: it serves raw blocks and CARs only")
		b.Hint = "add ?format=raw or ?format=car, or the header Accept: application/vnd.ipld.raw or application/vnd.ipld.car"
		return b
	case http.StatusNotFound:
		return httpapi.NewError(a.refused, "not_found", "Not found", notKept)
	case http.StatusGatewayTimeout:
		return httpapi.ErrorOf(context.DeadlineExceeded)
	case http.StatusInternalServerError:
		return httpapi.ErrorOf(fmt.Errorf("ipfs gateway: %s", words))
	}
	return httpapi.NewError(a.refused, "invalid", "Invalid request", words)
}

// Mount adds the gateway over the stored blocks and documents to a server.
func Mount(server *httpapi.Server, db *store.DB) error {
	g, err := newIPFSGateway(storedBlocks{db}, server.Limits.Timeout, server.Fail)
	if err != nil {
		return err
	}
	format := httpapi.TextParam("format", "query", "or the Accept header")
	format.Schema.Enum = []any{"raw", "car"}
	server.Describe(http.MethodGet, httpapi.Route{Path: gatewayPath + "{cid}", ID: "get-ipfs",
		ContentType: "application/vnd.ipld.raw", Example: "the bytes of one block",
		Summary: "Serves stored documents to IPFS clients as raw blocks or CAR files (trustless gateway)",
		Params:  []*huma.Param{httpapi.TextParam("cid", "path", "any CID"), format}})
	server.Raw(gatewayPath + "*") // answers are hashed and ranged as they are
	server.Echo.GET(gatewayPath+"*", echo.WrapHandler(g))
	return nil
}
