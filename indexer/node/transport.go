package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/ethereum/go-ethereum/rpc"
)

// httpTransport sends JSON-RPC over HTTP and reads the answers while they
// arrive, so that memory holds what was read and not the text of it.
type httpTransport struct {
	client *http.Client
	url    string
	header http.Header
	max    int64 // bytes of one answer, after decompression
}

// newHTTPTransport makes one with its own connections. Redirects are not
// followed: the path, which may hold a key, would reach another host.
func newHTTPTransport(url string, o Options) *httpTransport {
	t := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 16,
		IdleConnTimeout: 90 * time.Second, TLSHandshakeTimeout: 10 * time.Second, ReadBufferSize: 64 << 10}
	header := http.Header{}
	for name, values := range o.Header {
		header[name] = values
	}
	header.Set("Content-Type", "application/json")
	header.Set("Accept", "application/json")
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &httpTransport{&http.Client{Transport: t, CheckRedirect: stay}, url, header, o.MaxBytes}
}

func (t *httpTransport) close() { t.client.CloseIdleConnections() }

// send exchanges one batch and tells how many bytes the answer had. A body that
// is JSON-RPC counts whatever the status: endpoints refuse calls under 400, 413,
// 429 and 503 too.
func (t *httpTransport) send(ctx context.Context, batch []rpc.BatchElem) (int, error) {
	raw, err := encodeCalls(batch)
	if err != nil {
		return 0, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url, bytes.NewReader(raw))
	if err != nil {
		return 0, err
	}
	req.Header = t.header
	resp, err := t.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	body := &boundedBody{from: resp.Body, left: t.max, max: t.max}
	err = readAnswers(body, batch)
	return int(body.read), t.judge(resp, body, batch, err)
}

// judge decides what an HTTP response means, given what its body said.
func (t *httpTransport) judge(resp *http.Response, body *boundedBody, batch []rpc.BatchElem, err error) error {
	retry := retryAfter(resp.Header.Get("Retry-After"), time.Now())
	var said *rpcRefusal
	var bad *AnswerError
	switch ok := resp.StatusCode/100 == 2; {
	case errors.As(err, &said):
		said.status, said.retry = resp.StatusCode, retry
	case errors.As(err, &bad) && !ok:
		return &statusError{resp.StatusCode, retry, body.excerpt()}
	case errors.As(err, &bad):
		return &AnswerError{bad.What + ", in: " + body.excerpt()}
	case err == nil:
		mark(batch, resp.StatusCode, retry)
	}
	return err
}

// mark tells the refusals of single calls what HTTP said.
func mark(batch []rpc.BatchElem, status int, retry time.Duration) {
	for _, e := range batch {
		var said *rpcRefusal
		if errors.As(e.Error, &said) {
			said.status, said.retry = status, retry
		}
	}
}

// statusError is an HTTP response without JSON-RPC in it.
type statusError struct {
	code  int
	retry time.Duration // of Retry-After, 0 for none
	body  string        // its beginning
}

// Error names status and beginning of the body.
func (e *statusError) Error() string {
	text := fmt.Sprintf("HTTP status %d %s", e.code, http.StatusText(e.code))
	if e.body != "" {
		text += ": " + e.body
	}
	return text
}

// retryAfter reads the header's seconds or date.
func retryAfter(value string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// boundedBody reads at most max bytes, counts them and keeps the first ones for
// error messages.
type boundedBody struct {
	from      io.Reader
	read      int64
	left, max int64
	head      []byte
}

// headBytes are kept of a body.
const headBytes = 4 * maxNodeText

// Read fails once more than max bytes were to be read.
func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		// One byte more than allowed, or the end, which is none.
		var one [1]byte
		if n, err := b.from.Read(one[:]); n == 0 {
			return 0, err
		}
		return 0, &tooLargeError{b.max}
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.from.Read(p)
	b.left -= int64(n)
	b.read += int64(n)
	if missing := headBytes - len(b.head); missing > 0 {
		b.head = append(b.head, p[:min(n, missing)]...)
	}
	return n, err
}

// excerpt is the beginning of the body, longer than what errors show so that
// keys are blanked before it is cut.
func (b *boundedBody) excerpt() string {
	for len(b.head) < headBytes && b.left > 0 {
		if _, err := b.Read(make([]byte, headBytes)); err != nil {
			break
		}
	}
	return string(bytes.TrimSpace(b.head))
}

// tooLargeError is an answer above Options.MaxBytes.
type tooLargeError struct{ max int64 }

// Error names the limit.
func (e *tooLargeError) Error() string { return fmt.Sprintf("answer larger than %d bytes", e.max) }
