package httpapi

import (
	"bytes"
	"net/http"

	"github.com/labstack/echo/v4"
)

// MaxKept bounds the body of an answer that caches keep, in bytes.
const MaxKept = 256 << 10

// Kept is what caches keep of an answer: what belongs to it and not to its request.
type Kept struct {
	ContentType, ETag, CacheControl string
	Body                            []byte
}

// Send sends the answer, or says that the caller has it.
func (k Kept) Send(c echo.Context) error {
	h := c.Response().Header()
	h.Set("ETag", k.ETag)
	if k.CacheControl != "" {
		h.Set(echo.HeaderCacheControl, k.CacheControl)
	}
	if MatchesETag(c.Request().Header.Get("If-None-Match"), k.ETag) {
		return c.NoContent(http.StatusNotModified)
	}
	return c.Blob(http.StatusOK, k.ContentType, k.Body)
}

// Record answers a request by next and copies the answer while it is sent. whole reports whether it is a success with
// an entity tag and a body of up to MaxKept bytes: others MUST NOT be kept. The caller's answer is sent as it is made,
// so that nothing waits for its end; a body that is too large is still sent whole.
func Record(c echo.Context, next echo.HandlerFunc) (k Kept, whole bool, err error) {
	r := c.Response()
	out := &recorder{ResponseWriter: r.Writer}
	r.Writer = out
	err = next(c)
	r.Writer = out.ResponseWriter
	h := out.Header()
	k = Kept{h.Get(echo.HeaderContentType), h.Get("ETag"), h.Get(echo.HeaderCacheControl), out.body.Bytes()}
	return k, err == nil && out.status == http.StatusOK && !out.large && k.ETag != "", err
}

// recorder copies an answer while it is sent.
type recorder struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
	large  bool // and not copied to its end
}

// WriteHeader implements http.ResponseWriter.
func (r *recorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (r *recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	if r.large = r.large || r.body.Len()+len(b) > MaxKept; !r.large {
		r.body.Write(b)
	}
	return r.ResponseWriter.Write(b)
}

// Unwrap returns the writer below, for http.ResponseController.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
