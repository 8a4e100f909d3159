package api

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"repute"
	"repute/internal/httpapi"
	"repute/store/docdb"
	"repute/store/query"
)

// The inputs of the operations on documents.
type (
	documentsInput struct {
		AgentPath
		DocumentsQuery
	}
	refreshInput struct {
		AgentPath
		RefreshQuery
	}
	bodyInput struct {
		Request
		SHA256 string `path:"sha256" pattern:"^(0x)?[0-9a-fA-F]{64}$" doc:"sha256 of the bytes, 64 hexadecimal digits with or without 0x"`
	}
)

// DocumentsQuery are the parameters of an agent's documents.
type DocumentsQuery struct {
	Request
	PageQuery
}

// Query is the query itself, also where it is embedded.
func (q *DocumentsQuery) Query() *DocumentsQuery { return q }

// RefreshQuery are the parameters of a refresh: none.
type RefreshQuery struct {
	Request
	caller string
}

// Query is the query itself, also where it is embedded.
func (q *RefreshQuery) Query() *RefreshQuery { return q }

// Resolve keeps who asks.
func (q *RefreshQuery) Resolve(ctx huma.Context) []error {
	q.caller = httpapi.CallerOf(ctx.Context())
	return q.Request.Resolve(ctx)
}

const refreshVerb = ":refresh"

// DocumentVersion is one outcome of reading a URI that an agent had.
type DocumentVersion struct {
	URI       string  `json:"uri" doc:"no more than the first 2 KiB"`
	URIHex    *Hex    `json:"uriHex,omitempty"`
	URISize   Long    `json:"uriSize" doc:"bytes of the whole uri on chain"`
	FromBlock Long    `json:"fromBlock" doc:"the agent had the uri from this block on"`
	ToBlock   *Long   `json:"toBlock" doc:"until before this block; null while it has it"`
	FetchedAt *Time   `json:"fetchedAt" doc:"null when the uri was not read yet" format:"date-time"`
	Source    *string `json:"source" doc:"data, inline, https or ipfs; null for a failure"`
	SHA256    *Hash   `json:"sha256" doc:"null for a failure"`
	Size      Long    `json:"size" doc:"bytes"`
	Kept      bool    `json:"kept" doc:"/documents/{sha256} gives the bytes"`
	Reason    *string `json:"reason" doc:"code of a failure"`
	Cut       []Cut   `json:"cut" doc:"texts that were cut, which end with an ellipsis, and where the whole is"`
}

// DocumentList is a page of an agent's documents.
type DocumentList struct {
	Items []DocumentVersion `json:"items"`
	Next  *string           `json:"next" doc:"cursor of the next page, null at the end"`
	AsOf  []AsOf            `json:"asOf"`
}

func (b DocumentList) steady() any { b.AsOf = each(b.AsOf, AsOf.steady); return b }

// RefreshAnswer tells that a document will be read again.
type RefreshAnswer struct {
	Queued        bool  `json:"queued" doc:"always true: otherwise the answer is 429"`
	NextAllowedAt *Time `json:"nextAllowedAt" doc:"when the next refresh of this document will be granted" format:"date-time"`
}

// mountDocuments adds the operations on documents.
func (a *API) mountDocuments() {
	onAgent[documentsInput](a, "/documents", "list-documents",
		"Lists the documents that were read from an agent's URIs, failures too, newest first", a.documents)
	onAgent[refreshInput](a, "/documents"+refreshVerb, "refresh-document",
		"Schedules another read of an agent's document; at most once a minute per document", a.refresh, asRefresh)

	op := describeOperation(a, "/documents/{sha256}", "get-document", "Returns the bytes of a document by their sha256")
	op.Responses["200"] = &huma.Response{Description: "The bytes as they were read. What is no JSON comes as plain text or octets, never as a page.", Content: map[string]*huma.MediaType{
		jsonType:  {Schema: &huma.Schema{}, Example: map[string]any{"name": "Atlas Translator", "services": []any{}}},
		plainType: {Schema: &huma.Schema{Type: huma.TypeString}}, octetType: {}}}
	op.Responses["304"].Description = "The caller has the bytes."
	register(a, op, a.body)
}

// asRefresh describes an operation that asks for something to be done.
func asRefresh(op *huma.Operation) {
	op.Method, op.DefaultStatus = http.MethodPost, http.StatusAccepted
	delete(op.Responses, "304")
}

// documents serves GET /agents/{id}/documents: all documents that were read from an agent's URIs.
func (a *API) documents(ctx context.Context, ref repute.AgentRef, q *DocumentsQuery) (*output[DocumentList], error) {
	limit, err := httpapi.PageSize(q.Limit, httpapi.DefaultPage, httpapi.MaxPage)
	if err != nil {
		return nil, err
	}
	id, err := a.resolve(ctx, ref)
	if err != nil {
		return nil, err
	}
	page, err := docdb.Versions(ctx, a.db, id, q.Cursor, limit)
	if err != nil {
		return nil, unknownAgent(err)
	}
	return ok(DocumentList{Items: encodeVersions(id, page.Items), Next: orNull(page.Next),
		AsOf: each(page.AsOf, encodeAsOf)}), nil
}

func encodeVersions(id repute.AgentID, list []repute.DocumentVersion) []DocumentVersion {
	return each(list, func(v repute.DocumentVersion) DocumentVersion { return encodeVersion(id, v) })
}

