package api

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"repute"
	"repute/api/answers"
	"repute/api/ipfs"
	"repute/api/wire"
	"repute/internal/httpapi"
	"repute/store/docdb"
)

// The inputs of the operations on documents.
type (
	documentsInput struct {
		answers.AgentPath
		answers.Request
		answers.PageQuery
	}
	refreshInput struct {
		answers.AgentPath
		answers.Request
	}
	bodyInput struct {
		answers.Request
		SHA256 string `path:"sha256" pattern:"^(0x)?[0-9a-fA-F]{64}$" doc:"sha256 of the bytes, 64 hexadecimal digits with or without 0x"`
	}
)

// mountDocuments adds the operations on documents.
func (a *API) mountDocuments() {
	onAgent(a, "/documents", "list-documents",
		"Lists the documents that were read from an agent's URIs, failures too, newest first", a.documents)
	onAgent(a, "/documents:refresh", "refresh-document",
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
func (a *API) documents(ctx context.Context, ref repute.AgentRef, q *documentsInput) (*output[wire.DocumentList],
	error) {
	limit, err := httpapi.PageSize(q.Limit, httpapi.DefaultPage, httpapi.MaxPage)
	if err != nil {
		return nil, err
	}
	id, err := a.Resolve(ctx, ref)
	if err != nil {
		return nil, err
	}
	page, err := docdb.Versions(ctx, a.DB, id, q.Cursor, limit)
	if err != nil {
		return nil, answers.UnknownAgent(err)
	}
	return ok(wire.DocumentList{Items: wire.EncodeVersions(id, page.Items), Next: wire.OrNull(page.Next),
		AsOf: wire.Each(page.AsOf, wire.EncodeAsOf)}), nil
}

// refresh serves POST /agents/{id}/refresh: it schedules the agent's document to be read again
// soon.
func (a *API) refresh(ctx context.Context, ref repute.AgentRef, _ *refreshInput) (*output[wire.RefreshAnswer], error) {
	answer, err := a.RequestRefresh(ctx, ref)
	if err != nil {
		return nil, err
	}
	return &output[wire.RefreshAnswer]{Status: http.StatusAccepted, CacheControl: "no-store", Body: answer}, nil
}

// The types that stored bytes are served as.
const (
	jsonType  = "application/json"
	plainType = "text/plain; charset=utf-8"
	octetType = "application/octet-stream"
)

// rawOutput is the bytes of a document. They are untrusted and MUST NOT be rendered as a page of this host, whatever
// their declared type.
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
	if httpapi.MatchesETag(ifNoneMatch, o.ETag) {
		o.Status, o.Body = http.StatusNotModified, nil
	}
}

// body serves GET /documents/{sha256}: the stored bytes of a document.
func (a *API) body(ctx context.Context, in *bodyInput) (*rawOutput, error) {
	sum, err := parseSHA256(in.SHA256)
	if err != nil {
		return nil, err
	}
	c, err := docdb.Body(ctx, a.DB, sum)
	if err != nil {
		return nil, err
	}
	kind, extension := safeType(c.Body)
	return &rawOutput{
		Status: http.StatusOK, ContentType: kind, ETag: fmt.Sprintf(`"%x"`, sum),
		CacheControl: ipfs.CacheImmutable, Policy: "default-src 'none'; frame-ancestors 'none'; sandbox",
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

// safeType returns the type of bytes by their contents; the declared type is ignored.
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
