package tasks

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"repute"
	"repute/cmd/repute/internal/cli"
	"repute/orchestrator/control"
)

// remoteClient calls an orchestrator over HTTP. Without a URL commands use the configured database.
type remoteClient struct{ url, token string }

// flags adds the flags --orchestrator and --token.
func (e *remoteClient) flags(f *pflag.FlagSet) {
	f.StringVar(&e.url, "orchestrator", "", "URL of the orchestrator to ask, in place of a database")
	f.StringVar(&e.token, "token", "", "bearer token, one of orchestrator.tokens (REPUTE_TOKEN)")
}

// request returns a request to a route with the token and a JSON body.
func (e *remoteClient) request(ctx context.Context, method, path string, body any) (*http.Request, error) {
	var text io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, repute.Invalid("input", "is no JSON", "any JSON value")
		}
		text = bytes.NewReader(b)
	}
	u, err := url.Parse(e.url)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, repute.Invalid("orchestrator", "is no URL", "e.g. http://127.0.0.1:8080")
	}
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(e.url, "/")+path, text)
	if err != nil {
		return nil, repute.Invalid("orchestrator", "is no URL", "e.g. http://127.0.0.1:8080")
	}
	req.Header.Set("Content-Type", "application/json")
	if token := cmp.Or(e.token, os.Getenv("REPUTE_TOKEN")); token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return req, nil
}

// call requests a route and decodes its answer into a value, unless that is nil.
func (e *remoteClient) call(ctx context.Context, method, path string, body, into any) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	req, err := e.request(ctx, method, path, body)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("orchestrator: does not answer (the URL of repute serve in --orchestrator): %w: %w",
			repute.ErrUnavailable, err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, 16<<20))
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", repute.ErrUnavailable, err)
	case res.StatusCode >= 300:
		return refusal(res.StatusCode, answer)
	case into == nil:
		return nil
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return repute.Invalid("orchestrator", "answers something else than an orchestrator does",
			"the URL of repute serve, without a path")
	}
	return nil
}

// refusal returns the error in an answer of an orchestrator.
func refusal(status int, answer []byte) error {
	var said struct{ Detail, Hint string }
	_ = json.Unmarshal(answer, &said) // for another answer the status is enough
	if status == http.StatusUnauthorized {
		return repute.Invalid("token", "is missing or not known to the orchestrator",
			"--token, or REPUTE_TOKEN in the environment: one of its orchestrator.tokens")
	}
	reason := cli.Visible(cmp.Or(said.Detail, http.StatusText(status)))
	switch {
	case status == http.StatusNotFound && said.Hint != "":
		return fmt.Errorf("%s: %w (%s)", reason, repute.ErrNotFound, cli.Visible(said.Hint))
	case status == http.StatusNotFound:
		return fmt.Errorf("%s: %w", reason, repute.ErrNotFound)
	case status == http.StatusConflict:
		return repute.Conflict("%s", reason)
	case status >= 500 || status == http.StatusTooManyRequests:
		return fmt.Errorf("%s: %w", reason, repute.ErrUnavailable)
	}
	return repute.Invalid("orchestrator", "refuses: "+reason,
		cli.Visible(cmp.Or(said.Hint, fmt.Sprintf("it answered %d", status))))
}

// taskPath returns the path of a task or of an action on it.
func taskPath(id, act string) string { return "/v1/tasks/" + url.PathEscape(id) + act }

// runPath returns the path of a run or of a part of it.
func runPath(id, act string) string { return "/v1/runs/" + url.PathEscape(id) + act }

// rootRun returns the root run of a task; id may also be a run's.
func (e *remoteClient) rootRun(ctx context.Context, id string) (string, error) {
	var t control.Task
	err := e.call(ctx, http.MethodGet, taskPath(id, ""), nil, &t)
	if errors.Is(err, repute.ErrNotFound) {
		return id, nil
	}
	return t.RunID, err
}

// waitingRun returns the run of a task that waits for an approval; id may also be a run's.
func (e *remoteClient) waitingRun(ctx context.Context, id string) (string, error) {
	var t control.Task
	err := e.call(ctx, http.MethodGet, taskPath(id, ""), nil, &t)
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

// approve answers the open approval of a run or of a task's run.
func (e *remoteClient) approve(ctx context.Context, id string, a control.ApprovalAnswer) error {
	run, err := e.waitingRun(ctx, id)
	if err != nil {
		return err
	}
	return e.call(ctx, http.MethodPost, runPath(run, "/approval"), a, nil)
}

// askRemote prints the open approvals of a run or of a task's run.
func askRemote(ctx context.Context, p *cli.Program, e *remoteClient, id string) error {
	id, err := e.waitingRun(ctx, id)
	if err != nil {
		return err
	}
	var run control.Run
	if err := e.call(ctx, http.MethodGet, runPath(id, ""), nil, &run); err != nil {
		return err
	}
	return ask(p, id, run.Awaited)
}

// watchRemote prints events until the run of a task has ended, then its result.
func watchRemote(ctx context.Context, p *cli.Program, e *remoteClient, task string, asJSON bool) error {
	var t control.Task
	if err := e.call(ctx, http.MethodGet, taskPath(task, ""), nil, &t); err != nil {
		return err
	}
	for after := int64(0); ; {
		var err error
		if after, err = events(ctx, p, e, t.RunID, after, asJSON); err != nil {
			return err
		}
		var run control.Run
		if err := e.call(ctx, http.MethodGet, runPath(t.RunID, ""), nil, &run); err != nil {
			return err
		}
		if run.Status.Ended() {
			return ended(p, run, asJSON)
		}
		select { // the stream was cut off
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(watchEvery):
		}
	}
}

// events prints a stream until it ends and returns the number of the last event.
func events(ctx context.Context, p *cli.Program, e *remoteClient, run string, after int64, asJSON bool) (int64, error) {
	req, err := e.request(ctx, http.MethodGet, runPath(run, "/events?after="+strconv.FormatInt(after, 10)), nil)
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
		return after, refusal(res.StatusCode, text)
	}
	lines, number := bufio.NewScanner(res.Body), after
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		var ev repute.RunEvent
		switch name {
		case "id":
			number, _ = strconv.ParseInt(value, 10, 64)
		case "data":
			if ev, err = readEvent(number, value); err == nil {
				err = showEvent(p, run, ev, asJSON)
			}
			after = number
		}
		if err != nil {
			return after, err
		}
	}
	return after, ctx.Err() // the caller reconnects after an interrupted stream
}

// readEvent decodes one event of the stream.
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
