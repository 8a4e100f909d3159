package jsonrpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"time"

	"github.com/ethereum/go-ethereum/rpc"

	"repute/internal/httprule"
)

// Client sends JSON-RPC over HTTP and decodes answers while they arrive, so that only decoded
// values are in memory and not the text.
type Client struct {
	client *http.Client
	url    string
	header http.Header
	max    int64 // bytes of one answer, after decompression
	slots  slots
}

// Bounds for the memory that answers may use. A process MUST stay below 250 MB whatever a node
// answers.
const (
	// largeAnswer is the size in bytes from which an answer needs a slot to be read further:
	// requests run concurrently, and a node may send an oversized answer to each of them.
	largeAnswer = 4 << 20
	// largeAtOnce is the number of slots for large answers.
	largeAtOnce = 2
	// maxToken bounds a text that is in memory as a whole: one value of an answer, or a result that
	// was sent before its id. Data of an event take two characters per byte, and no block has
	// enough gas for an event of 4 MiB.
	maxToken = 8 << 20
	// largeToken is the size in bytes from which such a text needs the only slot for large texts:
	// it is in memory several times while it is read.
	largeToken = 1 << 20
)

// slots are the slots for answers that need much memory. An answer acquires the slot of a large
// token last and then waits for no other one, so that there is no deadlock.
type slots struct{ large, token chan struct{} }

// NewClient returns a client with its own connections. Redirects are not followed, because they
// would send the path, which may contain a key, to another host.
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
		slots{make(chan struct{}, largeAtOnce), make(chan struct{}, 1)}}
}

// Close closes idle connections.
func (t *Client) Close() { t.client.CloseIdleConnections() }

// Send exchanges one batch and returns the size of the answer in bytes. A body with JSON-RPC counts
// whatever the HTTP status is: endpoints also refuse calls with 400, 413, 429 and 503.
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
	body := &boundedBody{from: resp.Body, left: t.max, max: t.max, slots: t.slots, over: ctx.Done()}
	defer body.release()
	if resp.ContentLength > t.max {
		body.left = headBytes // enough to quote
	}
	err = readAnswers(body, batch)
	return int(body.read), t.judge(resp, body, batch, err)
}

// judge decides what an HTTP response means, given the error of decoding its body.
func (t *Client) judge(resp *http.Response, body *boundedBody, batch []rpc.BatchElem, err error) error {
	retry := min(httprule.RetryAfter(resp.Header.Get("Retry-After"), time.Now()), maxBackoff*time.Second)
	var refusal *Refusal
	var bad *AnswerError
	switch ok := resp.StatusCode/100 == 2; {
	case errors.As(err, &refusal):
		refusal.Status, refusal.Retry = resp.StatusCode, retry
	case errors.As(err, &bad) && !ok:
		return &StatusError{resp.StatusCode, retry, body.excerpt()}
	case errors.As(err, &bad):
		return &AnswerError{bad.What + ", in: " + body.excerpt()}
	case err == nil:
		mark(batch, resp.StatusCode, retry)
	}
	return err
}

// mark adds the HTTP status and Retry-After to the refusals of single calls.
func mark(batch []rpc.BatchElem, status int, retry time.Duration) {
	for _, e := range batch {
		var refusal *Refusal
		if errors.As(e.Error, &refusal) {
			refusal.Status, refusal.Retry = status, retry
		}
	}
}

// StatusError is an HTTP response without JSON-RPC.
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

// boundedBody reads at most max bytes, counts them and keeps the first ones for
// error messages.
type boundedBody struct {
	from      io.Reader
	read      int64
	left, max int64
	head      []byte
	parsed    func() int64 // how many bytes the reader is done with; nil: all
	slots     slots
	over      <-chan struct{} // closed when the request ends, which ends the wait for a slot
	large     bool            // has the slot of a large answer
	token     bool            // has the slot of a large token
}

// headBytes is how many bytes of a body are kept for errors that quote it.
const headBytes = 800

// await waits for a slot if the answer or the token is large. It refuses a token above maxToken.
func (b *boundedBody) await() (err error) {
	held := int64(0)
	if b.parsed != nil {
		held = b.read - b.parsed()
	}
	switch {
	case held > maxToken:
		return tooLarge(maxToken)
	case held > largeToken && !b.token:
		if b.token, err = b.acquire(b.slots.token); err == nil {
			// The copies of the text before are garbage that would count as well.
			runtime.GC()
		}
	case b.read >= largeAnswer && !b.large && !b.token:
		b.large, err = b.acquire(b.slots.large)
	}
	return err
}

// acquire waits for a free slot and reports whether it acquired one; an error if the request ends
// before.
func (b *boundedBody) acquire(free chan struct{}) (bool, error) {
	select {
	case free <- struct{}{}:
		return true, nil
	case <-b.over:
		return false, context.DeadlineExceeded
	}
}

// release frees the slots.
func (b *boundedBody) release() {
	if b.large {
		<-b.slots.large
	}
	if b.token {
		<-b.slots.token
	}
}

// Read fails once more than max bytes were to be read, or more than maxToken held.
func (b *boundedBody) Read(p []byte) (int, error) {
	if err := b.await(); err != nil {
		return 0, err
	}
	if b.left <= 0 {
		// The buffer has room for one byte more than allowed, or for the end of the body.
		var one [1]byte
		if n, err := b.from.Read(one[:]); n == 0 {
			return 0, err
		}
		return 0, tooLarge(b.max)
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

// excerpt returns the beginning of the body. It is longer than the part that errors show, so that
// keys are removed before the text is cut.
func (b *boundedBody) excerpt() string {
	for len(b.head) < headBytes && b.left > 0 {
		if _, err := b.Read(make([]byte, headBytes)); err != nil {
			break
		}
	}
	return string(bytes.TrimSpace(b.head))
}

// tooLarge returns the error for an answer above the limit of the client, or a text in it above maxToken. It is
// a FaultRange.
func tooLarge(most int64) error {
	return fmt.Errorf("answer larger than the %d bytes that are read", most)
}
