package jsonrpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"time"

	"github.com/ethereum/go-ethereum/rpc"
)

// Client sends JSON-RPC over HTTP and reads the answers while they
// arrive, so that memory holds what was read and not the text of it.
type Client struct {
	client *http.Client
	url    string
	header http.Header
	max    int64 // bytes of one answer, after decompression
	turns  turns
}

// Bounds of what answers may take in memory. A process MUST stay below 250 MB however
// much a node answers.
const (
	// largeAnswer is from where on an answer waits for its turn to be read further:
	// requests run side by side, and a node may answer all of them beyond measure.
	largeAnswer = 4 << 20
	// largeAtOnce is how many large answers are read at the same time.
	largeAtOnce = 2
	// maxToken bounds the text that is held in one piece: one value of an answer, or a
	// result that comes before the id that tells what it is. An event's data takes two
	// characters a byte, and no block has gas for an event of 4 MiB.
	maxToken = 8 << 20
	// largeToken is from where on such a text waits for its turn, one at a time: while it
	// is read it is in memory several times.
	largeToken = 1 << 20
)

// turns are waited for by answers that take much memory. An answer takes at most one of
// them last, the token's, and never waits for another one then.
type turns struct{ large, token chan struct{} }

// NewClient makes one with its own connections. Redirects are not
// followed: the path, which may hold a key, would reach another host.
func NewClient(url string, headers http.Header, maxBytes int64) *Client {
	t := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 16,
		IdleConnTimeout: 90 * time.Second, TLSHandshakeTimeout: 10 * time.Second, ReadBufferSize: 64 << 10}
	header := http.Header{}
	for name, values := range headers {
		header[name] = values
	}
	header.Set("Content-Type", "application/json")
	header.Set("Accept", "application/json")
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{&http.Client{Transport: t, CheckRedirect: stay}, url, header, maxBytes,
		turns{make(chan struct{}, largeAtOnce), make(chan struct{}, 1)}}
}

// Close closes idle connections.
func (t *Client) Close() { t.client.CloseIdleConnections() }

// Send exchanges one batch and tells how many bytes the answer had. A body that
// is JSON-RPC counts whatever the status: endpoints refuse calls under 400, 413,
// 429 and 503 too.
func (t *Client) Send(ctx context.Context, batch []rpc.BatchElem) (int, error) {
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
	body := &boundedBody{from: resp.Body, left: t.max, max: t.max, turns: t.turns, over: ctx.Done()}
	defer body.release()
	if resp.ContentLength > t.max {
		body.left = headBytes // enough to quote
	}
	err = readAnswers(body, batch)
	return int(body.read), t.judge(resp, body, batch, err)
}

// judge decides what an HTTP response means, given what its body said.
func (t *Client) judge(resp *http.Response, body *boundedBody, batch []rpc.BatchElem, err error) error {
	retry := RetryAfter(resp.Header.Get("Retry-After"), time.Now())
	var said *Refusal
	var bad *AnswerError
	switch ok := resp.StatusCode/100 == 2; {
	case errors.As(err, &said):
		said.Status, said.Retry = resp.StatusCode, retry
	case errors.As(err, &bad) && !ok:
		return &StatusError{resp.StatusCode, retry, body.excerpt()}
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
		var said *Refusal
		if errors.As(e.Error, &said) {
			said.Status, said.Retry = status, retry
		}
	}
}

// StatusError is an HTTP response without JSON-RPC in it.
type StatusError struct {
	Code  int
	Retry time.Duration // of Retry-After, 0 for none
	Body  string        // its beginning
}

// Error names status and beginning of the body.
func (e *StatusError) Error() string {
	text := fmt.Sprintf("HTTP status %d %s", e.Code, http.StatusText(e.Code))
	if e.Body != "" {
		text += ": " + e.Body
	}
	return text
}

// RetryAfter reads the header's seconds, however many, or date.
func RetryAfter(value string, now time.Time) time.Duration {
	seconds, err := strconv.ParseUint(value, 10, 64)
	if err == nil || errors.Is(err, strconv.ErrRange) {
		return time.Duration(min(seconds, maxBackoff)) * time.Second
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
	parsed    func() int64 // how many bytes the reader is done with; nil: all
	turns     turns
	over      <-chan struct{} // closed when the request ends, and with it the wait for a turn
	large     bool            // has the turn of a large answer
	token     bool            // has the turn of a large token
}

// headBytes are kept of a body, for errors that quote it.
const headBytes = 800

// await waits for the turn of what is large, if it is. What is held in one piece must
// not exceed maxToken.
func (b *boundedBody) await() (err error) {
	held := int64(0)
	if b.parsed != nil {
		held = b.read - b.parsed()
	}
	switch {
	case held > maxToken:
		return &tooLargeError{maxToken}
	case held > largeToken && !b.token:
		if b.token, err = b.turn(b.turns.token); err == nil {
			// The copies of the text before are garbage that would count as well.
			runtime.GC()
		}
	case b.read >= largeAnswer && !b.large && !b.token:
		b.large, err = b.turn(b.turns.large)
	}
	return err
}

// turn waits for a place in free and takes it; an error when the request ends before.
func (b *boundedBody) turn(free chan struct{}) (bool, error) {
	select {
	case free <- struct{}{}:
		return true, nil
	case <-b.over:
		return false, context.DeadlineExceeded
	}
}

// release gives the turns back.
func (b *boundedBody) release() {
	if b.large {
		<-b.turns.large
	}
	if b.token {
		<-b.turns.token
	}
}

// Read fails once more than max bytes were to be read, or more than maxToken held.
func (b *boundedBody) Read(p []byte) (int, error) {
	if err := b.await(); err != nil {
		return 0, err
	}
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

// tooLargeError is an answer above Options.MaxBytes, or a text in it above maxToken.
type tooLargeError struct{ max int64 }

// Error names the limit.
func (e *tooLargeError) Error() string {
	return fmt.Sprintf("answer larger than the %d bytes that are read", e.max)
}
