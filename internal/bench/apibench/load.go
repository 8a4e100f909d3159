package apibench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"repute/internal/bench/harness"
)

// patience bounds one request. A refused request counts as long as this, so that refusing is never fast.
const patience = 30 * time.Second

// conn is one connection that sends requests one after the other. It costs the machine less than a client of net/http,
// which would take the processors from the server that is measured.
type conn struct {
	net.Conn
	in *bufio.Reader
	// headers are header lines of every request, each with its line end.
	headers string
}

// refusal is an answer with another status than 200.
type refusal struct{ text string }

// Error returns what the server said.
func (r *refusal) Error() string { return r.text }

// answers are how requests were answered.
type answers struct {
	times []float64 // milliseconds; patience for a request that was refused
	// refused counts those, and refusal is what one of them said.
	refused int
	refusal string
}

// add adds an answer that took a time, and returns err unless that is a refusal: an answer with another status than 200
// belongs to what is measured, and a broken connection ends the measurement.
func (a *answers) add(took time.Duration, err error) error {
	var no *refusal
	switch {
	case errors.As(err, &no):
		a.refused, a.refusal = a.refused+1, no.text
		took = patience
	case err != nil:
		return err
	}
	a.times = append(a.times, harness.Millis(took))
	return nil
}

// dial opens a connection.
func dial(ctx context.Context, address string) (*conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("dial: %w", err)
	}
	return &conn{Conn: c, in: bufio.NewReaderSize(c, 16<<10)}, nil
}

// get sends a request and reads its answer to the end; body is its size in bytes, as sent. An answer with another
// status than 200 is a *refusal.
func (c *conn) get(path string) (body int64, err error) { return c.send(http.MethodGet, path, "") }

// send is get with a method and a body of JSON; "" for none.
func (c *conn) send(method, path, body string) (size int64, err error) {
	return c.exchange(method, path, body, io.Discard)
}

// exchange is send; it writes the body of the answer, compressed where headers asked for that. The whole exchange is
// bounded by patience. The connection can be used again unless the error is another one than a *refusal.
func (c *conn) exchange(method, path, body string, answer io.Writer) (size int64, err error) {
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return 0, err
	}
	var head strings.Builder
	fmt.Fprintf(&head, "%s %s HTTP/1.1\r\nHost: %s\r\n%s", method, path, c.RemoteAddr(), c.headers)
	if body != "" {
		fmt.Fprintf(&head, "Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	head.WriteString("\r\n" + body)
	if _, err := io.WriteString(c.Conn, head.String()); err != nil {
		return 0, err
	}
	res, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(res.Body, 300))
		_, err := io.Copy(io.Discard, res.Body) // the next request follows on the connection
		return 0, errors.Join(err, &refusal{fmt.Sprintf("%s %.100s: status %d: %s", method, path, res.StatusCode,
			said)})
	}
	size, err = io.Copy(answer, res.Body)
	return size, err
}

// throughput sends the same request over several connections for a time, each as soon as the one before is answered,
// and returns the answers per second. The first failure of a connection is the error, a refusal too: a server that
// refuses under load has no throughput.
func throughput(ctx context.Context, address, path string, conns int,
	span time.Duration) (perSecond float64, err error) {
	var done atomic.Int64
	var all sync.WaitGroup
	failures := make(chan error, conns)
	start := time.Now()
	for range conns {
		c, err := dial(ctx, address)
		if err != nil {
			return 0, err
		}
		all.Go(func() {
			defer c.Close()
			for time.Since(start) < span && ctx.Err() == nil {
				if _, err := c.get(path); err != nil {
					failures <- err
					return
				}
				done.Add(1)
			}
		})
	}
	all.Wait()
	took := time.Since(start)
	close(failures)
	return float64(done.Load()) / took.Seconds(), errors.Join(<-failures, context.Cause(ctx))
}

// paced sends requests at a rate, whether or not earlier ones are answered, for a time or until ctx ends, and returns
// how long each took from when it was due. path returns the path of the nth request.
func paced(ctx context.Context, address string, path func(n int) string, rate int, span time.Duration) (a answers,
	err error) {
	const conns = 64 // more than answers that are under way, at rates and times that meet the targets
	type due struct {
		n  int
		at time.Time
	}
	// A request that waits longer than patience would be refused by its caller: the queue has no room for it.
	queue := make(chan due, rate*int(patience.Seconds()))
	var mu sync.Mutex
	var all sync.WaitGroup
	for range conns {
		c, e := dial(ctx, address)
		if e != nil {
			close(queue)
			return a, e
		}
		all.Go(func() {
			defer c.Close()
			for d := range queue {
				_, e := c.get(path(d.n))
				mu.Lock()
				e = a.add(time.Since(d.at), e)
				err = errors.Join(err, e)
				mu.Unlock()
				if e != nil {
					return
				}
			}
		})
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	start, sent := time.Now(), 0
	for time.Since(start) < span && ctx.Err() == nil {
		for ; sent < int(time.Since(start).Seconds()*float64(rate)); sent++ {
			select {
			case queue <- due{sent, start.Add(time.Duration(sent) * time.Second / time.Duration(rate))}:
			default: // the server is that far behind already
			}
		}
		<-tick.C
	}
	close(queue)
	all.Wait()
	return a, err
}

// each measures n requests one after the other on one connection, with a pause before each. send makes the n-th
// request, from 0 on; the pause is not counted.
func each(ctx context.Context, address string, n int, pause time.Duration,
	send func(c *conn, n int) error) (a answers, err error) {
	c, err := dial(ctx, address)
	if err != nil {
		return a, err
	}
	defer c.Close()
	for i := range n {
		select {
		case <-ctx.Done():
			return a, context.Cause(ctx)
		case <-time.After(pause):
		}
		start := time.Now()
		err := send(c, i)
		if err := a.add(time.Since(start), err); err != nil {
			return a, err
		}
	}
	return a, nil
}
