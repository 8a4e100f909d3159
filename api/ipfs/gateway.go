// Package ipfs serves the stored documents to IPFS clients through a read-only trustless gateway: raw
// blocks and CAR files only, and nothing is fetched for a caller.
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

const gatewayPath = "/ipfs/"

// Most of one answer: a directory's CAR leads to every document we keep of it. A link
// takes several times its bytes once it is decoded; no block holds a quarter of them.
const (
	maxGatewayBlocks = 1000
	maxGatewayBytes  = 32 << 20
	maxGatewayLinks  = 200_000
)

// ipfsGateway is a read-only trustless gateway (specs.ipfs.tech) over the blocks and
// documents that are kept: raw blocks and CARs only, so that callers verify what they
// get and a browser is never shown a stranger's page under our name.
type ipfsGateway struct {
	kept *keptBlocks
	next http.Handler
	fail func(context.Context, error) *httpapi.ErrorBody
}

func newIPFSGateway(blocks blockSource, timeout time.Duration,
	fail func(context.Context, error) *httpapi.ErrorBody) (*ipfsGateway,
	error) {
	kept := &keptBlocks{from: blocks}
	// Nothing is fetched for a caller: what is not kept is not there.
	backend, err := gateway.NewBlocksBackend(blockservice.New(kept, offline.Exchange(kept)))
	if err != nil {
		return nil, fmt.Errorf("ipfs gateway: %w", err)
	}
	handler := gateway.NewHandler(gateway.Config{
		NoDNSLink: true, DisableHTMLErrors: true, MaxRequestDuration: timeout,
		// Requests are counted with all others; a registry of its own keeps it out of the
		// process-wide one.
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
		g.fail(r.Context(), err).Write(w) // the library tells no more of it than its text
		return
	}
	g.fail(r.Context(), answer.problem()).Write(w)
}

// check refuses what the library would answer with less help, or lead away. It looks
// for the root, because the library begins a CAR before it knows whether there is one.
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

// CacheImmutable is how long caches may keep bytes that never change. Not for a year: what the
// operator denies must leave the caches between.
const CacheImmutable = "public, max-age=86400, immutable"

const notKept = "not among the documents that are kept here"

// maxCIDText is more than any CID of a hash needs.
const maxCIDText = 256

// gatewayAnswer holds back failures, to be told in our words.
type gatewayAnswer struct {
	http.ResponseWriter
	begun   bool
	refused int
	words   strings.Builder
}

// WriteHeader lets only good answers through. The library lets caches keep them for
// almost a year.
func (a *gatewayAnswer) WriteHeader(status int) {
	a.begun = true
	if status >= 400 {
		a.refused = status
		return
	}
	a.Header().Set("Cache-Control", CacheImmutable)
	a.ResponseWriter.WriteHeader(status)
}

// Write keeps the beginning of a failure's text.
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

// Unwrap serves http.ResponseController.
func (a *gatewayAnswer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// dropHeaders takes back what described the answer that did not come.
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

// Mount serves what is kept to IPFS clients.
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
