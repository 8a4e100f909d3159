package orchestrator_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"repute/store/rundb"
)

// page is what a route under a run answers.
func (d *decided) page(path string, into any) {
	d.t.Helper()
	w := httptest.NewRecorder()
	d.routes.ServeHTTP(w, httptest.NewRequestWithContext(d.t.Context(), http.MethodGet,
		"/v1/runs/"+d.a.Run+path, nil))
	if err := json.Unmarshal(w.Body.Bytes(), into); err != nil || w.Code != http.StatusOK {
		d.t.Fatalf("%s: %d %s: %v", path, w.Code, w.Body, err)
	}
}

// A page of decisions reads no more than itself and the decision before it, which its first
// link is compared with.
func TestDecisionPagesAreLinked(t *testing.T) {
	t.Parallel()
	d := newDecided(t, nil)
	d.keep()
	faults := func(path string) string {
		var got struct{ Faults []struct{ Why string } }
		d.page(path, &got)
		text, err := json.Marshal(got.Faults)
		ok(t, err)
		return string(text)
	}
	for _, path := range []string{"/decisions", "/decisions?limit=2", "/decisions?limit=2&cursor=2"} {
		if got := faults(path); got != "[]" {
			t.Errorf("%s: %s", path, got)
		}
	}
	d.exec(`delete from run_decisions where root_id = $rootA and number = 2`)
	if got := faults("/decisions?limit=1&cursor=2"); !strings.Contains(got, "a decision was removed") {
		t.Errorf("the decision before the page is gone: %s", got)
	}
	d.restore()
	d.exec(`update run_decisions set hash = sha256('') where root_id = $rootA and number = 2`)
	if got := faults("/decisions?limit=1&cursor=2"); !strings.Contains(got, "follows another decision") {
		t.Errorf("the decision before the page has another hash: %s", got)
	}
	d.restore()
	first, err := rundb.ReadDecisionPage(t.Context(), d.db, d.a.Run, 0, 3)
	ok(t, err)
	if len(first.List) != 3 || first.Before != nil || first.List[2].Number != 3 {
		t.Errorf("a page of 3: %d decisions after %v", len(first.List), first.Before)
	}
}

// The check of a run's decisions makes a page of its decisions again at a time.
func TestGateIsVerifiedInPages(t *testing.T) {
	t.Parallel()
	d := newDecided(t, nil)
	type answer struct {
		Verified  bool
		Decisions []struct{ Number int64 }
		Next      string `json:"nextCursor"`
	}
	var all, paged []int64
	var whole answer
	d.page("/gate:verify", &whole)
	for _, v := range whole.Decisions {
		all = append(all, v.Number)
	}
	for cursor := ""; ; {
		var got answer
		d.page("/gate:verify?limit=1"+cursor, &got)
		if len(got.Decisions) != 1 || !got.Verified {
			t.Fatalf("a page of one decision: %+v", got)
		}
		paged = append(paged, got.Decisions[0].Number)
		if got.Next == "" {
			break
		}
		cursor = "&cursor=" + got.Next
	}
	if !slices.Equal(all, paged) || len(all) < 4 || whole.Next != "" {
		t.Errorf("decisions %v, in pages %v", all, paged)
	}
}
