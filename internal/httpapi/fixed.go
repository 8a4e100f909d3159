package httpapi

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strings"
	"sync"

	"github.com/labstack/echo/v4"
)

// Fixed is a body that stays as it is while the process runs, such as a file or the OpenAPI document. It is compressed
// once, when a caller first accepts that. The path of a Fixed MUST be Raw.
type Fixed struct {
	contentType string
	body        []byte
	packed      func() []byte
}

// NewFixed returns an answer with a body.
func NewFixed(contentType string, body []byte) *Fixed {
	return &Fixed{contentType, body, sync.OnceValue(func() []byte { return pack(body) })}
}

// Send answers a request, with gzip where the caller accepts it.
func (f *Fixed) Send(c echo.Context) error {
	h := c.Response().Header()
	h.Add(echo.HeaderVary, echo.HeaderAcceptEncoding)
	if !strings.Contains(c.Request().Header.Get(echo.HeaderAcceptEncoding), "gzip") {
		return c.Blob(http.StatusOK, f.contentType, f.body)
	}
	h.Set(echo.HeaderContentEncoding, "gzip")
	return c.Blob(http.StatusOK, f.contentType, f.packed())
}

// pack compresses a body as small as gzip can. Writing to memory does not fail.
func pack(body []byte) []byte {
	var out bytes.Buffer
	w, _ := gzip.NewWriterLevel(&out, gzip.BestCompression)
	_, _ = w.Write(body)
	_ = w.Close()
	return out.Bytes()
}
