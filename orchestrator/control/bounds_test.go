package control_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"repute"
	"repute/orchestrator"
	"repute/orchestrator/control"
	"repute/orchestrator/standard"
	"repute/orchestrator/transaction"
)

const (
	hoards   = 5         // steps of a hoarder's run
	dumps    = 2         // calls of each
	dumpSize = 512 << 10 // bytes of the answer to each
	kept     = 240 << 10 // bytes of a step's result
)

// hoarder is an agent that calls a tool with long answers, and has a long result.
type hoarder struct{ worker }

// dump is the tool.
type dump struct{}

func (dump) Call(context.Context, transaction.Origin, string, json.RawMessage) (json.RawMessage, error) {
	return json.Marshal(strings.Repeat("x", dumpSize))
}

func (h hoarder) Plan(context.Context, standard.Task, *orchestrator.Context) (p standard.Plan, err error) {
	for i := range hoards {
		p.Steps = append(p.Steps, standard.Step{ID: fmt.Sprint("s", i), Agent: h.slug})
	}
	return p, nil
}

func (h hoarder) Execute(ctx context.Context, _ standard.Task, p standard.Plan,
	c *orchestrator.Context) (standard.Execution, error) {
	return c.RunPlan(ctx, p, func(ctx context.Context, _ standard.Step, _ map[string]json.RawMessage,
		c *orchestrator.Context) (json.RawMessage, error) {
		for i := range dumps {
			if _, err := c.Tool(ctx, "dump", json.RawMessage(fmt.Sprint(i))); err != nil {
				return nil, err
			}
		}
		return json.Marshal(strings.Repeat("x", kept))
	})
}

// Lists hold no results, whatever a run has got; one receipt has its own. A log's page ends
// where it grows too large, and the next goes on there.
func TestLargeResults(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil, hoarder{worker{slug: "plain"}})
	const runs = 5
	var last control.Run
	for i := range runs {
		last = h.ended(h.submit(fmt.Sprintf(`{"goal":"number %d","coordinatorSlug":"plain"}`, i)))
	}
	if last.Status != repute.RunCompleted {
		t.Fatalf("run %s: %s", last.Status, last.Error)
	}
	var calls []control.Receipt
	for cursor := "0"; cursor != ""; {
		var page control.ReceiptList
		r := h.call(http.MethodGet, "/v1/runs/"+last.ID+"/receipts?limit=4&cursor="+cursor, "")
		if h.into(r, 200, &page); len(r.body) > 64<<10 || len(page.Receipts) > 4 {
			t.Fatalf("a page of %d receipts has %d bytes", len(page.Receipts), len(r.body))
		}
		for _, c := range page.Receipts {
			if c.Kind == repute.CallTool {
				calls = append(calls, c)
			}
		}
		cursor = page.Next
	}
	if len(calls) != hoards*dumps {
		t.Fatalf("%d calls of %d", len(calls), hoards*dumps)
	}
	for _, c := range calls {
		var one control.Receipt
		if h.into(h.call(http.MethodGet, fmt.Sprintf("/v1/runs/%s/receipts/%d", last.ID, c.ID), ""), 200,
			&one); c.Result != nil || len(one.Result) != dumpSize+2 || one.Request == nil {
			t.Errorf("receipt %d has %d bytes, %d in the list", c.ID, len(one.Result), len(c.Result))
		}
	}
	h.wholeLog(runs)
}

// wholeLog reads the log of "plain" to its end.
func (h *house) wholeLog(runs int) {
	h.t.Helper()
	seen, pages, cursor := map[string]bool{}, 0, ""
	for {
		var log struct {
			Runs []struct {
				RunID    string
				Receipts []struct{ Type string }
			}
			NextCursor string
		}
		path := "/v1/agents/plain/agent_log.json?limit=50"
		if cursor != "" {
			path += "&cursor=" + cursor
		}
		r := h.call(http.MethodGet, path, "")
		if h.into(r, 200, &log); len(r.body) > 8<<20 {
			h.t.Fatalf("page %d has %d bytes", pages, len(r.body))
		}
		for _, run := range log.Runs {
			if seen[run.RunID] || len(run.Receipts) < hoards*dumps {
				h.t.Errorf("run %s comes twice, or with %d receipts alone", run.RunID, len(run.Receipts))
			}
			seen[run.RunID] = true
		}
		if pages++; len(log.Runs) == 0 || log.NextCursor == cursor || len(seen) == runs {
			break
		}
		cursor = log.NextCursor
	}
	if len(seen) != runs || pages < 2 {
		h.t.Errorf("%d of %d runs on %d pages", len(seen), runs, pages)
	}
}
