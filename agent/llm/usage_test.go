package llm_test

import (
	"errors"
	"strings"
	"testing"

	"repute"
	"repute/agent/llm"
	"repute/internal/modeltest"
)

// A provider that reports no tokens, or fewer than none, is charged by the size of the request and of the answer; what
// it reports counts where the answer can have as few.
func TestReportedUsage(t *testing.T) {
	text := strings.Repeat("four word answer here ", 15) // 330 bytes, 110 tokens by the estimate
	for name, c := range map[string]struct {
		turn        modeltest.Turn
		input       int64 // 0: the estimate
		least, most int64 // of the output
		kind        error
	}{
		"reported":        {modeltest.Turn{Text: text, Input: 70, Output: 300}, 70, 300, 300, nil},
		"none":            {modeltest.Turn{Text: text, Uncounted: true}, 0, 110, 110, nil},
		"negative":        {modeltest.Turn{Text: text, Input: -90_000, Output: -90_000}, 0, 110, 110, nil},
		"negative output": {modeltest.Turn{Text: text, Input: 70, Output: -90_000}, 70, 110, 110, nil},
		"too little":      {modeltest.Turn{Text: text, Input: 70, Output: 1}, 70, 41, 41, nil},
		"cut, none":       {modeltest.Turn{Text: text, Uncounted: true, Cut: true}, 0, 20, 60, repute.ErrUnavailable},
		"cut, negative": {modeltest.Turn{Text: text, Input: -90_000, Output: -90_000, Cut: true}, 0, 20, 60,
			repute.ErrUnavailable},
		"refused": {modeltest.Turn{Status: 400}, -1, 0, 0, repute.ErrInvalid},
	} {
		for provider := range providers() {
			t.Run(name+"/"+provider, func(t *testing.T) {
				meter := &llm.Meter{}
				got, err := ask(t, provider, modeltest.New(c.turn), func(l *llm.Loop) { l.Ledger = meter })
				if c.kind == nil && err != nil || c.kind != nil && !errors.Is(err, c.kind) {
					t.Fatal(err)
				}
				u, _ := meter.Used()
				if u != got.Usage || u.Output < c.least || u.Output > c.most {
					t.Errorf("used %+v, the answer says %+v, want an output of %d to %d", u, got.Usage, c.least, c.most)
				}
				if want := max(c.input, 0); c.input != 0 && u.Input != want || c.input == 0 && u.Input < 10 {
					t.Errorf("input %d, want %d", u.Input, c.input)
				}
			})
		}
	}
}
