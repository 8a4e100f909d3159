package tasks

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"repute"
	"repute/cmd/repute/internal/cli"
	"repute/orchestrator/control"
)

// maxResultText bounds the printed part of one step's result, in bytes; --json prints all of it.
const maxResultText = 4 << 10

// runResult is the result of a run, the last line of watch with --json.
type runResult struct {
	Kind   string           `json:"kind"` // always "result", which distinguishes it from events
	Run    string           `json:"runId"`
	Status repute.RunStatus `json:"status"`
	// Error is the reason of a run that did not complete, and Summary is absent where the agent gave none. Steps have
	// their whole results, whose JSON is that of the agents.
	Error   string              `json:"error,omitempty"`
	Summary *control.RunSummary `json:"summary,omitempty"`
	Steps   []control.Step      `json:"steps"`
}

// result adds the lines about a run's result: its summary, and the result of each step. A step's result is untrusted
// JSON and may have megabytes; it is compacted before it is cut.
func (r shownRun) result(line func(name, format string, args ...any)) {
	if r.Summary != nil && r.Summary.Text != "" {
		line("summary", "%s", strings.ToValidUTF8(shortText(r.Summary.Text), ""))
	}
	for _, s := range r.Steps {
		if len(s.Result) > 0 && string(s.Result) != "null" {
			line("result", "%s %s", s.ID, shortText(compact(s.Result)))
		}
	}
}

// shortText cuts a text that is too long to print. The cut may fall into a character, whose rest is dropped, so that
// the text stays valid UTF-8.
func shortText(text string) string {
	if len(text) <= maxResultText {
		return text
	}
	return fmt.Sprintf("%s… (%d bytes, whole with run show --json)", strings.ToValidUTF8(text[:maxResultText], ""),
		len(text))
}

// compact returns JSON on one line. A text that is no JSON is returned as it is.
func compact(text json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, text) != nil {
		return string(text)
	}
	return b.String()
}

// ended prints the result of a run that has ended; the error says that the run did not complete.
func ended(p *cli.Program, run control.Run) error {
	var err error
	if p.JSON {
		err = p.PrintLine(runResult{"result", run.ID, run.Status, run.Error, run.Summary, run.Steps})
	} else {
		var b strings.Builder
		shownRun{Run: run}.result(liner(&b))
		_, err = fmt.Fprint(p.Stdout, b.String())
	}
	if err == nil && run.Status != repute.RunCompleted {
		return cli.ExitError{Code: 1, Text: cli.Visible(fmt.Sprintf("the run %s: %s", outcome(run.Status), run.Error))}
	}
	return err
}

// outcome is the verb for the status of a run that did not complete.
func outcome(s repute.RunStatus) string {
	if s == repute.RunFailed {
		return "failed"
	}
	return "was " + string(s)
}

// liner writes lines of a name and a text.
func liner(b *strings.Builder) func(name, format string, args ...any) {
	return func(name, format string, args ...any) {
		fmt.Fprintf(b, "%-9s%s\n", name, cli.Visible(fmt.Sprintf(format, args...)))
	}
}
