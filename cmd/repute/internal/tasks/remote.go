package tasks

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"repute"
	"repute/cmd/repute/internal/apiclient"
	"repute/cmd/repute/internal/cli"
	"repute/orchestrator/control"
)

// remoteClient calls an orchestrator over HTTP. Without a URL commands use the configured database.
type remoteClient struct{ apiclient.Client }

// taskPath returns the path of a task or of an action on it.
func taskPath(id, act string) string { return "/v1/tasks/" + url.PathEscape(id) + act }

// runPath returns the path of a run or of a part of it.
func runPath(id, act string) string { return "/v1/runs/" + url.PathEscape(id) + act }

// rootRun returns the root run of a task; id may also be a run's. An id that is no task's is taken for a run's without
// asking: the request that follows says when it is neither.
func (e *remoteClient) rootRun(ctx context.Context, id string) (string, error) {
	var t control.Task
	err := e.Call(ctx, http.MethodGet, taskPath(id, ""), nil, &t)
	if errors.Is(err, repute.ErrNotFound) {
		return id, nil
	}
	return t.RunID, err
}

// waitingRun returns the run of a task that waits for an approval; id may also be a run's. Of several the last one is
// taken: the runs above it wait for it.
func (e *remoteClient) waitingRun(ctx context.Context, id string) (string, error) {
	var t control.Task
	err := e.Call(ctx, http.MethodGet, taskPath(id, ""), nil, &t)
	if errors.Is(err, repute.ErrNotFound) || err == nil && len(t.Runs) == 0 {
		return id, nil
	}
	for _, r := range t.Runs {
		if r.Awaiting != "" {
			id = r.ID
		}
	}
	if id == t.ID {
		id = t.RunID
	}
	return id, err
}

// approve answers the open approval of a run or of a task's run. An answer names its subject, so that it cannot approve
// anything else if the run has continued since the caller looked.
func (e *remoteClient) approve(ctx context.Context, id string, a control.ApprovalAnswer) error {
	run, err := e.waitingRun(ctx, id)
	if err != nil {
		return err
	}
	return e.Call(ctx, http.MethodPost, runPath(run, "/approval"), a, nil)
}

// askRemote prints the open approvals of a run or of a task's run.
func askRemote(ctx context.Context, p *cli.Program, e *remoteClient, id string) error {
	id, err := e.waitingRun(ctx, id)
	if err != nil {
		return err
	}
	var run control.Run
	if err := e.Call(ctx, http.MethodGet, runPath(id, ""), nil, &run); err != nil {
		return err
	}
	return ask(p, id, run.Awaited)
}

// watchRemote prints events until the run of a task has ended, then its result. The stream ends when the run ends, and
// also when a proxy or the server cuts it off. The run's status tells which: it is read after the stream, so that all
// events of an ended run were printed before its result.
func watchRemote(ctx context.Context, p *cli.Program, e *remoteClient, task string) error {
	var t control.Task
	if err := e.Call(ctx, http.MethodGet, taskPath(task, ""), nil, &t); err != nil {
		return err
	}
	for after := int64(0); ; {
		var err error
		if after, err = events(ctx, p, e, t.RunID, after); err != nil {
			return err
		}
		var run control.Run
		if err := e.Call(ctx, http.MethodGet, runPath(t.RunID, ""), nil, &run); err != nil {
			return err
		}
		if run.Status.Ended() {
			return ended(p, run)
		}
		select { // the stream was cut off
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(watchEvery):
		}
	}
}

// events prints a stream until it ends and returns the number of the last event. The format is that of server-sent
// events (HTML Living Standard, section 9.2), of which only the fields id and data are used, each on one line. An event
// counts as printed with its data line: what was cut off before that line is sent again.
func events(ctx context.Context, p *cli.Program, e *remoteClient, run string, after int64) (int64, error) {
	req, err := e.Request(ctx, http.MethodGet, runPath(run, "/events?after="+strconv.FormatInt(after, 10)), nil)
	if err != nil {
		return after, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return after, fmt.Errorf("%w: %w", repute.ErrUnavailable, err)
	}
	defer res.Body.Close()
	if res.StatusCode >= 300 {
		text, _ := io.ReadAll(io.LimitReader(res.Body, 64<<10))
		return after, apiclient.Refusal(res.StatusCode, text)
	}
	lines, number := bufio.NewScanner(res.Body), after
	lines.Buffer(nil, maxEvent)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		var ev repute.RunEvent
		switch name {
		case "id":
			number, _ = strconv.ParseInt(value, 10, 64)
		case "data":
			if ev, err = readEvent(number, value); err == nil {
				err = showEvent(p, run, ev)
			}
			after = number
		}
		if err != nil {
			return after, err
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) { // asked again it would come again
		return after, repute.Invalid("orchestrator", fmt.Sprintf("sends an event of more than %d bytes", maxEvent),
			"an orchestrator of the same version")
	}
	return after, ctx.Err() // the caller reconnects after an interrupted stream
}

// maxEvent bounds one event of a stream, in bytes.
const maxEvent = 4 << 20

// readEvent decodes one event of the stream. The error is repute.ErrInvalid, which ends the command: to ask again would
// give the same bytes.
func readEvent(number int64, text string) (repute.RunEvent, error) {
	var said struct {
		RunID string          `json:"runId"`
		Kind  string          `json:"kind"`
		Data  json.RawMessage `json:"data"`
		At    time.Time       `json:"at"`
	}
	if err := json.Unmarshal([]byte(text), &said); err != nil {
		return repute.RunEvent{}, repute.Invalid("orchestrator", "sends events that cannot be read",
			"an orchestrator of the same version")
	}
	return repute.RunEvent{Number: number, Run: said.RunID, Kind: said.Kind, Data: said.Data, Time: said.At}, nil
}
