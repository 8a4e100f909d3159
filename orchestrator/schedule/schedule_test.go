package schedule

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"repute/orchestrator/standard"
	"repute/store/rundb"
)

// TestRun does each step once and after what it depends on, with the results of exactly those, and skips what depends
// on a failure, whatever the plan.
func TestRun(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		steps, fails := draw(t)
		var mu sync.Mutex
		began := map[string]int{}
		results := Run(context.Background(), steps,
			func(_ context.Context, s standard.Step, inputs map[string]json.RawMessage) standard.StepResult {
				mu.Lock()
				defer mu.Unlock()
				began[s.ID]++
				for _, d := range s.DependsOn {
					if string(inputs[d]) != fmt.Sprintf("%q", d) {
						t.Errorf("step %s has %s of %s", s.ID, inputs[d], d)
					}
				}
				if fails[s.ID] {
					return standard.StepResult{StepID: s.ID, Status: rundb.StepFailed}
				}
				return standard.StepResult{StepID: s.ID, Status: rundb.StepCompleted,
					Result: []byte(fmt.Sprintf("%q", s.ID))}
			})
		completed := map[string]bool{}
		for i, s := range steps { // dependencies come first
			may := true
			for _, d := range s.DependsOn {
				may = may && completed[d]
			}
			completed[s.ID] = may && !fails[s.ID]
			if r := results[i]; r.StepID != s.ID || (began[s.ID] == 1) != may ||
				(r.Status == rundb.StepCompleted) != completed[s.ID] {
				t.Fatalf("step %s of %v: %+v, began %d times", s.ID, steps, r, began[s.ID])
			}
		}
	})
}

// draw returns a plan whose steps depend on earlier ones, and the steps that fail.
func draw(t *rapid.T) (steps []standard.Step, fails map[string]bool) {
	fails = map[string]bool{}
	for i := range rapid.IntRange(1, 20).Draw(t, "steps") {
		s := standard.Step{ID: fmt.Sprint("s", i)}
		for d := range i {
			if rapid.IntRange(0, 3).Draw(t, "depends") == 0 {
				s.DependsOn = append(s.DependsOn, steps[d].ID)
			}
		}
		fails[s.ID] = rapid.IntRange(0, 5).Draw(t, "fails") == 0
		steps = append(steps, s)
	}
	return steps, fails
}
