package a2aserver

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"pgregory.net/rapid"
)

// TestTasks: what is remembered is bounded in bytes, the oldest is forgotten first, and a task that has
// ended is not changed.
func TestTasks(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const most = 2000 // bytes
		store := newTasks(most)
		last := map[a2a.TaskID]a2a.TaskState{}
		for range rapid.IntRange(1, 30).Draw(t, "changes") {
			id := a2a.TaskID(fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "id")))
			state := rapid.SampledFrom([]a2a.TaskState{a2a.TaskStateInputRequired, a2a.TaskStateCompleted}).Draw(t,
				"state")
			size := rapid.SampledFrom([]int{1, 300, 1000}).Draw(t, "size")
			text := a2a.NewTextPart(strings.Repeat("x", size))
			_, err := store.get(id)
			kept := err == nil
			task := &a2a.Task{ID: id, ContextID: "c", Status: a2a.TaskStatus{State: state},
				Artifacts: []*a2a.Artifact{{ID: "a", Parts: a2a.ContentParts{text}}}}
			if err := store.put(task); err != nil {
				t.Fatal(err)
			}
			if !kept || !last[id].Terminal() {
				last[id] = state
			}
			got, err := store.get(id)
			if err != nil || got.Status.State != last[id] {
				t.Fatalf("%s: %+v, not %s: %v", id, got, last[id], err)
			}
			sum := 0
			for e := store.order.Front(); e != nil; e = e.Next() {
				sum += len(e.Value.(*remembered).raw)
			}
			if sum != store.bytes || sum > most || len(store.byID) != store.order.Len() {
				t.Fatalf("%d bytes, %d counted; %d and %d tasks", sum, store.bytes, len(store.byID), store.order.Len())
			}
		}
	})
	if _, err := newTasks(1).get("none"); !errors.Is(err, a2a.ErrTaskNotFound) {
		t.Error(err)
	}
}
