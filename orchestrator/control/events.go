package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"repute"
	"repute/internal/httpapi"
	"repute/store/rundb"
)

// Limits and intervals of streams.
const (
	pollEvery    = 250 * time.Millisecond
	heartbeat    = 15 * time.Second
	writeTimeout = 30 * time.Second // a reader that accepts no data for this long is disconnected
	eventPage    = 200
)

// streams counts the open streams by caller.
type streams struct {
	most, all int
	mu        sync.Mutex
	now       int
	callers   map[string]int
}

// enter counts a new stream, or returns an error if the caller or all callers have too many.
func (s *streams) enter(caller string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.callers == nil {
		s.callers = map[string]int{}
	}
	if s.callers[caller] >= s.most || s.now >= s.all {
		return fmt.Errorf("too many streams of events at once, at most %d per caller: %w", s.most, repute.ErrLimited)
	}
	s.now++
	s.callers[caller]++
	return nil
}

// leave frees the stream of a caller.
func (s *streams) leave(caller string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now--
	if s.callers[caller]--; s.callers[caller] == 0 {
		delete(s.callers, caller)
	}
}

// event is the data of one event of a stream.
type event struct {
	RunID string          `json:"runId"`
	Kind  string          `json:"kind"`
	Data  json.RawMessage `json:"data"`
	At    time.Time       `json:"at"`
}

// follow streams the events of a run after Last-Event-ID. The stream ends after run.finished. If no
// further event is possible the answer is 204, so that browsers do not reconnect.
func (c *Control) follow(e echo.Context) error {
	ctx := e.Request().Context()
	last := e.Request().Header.Get("Last-Event-ID")
	if last == "" {
		last = e.QueryParam("after")
	}
	after, err := number("Last-Event-ID", last)
	if err != nil {
		return err
	}
	run, err := c.run(ctx, e.Param("id"))
	if err != nil {
		return err
	}
	caller := httpapi.CallerOf(ctx)
	if err := c.streams.enter(caller); err != nil {
		return err
	}
	defer c.streams.leave(caller)
	s := stream{c: c, run: run, after: after, over: run.Status.Ended(), out: e.Response(),
		control: http.NewResponseController(e.Response())}
	if err := s.follow(ctx); err != nil && !s.begun {
		return err
	} else if err != nil && ctx.Err() == nil {
		c.log.WarnContext(ctx, "a stream of events was cut off", "run", run.ID, "error", err)
	}
	if !s.begun {
		return e.NoContent(http.StatusNoContent)
	}
	return nil
}

// stream is one caller's view of a run's events.
type stream struct {
	c       *Control
	run     repute.Run
	after   int64
	over    bool // the run had ended when last looked at
	begun   bool
	out     http.ResponseWriter
	control *http.ResponseController
}

// follow sends events until the run is over.
func (s *stream) follow(ctx context.Context) error {
	poll, beat := time.NewTicker(pollEvery), time.NewTicker(heartbeat)
	defer poll.Stop()
	defer beat.Stop()
	for {
		sent, err := s.send(ctx)
		if err != nil || !sent && s.over {
			return err
		}
		if sent {
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.c.o.Done:
			return nil
		case <-beat.C:
			if err := s.write(": still here\n\n"); err != nil {
				return err
			}
		case <-poll.C:
			if err := s.begin(); err != nil {
				return err
			}
		}
	}
}

// send writes the next events, if there are any.
func (s *stream) send(ctx context.Context) (sent bool, err error) {
	asking, cancel := context.WithTimeout(ctx, s.c.server.Limits.Timeout)
	defer cancel()
	list, err := rundb.Events(asking, s.c.db, s.run.Root, s.after, eventPage)
	if err != nil {
		return false, err
	}
	for _, ev := range list {
		if err := s.one(asking, ev); err != nil {
			return false, err
		}
		s.after = ev.Number
	}
	return len(list) > 0, nil
}

// one writes an event if it concerns the run, and reads the run again if the event may have ended
// it.
func (s *stream) one(ctx context.Context, ev repute.RunEvent) (err error) {
	if s.run.ID == s.run.Root || ev.Run == s.run.ID {
		b, err := json.Marshal(event{ev.Run, ev.Kind, ev.Data, ev.Time})
		if err != nil {
			return err
		}
		if err := s.write(fmt.Sprintf("id: %d\nevent: %s\ndata: %s\n\n", ev.Number, ev.Kind, b)); err != nil {
			return err
		}
	}
	// A run that is cancelled while it waits ends with its root run.
	if ev.Kind == "run.finished" || ev.Kind == "run.retried" {
		if s.run, err = rundb.Run(ctx, s.c.db, s.run.ID); err == nil {
			s.over = s.run.Status.Ended()
		}
	}
	return err
}

// begin sends the head of the answer, once.
func (s *stream) begin() error {
	if s.begun {
		return nil
	}
	return s.write("retry: 1000\n\n")
}

// write sends text of the stream, and the headers before the first text.
func (s *stream) write(text string) error {
	if !s.begun {
		s.begun = true
		h := s.out.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("Cache-Control", "no-store")
		h.Set("X-Accel-Buffering", "no") // proxies would buffer events otherwise
		s.out.WriteHeader(http.StatusOK)
	}
	// The server's own deadline is for answers that end.
	if err := s.control.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil &&
		!errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := s.out.Write([]byte(text)); err != nil {
		return err
	}
	return s.control.Flush()
}
