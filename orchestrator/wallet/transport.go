package wallet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/ethereum/go-ethereum/rpc"
)

// maxBody bounds an answer of an endpoint or a signer, in bytes after decompression: a block
// with its transactions is the largest that is asked for.
const maxBody = 64 << 20

// dialRPC makes a client of an endpoint or a signer. It follows no redirect, which would show
// the URL's key and what is to be signed to another host, and reads no endless answer.
func dialRPC(ctx context.Context, url string) (*rpc.Client, error) {
	t := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 16, IdleConnTimeout: 90 * time.Second, TLSHandshakeTimeout: 10 * time.Second}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return rpc.DialOptions(ctx, url, rpc.WithHTTPClient(&http.Client{Transport: bounded{t}, CheckRedirect: stay}))
}

// bounded cuts answers off.
type bounded struct{ next http.RoundTripper }

// RoundTrip sends a request.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	resp.Body = &boundedBody{resp.Body, maxBody}
	return resp, nil
}

// errTooLarge says that an answer was longer than it may be.
var errTooLarge = errors.New("answer larger than it may be")

// boundedBody fails once more than left bytes were to be read.
type boundedBody struct {
	io.ReadCloser
	left int64
}

// Read reads no more than is left.
func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("%w: %d bytes", errTooLarge, int64(maxBody))
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}
