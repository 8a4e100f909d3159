package control

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"repute"
	"repute/internal/httpapi"
	"repute/store/rundb"
)

// Limits and intervals of streams.
const (
	pollEvery = 250 * time.Millisecond
	eventPage = 200
)

// event is the data of one event of a stream.
type event struct {
	RunID string          `json:"runId"`
	Kind  string          `json:"kind"`
	Data  json.RawMessage `json:"data"`
	At    time.Time       `json:"at"`
}

// follow streams the events of a run after Last-Event-ID. The stream ends after run.finished. If no further event
// is possible the answer is 204, so that browsers do not reconnect. Until the first event or poll nothing is
// written: an error before that is an answer with its status, an error after it only cuts the stream, and the
// client goes on from its last event.
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
	if err := c.streams.Enter(caller); err != nil {
		return err
	}
	defer c.streams.Leave(caller)
	s := stream{c: c, run: run, after: after, over: run.Status.Ended(), out: httpapi.NewEventStream(e.Response())}
	if err := s.follow(ctx); err != nil && !s.out.Begun() {
		return err
	} else if err != nil && ctx.Err() == nil {
		c.log.WarnContext(ctx, "a stream of events was cut off", "run", run.ID, "error", err)
	}
	if !s.out.Begun() {
		return e.NoContent(http.StatusNoContent)
	}
	return nil
}

// stream is one caller's view of a run's events.
type stream struct {
	c     *Control
	run   repute.Run
	after int64
	over  bool // the run had ended when last looked at
	out   *httpapi.EventStream
}

// follow sends events until the run is over.
func (s *stream) follow(ctx context.Context) error {
	poll, beat := time.NewTicker(pollEvery), time.NewTicker(httpapi.Heartbeat)
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
			if err := s.out.Beat(); err != nil {
				return err
			}
		case <-poll.C:
			if err := s.out.Begin(); err != nil {
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

// one writes an event if it concerns the run, and reads the run again if the event may have ended it. Events are
// numbered by the root run, whose stream has those of all runs below it.
func (s *stream) one(ctx context.Context, ev repute.RunEvent) (err error) {
	if s.run.ID == s.run.Root || ev.Run == s.run.ID {
		b, err := json.Marshal(event{ev.Run, ev.Kind, ev.Data, ev.Time})
		if err != nil {
			return err
		}
		if err := s.out.Send(strconv.FormatInt(ev.Number, 10), ev.Kind, b); err != nil {
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
