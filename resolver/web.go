package resolver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"repute/internal/httprule"
)

// maxRetryAfter bounds the pause that a server may ask for, so that it cannot postpone a URI
// forever.
const maxRetryAfter = 24 * time.Hour

// Bounds of Document.FreshFor: a shorter time would cause too many requests, and a longer one is
// not believed.
const (
	minFresh = 5 * time.Minute
	maxFresh = 7 * 24 * time.Hour
)

// fetchWeb reads one document over http(s), unless the server still has the known version.
func (c *Client) fetchWeb(ctx context.Context, target string, known Validators, limits Limits) (Document, error) {
	// Servers with several formats should send the document and not a page.
	header := map[string]string{
		"Accept":          "application/json, */*;q=0.5",
		"Accept-Encoding": "gzip",
	}
	// Validators are untrusted texts: only a valid header value is sent.
	if tag := validator(known.ETag); tag != "" {
		header["If-None-Match"] = tag
	}
	if date := validator(known.LastModified); date != "" {
		header["If-Modified-Since"] = date
	}
	resp, err := c.get(ctx, request{guard: c.guard, pace: c.pace, target: target, header: header,
		sameOrigin: limits.SameOrigin})
	if err != nil {
		named := networkError(ctx, err)
		named.AfterRedirect = named.AfterRedirect || redirected(target, err)
		return Document{}, named
	}
	defer resp.Body.Close()
	doc := Document{
		Source:       SourceHTTPS,
		FinalURL:     storable(resp.Request.URL.String(), maxURLText),
		ETag:         validator(resp.Header.Get("ETag")),
		LastModified: validator(resp.Header.Get("Last-Modified")),
		FreshFor:     freshFor(resp.Header),
	}
	if resp.StatusCode == http.StatusNotModified {
		doc.NotModified = true
		if doc.ETag == "" && doc.LastModified == "" { // it need not repeat them
			doc.ETag, doc.LastModified = known.ETag, known.LastModified
		}
		return doc, nil
	}
	if doc.Bytes, err = readBody(resp, cmp.Or(limits.MaxBytes, c.opts.MaxBytes)); err != nil {
		named := networkError(ctx, err)
		named.AfterRedirect = resp.Request.Response != nil
		return Document{}, named
	}
	mediaType, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil {
		mediaType = "" // a malformed type is ignored: the bytes decide
	}
	doc.MediaType = storable(mediaType, maxShortText)
	return doc, nil
}

// redirected reports whether a request for target failed at another host.
func redirected(target string, err error) bool {
	var failed *url.Error
	if !errors.As(err, &failed) {
		return false
	}
	at, errAt := url.Parse(failed.URL)
	asked, errAsked := url.Parse(target)
	return errAt == nil && errAsked == nil && !strings.EqualFold(at.Host, asked.Host)
}

// request is a guarded GET. Its body must make progress within pace.
type request struct {
	guard      *Guard
	pace       time.Duration
	target     string
	header     map[string]string
	sameOrigin bool // no redirect leaves the target's origin
}

// get sends a request and returns only answers with status 200, or 304 to a conditional request.
func (c *Client) get(ctx context.Context, r request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(ctx)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.target, nil)
	if err != nil {
		cancel()
		return nil, final(ReasonBadURL, "%w", err)
	}
	req.Header.Set("User-Agent", c.opts.UserAgent)
	for name, value := range r.header {
		req.Header.Set(name, value)
	}
	client := r.guard.Client(c.opts.Timeout)
	if r.sameOrigin {
		client.CheckRedirect = stayAtOrigin
	}
	resp, err := client.Do(req)
	if err != nil {
		cancel()
		return nil, err
	}
	resp.Body = newPacedBody(resp.Body, r.pace, cancel)
	conditional := r.header["If-None-Match"] != "" || r.header["If-Modified-Since"] != ""
	if resp.StatusCode == http.StatusOK || conditional && resp.StatusCode == http.StatusNotModified {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, statusError(resp)
}

// Head asks an https URL for its header alone, through the guard, and follows no redirect. It returns the status of any
// answer. The error is an *Error, of a request without an answer.
func (c *Client) Head(ctx context.Context, target string) (status int, err error) {
	ref := Classify(target)
	if ref.Kind != KindHTTPS {
		return 0, final(ReasonHTTPDisabled, "%.80q is not https", target)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, ref.URL, nil)
	if err != nil {
		return 0, final(ReasonBadURL, "%w", err)
	}
	req.Header.Set("User-Agent", c.opts.UserAgent)
	client := c.guard.Client(c.opts.Timeout)
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := client.Do(req)
	if err != nil {
		return 0, networkError(ctx, err)
	}
	return resp.StatusCode, resp.Body.Close()
}

// statusError converts a status to a reason. Agents often register before they publish, so that a
// 404 may pass; other client errors rarely do.
func statusError(resp *http.Response) *Error {
	e := &Error{
		Reason:        ReasonHTTPStatus,
		Status:        resp.StatusCode,
		AfterRedirect: resp.Request.Response != nil, // the redirect that led here
		RetryAfter:    min(httprule.RetryAfter(resp.Header.Get("Retry-After"), time.Now()), maxRetryAfter),
		Err:           fmt.Errorf("%s from %s", resp.Status, resp.Request.URL.Host),
	}
	switch code := resp.StatusCode; code {
	case http.StatusNotFound:
		e.Reason, e.Retry = ReasonNotFound, true
	case http.StatusGone:
		e.Reason = ReasonNotFound
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		e.Retry = true
	default:
		e.Retry = code >= 500
	}
	return e
}

// freshFor reads Cache-Control and how much of it passed already (Age).
func freshFor(h http.Header) time.Duration {
	for directive := range strings.SplitSeq(strings.ToLower(strings.Join(h.Values("Cache-Control"), ",")), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(directive), "=")
		switch name {
		case "no-store", "no-cache":
			return minFresh
		case "max-age":
			secs, err := strconv.ParseInt(strings.Trim(value, `"`), 10, 32)
			if err != nil {
				continue
			}
			age, _ := strconv.ParseInt(h.Get("Age"), 10, 32) // an invalid Age counts as none
			return min(max(time.Duration(secs-max(age, 0))*time.Second, minFresh), maxFresh)
		}
	}
	return 0
}

// readBody reads at most limit bytes, inflating gzip.
func readBody(resp *http.Response, limit int64) ([]byte, error) {
	switch encoding := strings.ToLower(resp.Header.Get("Content-Encoding")); encoding {
	case "", "identity":
	case "gzip", "x-gzip":
		return inflateBody(resp.Body, limit)
	default:
		return nil, final(ReasonUnsupportedEncoding, "Content-Encoding %.32q", encoding)
	}
	if resp.ContentLength > limit {
		return nil, final(ReasonTooLarge, "%d bytes announced, limit %d", resp.ContentLength, limit)
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if err != nil {
		return nil, err
	}
	return bounded(b, limit)
}

// inflateBody reads a compressed body of at most limit bytes. A longer one MUST NOT be cut, because
// gzip may end at any member, and the part would be taken for the whole.
func inflateBody(body io.Reader, limit int64) ([]byte, error) {
	source := &io.LimitedReader{R: body, N: limit + 1}
	b, err := inflate(source, limit)
	if source.N <= 0 && !isReason(err, ReasonRatio) {
		return nil, final(ReasonTooLarge, "more than %d bytes, compressed", limit)
	}
	return b, err
}
