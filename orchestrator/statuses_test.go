package orchestrator_test

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"repute"
	"repute/orchestrator"
	"repute/orchestrator/standard"
	"repute/store/rundb"
)

// transitions is a trigger that keeps every change of a status.
const transitions = `
create table seen (what text, was text, now text, unique (what, was, now));
create function see() returns trigger language plpgsql as $$ begin
	insert into seen values (tg_table_name, old.status, new.status) on conflict do nothing;
	return null;
end $$;
create trigger see after update of status on runs for each row when (old.status <> new.status) execute function see();
create trigger see after update of status on tasks for each row when (old.status <> new.status) execute function see();`

// Runs and tasks change their statuses exactly as the diagrams of docs/reference/orchestrator.md
// are drawn: no other way, and each way is taken here.
func TestStatusesChangeAsDrawn(t *testing.T) {
	t.Parallel()
	h, _ := newHouse(t)
	_, err := h.db.Pool().Exec(t.Context(), transitions)
	ok(t, err)
	h.takeEveryWay()
	rows, err := h.db.Pool().Query(t.Context(), `select what || ' ' || was || ' ' || now from seen`)
	ok(t, err)
	seen := map[string]bool{}
	for rows.Next() {
		var way string
		ok(t, rows.Scan(&way))
		seen[way] = true
	}
	ok(t, rows.Err())
	drawn := drawnWays(t)
	for _, way := range slices.Sorted(maps.Keys(seen)) {
		if !drawn[way] {
			t.Errorf("%s: happened and is not drawn", way)
		}
	}
	for _, way := range slices.Sorted(maps.Keys(drawn)) {
		if !seen[way] {
			t.Errorf("%s: is drawn and did not happen", way)
		}
	}
}

// drawnWays reads the arrows of the two diagrams, which follow the words "Statuses of".
func drawnWays(t *testing.T) map[string]bool {
	text, err := os.ReadFile("../docs/reference/orchestrator.md")
	ok(t, err)
	out := map[string]bool{}
	for _, what := range []string{"runs", "tasks"} {
		_, after, found := strings.Cut(string(text), "Statuses of "+what)
		diagram, _, closed := strings.Cut(after, "```\n\n")
		if !found || !closed {
			t.Fatalf("no diagram of the statuses of %s", what)
		}
		for _, m := range regexp.MustCompile(`(?m)^ +([a-z]+) --> ([a-z]+)`).FindAllStringSubmatch(diagram, -1) {
			out[what+" "+m[1]+" "+m[2]] = true
		}
	}
	return out
}

// takeEveryWay runs tasks to all ends from all statuses, and retries them.
func (h *house) takeEveryWay() {
	cannot, failing, endless, cyclic := newWorker("cannot"), newWorker("failing"), newWorker("endless"),
		newWorker("cyclic")
	cannot.can = func() (bool, error) { return false, nil }
	var tried atomic.Bool
	failing.do = func(context.Context, standard.Step, map[string]json.RawMessage,
		*orchestrator.Context) (json.RawMessage, error) {
		if !tried.Swap(true) {
			return nil, repute.Invalid("step", "cannot be done", "another one")
		}
		return nil, nil
	}
	endless.do = func(ctx context.Context, _ standard.Step, _ map[string]json.RawMessage,
		_ *orchestrator.Context) (json.RawMessage, error) {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	cyclic.plan = func(standard.Task) standard.Plan {
		return standard.Plan{Steps: []standard.Step{{ID: "a", Agent: "cyclic", DependsOn: []string{"a"}}}}
	}
	p := &changing{t: h.t}
	p.set(unrated("allow"))
	careful := careful{newWorker("careful"), func() { p.set(unrated("deny")) }}
	o := orchestrator.Options{Lenient: true, Policy: p.now.Load,
		Modules: []orchestrator.Module{newWorker("plain"), cannot, failing, endless, cyclic, careful}}
	stop := h.start(o)
	stop()

	idle := h.submit(standard.Request{Coordinator: "plain"})
	h.cancelled(idle) // while it is pending
	ok(h.t, h.client.Retry(h.t.Context(), idle.ID, 0, "ann"))
	h.start(o)
	h.ends(idle, repute.TaskCompleted)
	for slug, again := range map[string]repute.TaskStatus{"cannot": repute.TaskFailed, "cyclic": repute.TaskFailed,
		"failing": repute.TaskCompleted} {
		task := h.submit(standard.Request{Coordinator: slug})
		h.ends(task, repute.TaskFailed)
		ok(h.t, h.client.Retry(h.t.Context(), task.ID, 0, "ann"))
		h.ends(task, again)
	}
	running := h.submit(standard.Request{Coordinator: "endless"})
	h.until("the task runs", func() bool {
		r, err := rundb.Run(h.t.Context(), h.db, running.Run)
		ok(h.t, err)
		return r.Status == repute.RunRunning
	})
	h.cancelled(running)
	h.ends(h.submit(standard.Request{Coordinator: "careful"}), repute.TaskRejected) // before Execute
	refused := h.submit(standard.Request{Coordinator: "plain"})
	h.ends(refused, repute.TaskRejected) // by the policy of now
	ok(h.t, h.client.Retry(h.t.Context(), refused.ID, 0, "ann"))
	h.ends(refused, repute.TaskRejected)
	p.set(unrated("allow"))
	ok(h.t, h.client.Retry(h.t.Context(), refused.ID, 0, "ann"))
	h.ends(refused, repute.TaskCompleted)
	p.set(unrated("require_approval"))
	waiting := h.submit(standard.Request{Coordinator: "plain"})
	h.awaits(waiting.Run)
	h.cancelled(waiting)
}

// cancelled cancels a task and waits for its end.
func (h *house) cancelled(t repute.Task) {
	h.t.Helper()
	ok(h.t, h.client.Cancel(h.t.Context(), t.ID, "ann", "no longer wanted"))
	h.ends(t, repute.TaskCancelled)
}

// ends waits for a task's end, which must be of a status.
func (h *house) ends(t repute.Task, want repute.TaskStatus) {
	h.t.Helper()
	if task, run := h.ended(t); task.Status != want {
		h.t.Errorf("task of %s is %s, want %s: %s", task.Coordinator, task.Status, want, run.Error)
	}
}
