package tasks

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/ethereum/go-ethereum/common"
	"github.com/spf13/pflag"
	"pgregory.net/rapid"

	"repute"
	"repute/cmd/repute/internal/cli"
	"repute/orchestrator/audit"
	"repute/orchestrator/control"
	"repute/orchestrator/control/rest"
	"repute/policy"
)

// A text is printed whole up to its bound. One that is cut stays valid UTF-8, and says how long it is.
func TestShortText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Repeat(rapid.StringN(1, 4, -1).Draw(t, "piece"),
			rapid.IntRange(0, 3*maxResultText).Draw(t, "n"))
		got := shortText(text)
		switch {
		case len(text) <= maxResultText && got != text:
			t.Fatalf("%d bytes were changed", len(text))
		case len(text) > maxResultText && (!utf8.ValidString(got) || len(got) > maxResultText+100 ||
			!strings.HasSuffix(got, "whole with run show --json)")):
			t.Fatalf("%d bytes became %d", len(text), len(got))
		}
	})
}

// Results are JSON of agents: what is none is shown as it is.
func TestCompact(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"{\n \"a\": [1,\n 2]\n}": `{"a":[1,2]}`, "": "",
		"{": "{", "null": "null"} {
		if got := compact(json.RawMessage(text)); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}

// A number is absent until it was given, and 0 is a number.
func TestCountFlag(t *testing.T) {
	t.Parallel()
	if got := (countFlag{}).String(); got != "" {
		t.Errorf("the zero flag is %q", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.Int64().Draw(t, "n")
		var b policy.Bounds
		set := pflag.NewFlagSet("test", pflag.ContinueOnError)
		budgetFlags(set, &b)
		if b.Steps != nil {
			t.Fatal("a bound that nobody gave")
		}
		flag := set.Lookup("max-steps")
		if err := flag.Value.Set("x"); err == nil || b.Steps != nil {
			t.Fatalf("x is the number %v", b.Steps)
		}
		if err := flag.Value.Set(repeatable(want)); err != nil || *b.Steps != want {
			t.Fatalf("%d: %v, %v", want, b.Steps, err)
		}
		if got := flag.Value.String(); got != repeatable(want) {
			t.Fatalf("%d is written %q", want, got)
		}
	})
}

// repeatable writes a number in decimal.
func repeatable(n int64) string {
	text, _ := json.Marshal(n)
	return string(text)
}

// The run that waits by itself is the last one in the order of the task; without one it is the root.
func TestWaitingOf(t *testing.T) {
	t.Parallel()
	for ids, want := range map[string]string{"a": "a", "a b": "a", "a b*": "b", "a* b* c": "b", "a* b* c* d": "c"} {
		var runs []repute.Run
		for _, id := range strings.Fields(ids) {
			r := repute.Run{ID: strings.TrimSuffix(id, "*")}
			if r.ID != id {
				r.Awaiting = repute.AwaitingApproval
			}
			runs = append(runs, r)
		}
		if got := waitingOf(runs); got != want {
			t.Errorf("%s: %s, want %s", ids, got, want)
		}
	}
}

// hostile is a text that would clear the screen and begin a line of its own.
const hostile = "a\x1b[2J\nstatus   completed"