// encodeVersion writes one read of a URI. The URI itself is cut where it is long, and the answer
// names the path of the whole.
func encodeVersion(id repute.AgentID, v repute.DocumentVersion) DocumentVersion {
	w := DocumentVersion{
		URISize: Long(v.URISize), FromBlock: Long(v.FromBlock), ToBlock: orNull(Long(v.ToBlock)),
		FetchedAt: encodeTime(v.FetchedAt),
		Source:    orNull(v.Source), SHA256: encodeHash(v.SHA256), Size: Long(v.Size), Kept: v.Kept,
		Reason: orNull(httpapi.Clean(v.Reason)),
	}
	c := unboundedCutter()
	goesOn := v.URISize > int64(len(v.URI)) && len(v.URI) > maxShown-utf8.UTFMax
	w.URI, w.URIHex = c.chain(v.URI, "uri", uriPath(id, repute.At{Block: v.FromBlock}), goesOn)
	w.Cut = c.cuts
	return w
}

// A caller may ask for so many refreshes at once, then for one every few seconds.
const (
	refreshBurst  = 10
	refreshPeriod = 6 * time.Second
)

// refresh serves POST /agents/{id}/refresh: the agent's document is read again soon.
func (a *API) refresh(ctx context.Context, ref repute.AgentRef, q *RefreshQuery) (*output[RefreshAnswer], error) {
	if wait := a.refreshes.Allow(ctx, q.caller); wait > 0 && a.server.Limits.Rate >= 0 {
		return nil, tooSoon("too many refreshes", wait)
	}
	id, err := a.resolve(ctx, ref)
	if err != nil {
		return nil, err
	}
	r, err := query.RequestRefresh(ctx, a.db, id)
	if err != nil {
		return nil, unknownAgent(err)
	}
	if !r.Queued {
		return nil, tooSoon("the document was refreshed lately", time.Until(r.NextAllowed))
	}
	answer := RefreshAnswer{Queued: true, NextAllowedAt: encodeTime(r.NextAllowed)}
	return &output[RefreshAnswer]{Status: http.StatusAccepted, CacheControl: "no-store", Body: &answer}, nil
}

// tooSoon makes the answer 429 that says when to ask again.
func tooSoon(detail string, wait time.Duration) error {
	b := *httpapi.ErrorOf(fmt.Errorf("%s: %w", detail, repute.ErrLimited))
	b.Retry = max(wait, time.Second)
	b.Hint = "wait as long as Retry-After says"
	return &b
}

// The types that stored bytes are served as.
const (
	jsonType  = "application/json"
	plainType = "text/plain; charset=utf-8"
	octetType = "application/octet-stream"
)

// forDocuments is how long caches may keep bytes that never change. Not for a year:
// what the operator denies must leave the caches between.
const forDocuments = "public, max-age=86400, immutable"

// rawOutput is a document. Bytes of strangers are never shown as a page under our
// name, whatever they claim to be.
type rawOutput struct {
	Status       int
	ContentType  string `header:"Content-Type"`
	ETag         string `header:"ETag"`
	CacheControl string `header:"Cache-Control"`
	Policy       string `header:"Content-Security-Policy"`
	Disposition  string `header:"Content-Disposition"`
	Body         []byte
}

// settle leaves the bytes out that the caller has.
func (o *rawOutput) settle(ifNoneMatch string) {
	if matches(ifNoneMatch, o.ETag) {
		o.Status, o.Body = http.StatusNotModified, nil
	}
}

// body serves GET /documents/{sha256}: the bytes of a document as they were read.
func (a *API) body(ctx context.Context, in *bodyInput) (*rawOutput, error) {
	sum, err := parseSHA256(in.SHA256)
	if err != nil {
		return nil, err
	}
	c, err := docdb.Body(ctx, a.db, sum)
	if err != nil {
		return nil, err
	}
	kind, extension := safeType(c.Body)
	return &rawOutput{
		Status: http.StatusOK, ContentType: kind, ETag: fmt.Sprintf(`"%x"`, sum),
		CacheControl: forDocuments, Policy: "default-src 'none'; frame-ancestors 'none'; sandbox",
		Disposition: fmt.Sprintf(`attachment; filename="%x.%s"`, sum, extension), Body: c.Body,
	}, nil
}

// parseSHA256 reads 64 hexadecimal digits, with or without 0x.
func parseSHA256(s string) (sum [32]byte, err error) {
	digits := strings.TrimPrefix(s, "0x")
	if n, err := hex.Decode(sum[:], []byte(digits[:min(len(digits), 64)])); err != nil || n != 32 || len(digits) != 64 {
		return sum, repute.Invalid("sha256", "not a sha256", "64 hexadecimal digits, with or without 0x")
	}
	return sum, nil
}

// safeType tells what bytes are by themselves: what was claimed of them is not asked.
func safeType(body []byte) (contentType, extension string) {
	switch {
	case json.Valid(body):
		return jsonType, "json"
	case utf8.Valid(body) &&
		!strings.ContainsFunc(string(body), func(r rune) bool { return unicode.IsControl(r) && !unicode.IsSpace(r) }):
		return plainType, "txt"
	}
	return octetType, "bin"
}
