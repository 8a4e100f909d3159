package apibench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"
)

// settle is how long the process rests before its memory is read, in which buffers of requests are freed.
const settle = 2 * time.Second

// streams are readers of the change feed that wait for a change.
type streams struct {
	all []net.Conn
	// events are the times at which the first stream had an event. The others are read by nobody: what the server sends
	// them fits the buffers of their connections.
	events chan time.Time
}

// openStreams opens streams of the change feed, each as a caller of its own, because one caller has few.
// The callers are told apart by X-Forwarded-For, which the product believes from this machine. All requests are sent
// before the first answer is read.
func openStreams(ctx context.Context, address string, n int) (s *streams, err error) {
	s = &streams{}
	for i := range n {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("stream %d: %w", i, err), s.close())
		}
		s.all = append(s.all, c)
		_, err = fmt.Fprintf(c,
			"GET /changes HTTP/1.1\r\nHost: %s\r\nAccept: text/event-stream\r\nX-Forwarded-For: 10.%d.%d.%d\r\n\r\n",
			address, 1+i>>16, i>>8&255, i&255)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("stream %d: %w", i, err), s.close())
		}
	}
	for i, c := range s.all { // the server answers them side by side
		//nolint:bodyclose // closing the connection ends it
		res, err := http.ReadResponse(bufio.NewReaderSize(c, 4096), nil)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("stream %d: %w", i, err), s.close())
		}
		if res.StatusCode != http.StatusOK {
			return nil, errors.Join(fmt.Errorf("stream %d: status %d", i, res.StatusCode), s.close())
		}
		if i == 0 {
			s.events = make(chan time.Time, 10_000)
			go note(bufio.NewScanner(res.Body), s.events)
		}
	}
	return s, nil
}

// note notes when a stream has an event, until it ends, and then closes events.
func note(lines *bufio.Scanner, events chan<- time.Time) {
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "data:") {
			events <- time.Now()
		}
	}
	close(events)
}

// await returns when the first stream had its next event.
func (s *streams) await(ctx context.Context) (time.Time, error) {
	select {
	case at, isOpen := <-s.events:
		if !isOpen {
			return at, errors.New("the stream ended")
		}
		return at, nil
	case <-time.After(patience):
		return time.Time{}, errors.New("no change came")
	case <-ctx.Done():
		return time.Time{}, context.Cause(ctx)
	}
}

// drop forgets the events that came until now: the other changes of a block whose first one was measured.
func (s *streams) drop() {
	for len(s.events) > 0 {
		<-s.events
	}
}

// close ends the streams.
func (s *streams) close() (err error) {
	for _, c := range s.all {
		err = errors.Join(err, c.Close())
	}
	return err
}