// A run is shown in full, and none of the texts that agents and planners chose can act on the terminal or look like a
// line of the report.
func TestTextOfRun(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	signer := common.Address{1}
	r := shownRun{Run: control.Run{
		RunLine: control.RunLine{ID: "r", Agent: hostile, Status: repute.RunFailed, Attempt: 2, Error: hostile},
		TaskID:  "t", Goal: hostile, Limits: rest.Amounts{Steps: 9, ToolCalls: 8, Writes: 7, RuntimeMS: 6},
		Used: &rest.Amounts{Steps: 1, ToolCalls: 2, Writes: 3, RuntimeMS: 4},
		Phases: []control.Phase{{Phase: "plan", Attempt: 1, Status: "failed", Error: hostile, Started: at,
			Ended: at.Add(1500 * time.Millisecond)}},
		Steps: []control.Step{{ID: hostile, Status: "failed", Error: hostile, Result: json.RawMessage(`{"a": 1}`)},
			{ID: "s2", Status: "completed", Result: json.RawMessage("null")}},
		GateDecision: &control.GateDecision{Effect: policy.Deny, Status: "rated", Score: 5, Low: 1, High: 9, Tier: 1,
			Reasons: []policy.Reason{{ID: "trust.minReputation", Text: "too low", Have: "1", Need: "20"}}},
		Head: control.DecisionsHead{Count: 3, Signer: &signer},
	}, Gate: &control.GateCheck{Decisions: []control.Checked{{Number: 1, RunID: "r", Phase: "trust", Differs: hostile}},
		Faults: []audit.DecisionFault{{Number: 2, Run: "r", Kind: "policy", Why: hostile}}, Note: hostile}}
	text := r.text()
	if cli.VisibleLines(text) != text || strings.Count(text, "\nstatus ") != 1 {
		t.Errorf("unsafe:\n%q", text)
	}
	for _, line := range []string{
		"run      r of task t, attempt 2\n",
		"used     1 of 9 steps, 2 of 8 tool calls, 3 of 7 writes, 4 of 6 ms\n",
		"phase    1 plan      failed   1500 ms  ",
		`{"a":1}` + "\n",
		"trust    deny: rated, score 5 (1 to 9), tier 1, at block 0\n",
		"reason   trust.minReputation: too low (has 1, needs 20)\n",
		"head     decision 3 0x0000000000000000000000000000000000000000000000000000000000000000\n",
		"signed   by 0x0100000000000000000000000000000000000000\n",
		"gate     decision 1 of run r, phase trust: verified false ",
		"fault    decision 2 of run r policy: ",
	} {
		if !strings.Contains(text, line) {
			t.Errorf("%q is not in\n%s", line, text)
		}
	}
	if strings.Contains(text, "result   s2") {
		t.Errorf("a step without a result has one:\n%s", text)
	}
}

// The last line of watch with --json is distinguished from events by its kind, also for a run that failed.
func TestEndedAsJSON(t *testing.T) {
	t.Parallel()
	for status, fails := range map[repute.RunStatus]bool{repute.RunCompleted: false, repute.RunFailed: true} {
		var out strings.Builder
		run := control.Run{RunLine: control.RunLine{ID: "r", Status: status, Error: hostile},
			Steps: []control.Step{{ID: "s", Result: json.RawMessage(`"` + strings.Repeat("x", 2*maxResultText) + `"`)}}}
		err := ended(&cli.Program{Stdout: &out, JSON: true}, run)
		if (err != nil) != fails || fails && strings.ContainsAny(err.Error(), "\x1b\n") {
			t.Errorf("%s: %v", status, err)
		}
		var got runResult
		if err := json.Unmarshal([]byte(out.String()), &got); err != nil || got.Kind != "result" ||
			got.Status != status ||
			len(got.Steps[0].Result) != 2*maxResultText+2 {
			t.Errorf("%s: %.200s, %v", status, out.String(), err)
		}
	}
}

// An event whose JSON is broken names the other side, and one that is whole keeps its data byte for byte.
func FuzzReadEvent(f *testing.F) {
	for _, text := range []string{`{"runId":"r","kind":"k","data":{"a":[1]},"at":"2026-01-02T03:04:05Z"}`, "", "null",
		"[]",
		`{"at":"x"}`, `{"data":`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := readEvent(7, text)
		switch {
		case err == nil && (e.Number != 7 || len(e.Data) > 0 && !json.Valid(e.Data)):
			t.Fatalf("%q: %+v", text, e)
		case err != nil && !strings.Contains(err.Error(), "an orchestrator of the same version"):
			t.Fatalf("%q: %v", text, err)
		}
		if err == nil {
			var out strings.Builder
			e.Kind = "kind" // which orchestrators choose from a list
			if err := showEvent(&cli.Program{Stdout: &out}, "r", e); err != nil ||
				strings.Count(out.String(), "\n") != 1 || strings.Contains(out.String(), "\x1b") {
				t.Fatalf("%q is shown as %q, %v", text, out.String(), err)
			}
		}
	})
}
