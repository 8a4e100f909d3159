package resolver

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"
)

const (
	// A body with fewer than minProgress bytes within paceWindow occupies a worker without use.
	paceWindow  = 5 * time.Second
	minProgress = 512
)

// pacedBody stops reading a body that arrives very slowly. The limit on the whole exchange alone
// would let a server occupy a worker for all of it, repeatedly.
type pacedBody struct {
	io.ReadCloser
	window time.Duration
	cancel context.CancelFunc
	timer  *time.Timer
	got    atomic.Int64 // bytes in this window
	slow   atomic.Bool
}

// newPacedBody watches body; cancel ends its request.
func newPacedBody(body io.ReadCloser, window time.Duration, cancel context.CancelFunc) *pacedBody {
	p := &pacedBody{ReadCloser: body, window: window, cancel: cancel}
	p.timer = time.AfterFunc(time.Hour, p.look)
	p.timer.Reset(window) // now that look can see the timer
	return p
}

// look ends the request if too few bytes arrived in the window.
func (p *pacedBody) look() {
	if p.got.Swap(0) >= minProgress {
		p.timer.Reset(p.window)
		return
	}
	p.slow.Store(true)
	p.cancel()
}

// Read counts, and names the reason when the body was given up.
func (p *pacedBody) Read(b []byte) (int, error) {
	n, err := p.ReadCloser.Read(b)
	p.got.Add(int64(n))
	if err != nil && !errors.Is(err, io.EOF) && p.slow.Load() {
		err = passing(ReasonTooSlow, "fewer than %d bytes in %s", minProgress, p.window)
	}
	return n, err
}

// Close ends the watch and the request.
func (p *pacedBody) Close() error {
	p.timer.Stop()
	p.cancel()
	return p.ReadCloser.Close()
}
