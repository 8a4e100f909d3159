package tasks

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"repute"
	"repute/cmd/repute/internal/apiclient"
	"repute/cmd/repute/internal/cli"
	"repute/orchestrator/control"
)

// The error of a run that did not complete is a sentence.
func TestEndedSaysOutcome(t *testing.T) {
	t.Parallel()
	for status, want := range map[repute.RunStatus]string{repute.RunFailed: "the run failed: why",
		repute.RunCancelled: "the run was cancelled: why"} {
		var out strings.Builder
		err := ended(&cli.Program{Stdout: &out, JSON: true},
			control.Run{RunLine: control.RunLine{Status: status, Error: "why"}})
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v", status, err)
		}
	}
}

// Events of a run below the root name it.
func TestEventsNameRunsBelow(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	p := &cli.Program{Stdout: &out}
	for _, run := range []string{"root", "below"} {
		if err := showEvent(p, "root", repute.RunEvent{Run: run, Kind: "phase", Data: []byte("{}")}); err != nil {
			t.Fatal(err)
		}
	}
	if lines := strings.Split(out.String(), "\n"); strings.Contains(lines[0], "root") ||
		!strings.HasSuffix(lines[1], "below") {
		t.Errorf("events %q", lines)
	}
}

// A stream continues after the last whole event, and an event that can never be read ends the command.
func TestEventsEnd(t *testing.T) {
	t.Parallel()
	const whole = "id: 7\ndata: {\"runId\":\"root\",\"kind\":\"phase\",\"data\":{}}\n\n"
	for name, c := range map[string]struct {
		stream string
		broken bool
	}{
		"cut off":  {stream: whole + "id: 8\nda"},
		"too long": {stream: whole + "id: 8\ndata: " + strings.Repeat("x", maxEvent) + "\n\n", broken: true},
		"no JSON":  {stream: whole + "id: 8\ndata: x\n\n", broken: true},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(c.stream))
		}))
		var out strings.Builder
		e := &remoteClient{apiclient.Client{URL: server.URL}}
		after, err := events(t.Context(), &cli.Program{Stdout: &out}, e, "root", 0)
		server.Close()
		if errors.Is(err, repute.ErrInvalid) != c.broken || !c.broken && (err != nil || after != 7) ||
			strings.Count(out.String(), "phase") != 1 {
			t.Errorf("%s: continues after %d, error %v, printed %q", name, after, err, out.String())
		}
	}
}
