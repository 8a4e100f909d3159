package resolver

import (
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxRetryAfter caps what a server may ask for: it must not park a URI for ever.
const maxRetryAfter = 24 * time.Hour

// fetchWeb reads one document over http(s).
func (c *Client) fetchWeb(ctx context.Context, target string) (Document, error) {
	// Servers that speak several formats should send the document, not a page.
	resp, err := c.get(ctx, target, map[string]string{
		"Accept":          "application/json, */*;q=0.5",
		"Accept-Encoding": "gzip",
	})
	if err != nil {
		return Document{}, err
	}
	defer resp.Body.Close()
	body, err := readBody(resp, c.opts.MaxBytes)
	if err != nil {
		return Document{}, err
	}
	mediaType, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil {
		mediaType = "" // a malformed type is as good as none: the bytes decide
	}
	return Document{
		Bytes:        body,
		MediaType:    storable(mediaType, maxShortText),
		Source:       SourceHTTPS,
		FinalURL:     storable(resp.Request.URL.String(), maxURLText),
		ETag:         validator(resp.Header.Get("ETag")),
		LastModified: validator(resp.Header.Get("Last-Modified")),
	}, nil
}

// get sends a guarded GET and returns only answers with status 200.
func (c *Client) get(ctx context.Context, target string, header map[string]string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return nil, final(ReasonBadURL, "%w", err)
	}
	req.Header.Set("User-Agent", c.opts.UserAgent)
	for name, value := range header {
		req.Header.Set(name, value)
	}
	resp, err := c.guard.Client(c.opts.Timeout).Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		return nil, statusError(resp)
	}
	return resp, nil
}

// statusError turns an unwelcome status into a reason. Agents often register
// before they publish, so a 404 may pass; other client errors seldom do.
func statusError(resp *http.Response) *Error {
	e := &Error{
		Reason:     ReasonHTTPStatus,
		Status:     resp.StatusCode,
		RetryAfter: retryAfter(resp.Header.Get("Retry-After"), time.Now()),
		Err:        fmt.Errorf("%s from %s", resp.Status, resp.Request.URL.Host),
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

// retryAfter reads seconds or a date.
func retryAfter(value string, now time.Time) time.Duration {
	var wait time.Duration
	if secs, err := strconv.ParseInt(strings.TrimSpace(value), 10, 32); err == nil {
		wait = time.Duration(secs) * time.Second
	} else if at, err := http.ParseTime(value); err == nil {
		wait = at.Sub(now)
	}
	return min(max(wait, 0), maxRetryAfter)
}

// readBody reads at most limit bytes, inflating gzip.
func readBody(resp *http.Response, limit int64) ([]byte, error) {
	switch encoding := strings.ToLower(resp.Header.Get("Content-Encoding")); encoding {
	case "", "identity":
	case "gzip", "x-gzip":
		return inflate(io.LimitReader(resp.Body, limit+1), limit)
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
