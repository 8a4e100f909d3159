package crosscheck

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"repute"
	"repute/orchestrator/standard"
	"repute/store/rundb"
)

// TestClaimedBy: receiptIds of a step's result are the run's own, those inside may be of other runs, and text that only
// looks like them is none.
func TestClaimedBy(t *testing.T) {
	t.Parallel()
	e := &standard.Execution{ReceiptIDs: []string{"1"}}
	for _, result := range []string{`{"receiptIds":[2,"3"],"of":{"receiptIds":"4","more":[{"receiptIds":[[5]]}]}}`,
		`[{"receiptIds":6}]`, `{"receiptIds":true}`, `{"receiptIds":null,"text":"receiptIds: 9"}`, ``, `no JSON`} {
		e.Steps = append(e.Steps, standard.StepResult{Result: json.RawMessage(result)})
	}
	own, inner := claimedBy(e)
	slices.Sort(inner)
	if !slices.Equal(own, []string{"1", "2", "3", "true"}) || !slices.Equal(inner, []string{"4", "5", "6"}) {
		t.Errorf("own %q, inner %q", own, inner)
	}
	if len(e.ReceiptIDs) != 1 {
		t.Errorf("the execution was changed: %q", e.ReceiptIDs)
	}
}

// TestNamedBy: people act on the texts of a summary, so that what they name counts as its list does.
func TestNamedBy(t *testing.T) {
	t.Parallel()
	hash := "0x" + strings.Repeat("ab", 32)
	for text, want := range map[string][]string{
		"":                            nil,
		"receipt 4":                   {"4"},
		"see Receipts #4, 5 and 6.":   {"4", "5", "6"},
		"receipt_ids: [7; 8]":         {"7", "8"},
		"receipt no. 12 or 13":        {"12", "13"},
		"4 receipts were left":        nil,
		"the receiptless 9":           nil,
		"paid 5 by tx " + hash:        {hash},
		"Transaction hash: 0x" + hash: nil,
		"TX " + strings.ToUpper(hash): {hash},
		"at " + hash:                  nil, // it may be the hash of a file
	} {
		if got := namedBy(&standard.Summary{Text: text}); !slices.Equal(got, want) {
			t.Errorf("%q names %q, want %q", text, got, want)
		}
	}
	all := namedBy(&standard.Summary{Receipts: []string{"1"}, KeyActions: []string{"receipt 2"},
		Warnings: []string{"receipt 3"}})
	if !slices.Equal(all, []string{"1", "2", "3"}) {
		t.Errorf("%q", all)
	}
}

// TestChecks: one step, call or receipt that is not as it should be fails its check.
func TestChecks(t *testing.T) {
	t.Parallel()
	plan := standard.Plan{Steps: []standard.Step{{ID: "a"}, {ID: "b"}}}
	done := rundb.Step{ID: "a", Status: rundb.StepCompleted}
	for status, want := range map[string]bool{rundb.StepCompleted: true, "failed": false, "running": false} {
		if c := stepsDone(plan, []rundb.Step{done, {ID: "b", Status: status}}); c.Passed != want {
			t.Errorf("step %s: %+v", status, c)
		}
	}
	if c := stepsDone(plan, []rundb.Step{done}); c.Passed || !strings.Contains(c.Details, "b is not run") {
		t.Errorf("%+v", c)
	}
	for name, x := range map[string]struct {
		r    repute.Receipt
		want bool
	}{
		"ended":            {repute.Receipt{Done: true}, true},
		"open":             {repute.Receipt{}, false},
		"a failed request": {repute.Receipt{Done: true, Kind: repute.CallHTTP, Error: "x"}, true},
		"failed":           {repute.Receipt{Done: true, Kind: repute.CallTransaction, Error: "x"}, false},
		"of another attempt": {repute.Receipt{Done: true, Kind: repute.CallTransaction, Error: "x", Key: "attempt 2/x"},
			true},
	} {
		if c := callsEnded(1, []repute.Receipt{{Done: true}, x.r}); c.Passed != x.want {
			t.Errorf("%s: %+v", name, c)
		}
	}
	stored := []repute.Receipt{{ID: 7, Ref: "0xab"}}
	for claim, want := range map[string]bool{"7": true, "0xab": true, "8": false, "": false, "07": false} {
		if c := receiptsExist([]string{claim}, stored); c.Passed != want {
			t.Errorf("claim %q: %+v", claim, c)
		}
	}
}
