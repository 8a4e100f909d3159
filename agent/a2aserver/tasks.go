package a2aserver

import (
	"container/list"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
)

// Bounds of the tasks that a process remembers: how long after the last change, and the bytes of all.
const (
	taskTime  = time.Hour
	taskBytes = 64 << 20
)

// tasks remembers tasks by their id, the last changed longest. A task that is forgotten is no loss of
// a payment: the same payment gets the same answer in a new message.
// Tasks are kept as JSON, so that nobody holds a pointer into the store, and sizes can be counted.
type tasks struct {
	mu    sync.Mutex
	byID  map[a2a.TaskID]*list.Element
	order list.List // of *remembered, the oldest first
	bytes int
	most  int // bytes
}

// remembered is a task as JSON.
type remembered struct {
	id  a2a.TaskID
	raw []byte
	// ended is the state at the time of put: a later put of the same id changes nothing.
	ended bool
	at    time.Time
}

// most is in bytes of JSON. A single task that is larger is forgotten at once, with all others before it.
func newTasks(most int) *tasks { return &tasks{byID: map[a2a.TaskID]*list.Element{}, most: most} }

// put remembers a task, unless it has ended before.
//
// The oldest tasks leave first, until what remains is within the bound. Stale ones leave here too, so that no
// goroutine has to look for them.
func (t *tasks) put(task *a2a.Task) error {
	raw, err := json.Marshal(task)
	if err != nil {
		return fmt.Errorf("task: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if old := t.byID[task.ID]; old != nil {
		if old.Value.(*remembered).ended { //nolint:forcetypeassert // the list has nothing else
			return nil
		}
		t.remove(old)
	}
	t.byID[task.ID] = t.order.PushBack(&remembered{task.ID, raw, task.Status.State.Terminal(), time.Now()})
	t.bytes += len(raw)
	for first := t.order.Front(); first != nil && (t.bytes > t.most || t.stale(first)); first = t.order.Front() {
		t.remove(first)
	}
	return nil
}

// get returns a task. a2a.ErrTaskNotFound where none is remembered.
func (t *tasks) get(id a2a.TaskID) (*a2a.Task, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.byID[id]
	if e == nil || t.stale(e) {
		return nil, a2a.ErrTaskNotFound
	}
	task := &a2a.Task{}
	if err := json.Unmarshal(e.Value.(*remembered).raw, task); err != nil { //nolint:forcetypeassert // see put
		return nil, fmt.Errorf("remembered task: %w", err)
	}
	return task, nil
}

// stale reports whether a task is forgotten. The caller holds the lock.
func (t *tasks) stale(e *list.Element) bool {
	return time.Since(e.Value.(*remembered).at) > taskTime //nolint:forcetypeassert // see put
}

// remove forgets a task. The caller holds the lock.
func (t *tasks) remove(e *list.Element) {
	r := t.order.Remove(e).(*remembered) //nolint:forcetypeassert // see put
	t.bytes -= len(r.raw)
	delete(t.byID, r.id)
}
