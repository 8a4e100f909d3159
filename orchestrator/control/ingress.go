package control

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"unicode/utf8"

	"repute"
	"repute/internal/httpapi"
	"repute/orchestrator/control/rest"
	"repute/orchestrator/journal"
	"repute/store/rundb"
)

// IngressTask is a task from a chat. Fields that only the chat needs are stored with the task's
// input.
type IngressTask struct {
	Goal        string          `json:"goal" pattern:"\\S" maxLength:"8192" doc:"what to do"`
	Input       json.RawMessage `json:"input,omitempty" doc:"what the coordinator takes, as its manifest says, mostly an object; 256 KiB, 64 levels"`
	Coordinator string          `json:"coordinatorSlug,omitempty" pattern:"^[a-z0-9]+(-[a-z0-9]+)*$" maxLength:"64" doc:"the configured one when absent"`
	Terms
	Channel   string `json:"channel,omitempty" maxLength:"72" doc:"of the chat, such as telegram"`
	Sender    string `json:"sender,omitempty" maxLength:"72" doc:"who asked there"`
	MessageID string `json:"messageId,omitempty" maxLength:"72" doc:"makes a message that is delivered twice one task"`
	Key       string `json:"idempotencyKey,omitempty" maxLength:"80" doc:"the same; also the header Idempotency-Key"`
}

// Ingress tells the chat where the task can be followed.
type Ingress struct {
	TaskID   string            `json:"taskId"`
	RunID    string            `json:"runId"`
	Status   repute.TaskStatus `json:"status" enum:"pending,assigned,running,completed,failed,cancelled,rejected"`
	Task     string            `json:"task" doc:"path"`
	Run      string            `json:"run" doc:"path"`
	Receipts string            `json:"receipts" doc:"path"`
	Events   string            `json:"events" doc:"path of a stream"`
}

// mountIngress serves the route by which OpenClaw's plugin submits tasks. The plugin's other
// requests use the routes of agents and runs.
func (c *Control) mountIngress() {
	rest.Write[IngressTask](c.router, http.MethodPost, "/ingress/openclaw/task", "submit-openclaw-task",
		"Submits a task from a chat program; the token may also be in the header X-API-Key", c.ingress)
	rest.Read(c.router, "/runs/{id}/receipts/{receipt}", "get-receipt", "Returns one receipt of a run", c.getReceipt)
}

// ingress serves POST /v1/ingress/openclaw/task: a message of a chat becomes a task; a repeated
// message does not become a second one.
func (c *Control) ingress(ctx context.Context, by string, in *submitInput,
	r IngressTask) (*rest.Answer[Ingress], error) {
	for name, text := range map[string]string{"channel": r.Channel, "sender": r.Sender, "messageId": r.MessageID} {
		if utf8.RuneCountInString(text) > maxKey-8 || httpapi.Clean(text) != text {
			return nil, repute.Invalid(name, "is too long or no text", "at most 72 characters")
		}
	}
	if r.Key == "" && in.Key == "" && r.MessageID != "" {
		r.Key = r.message()
	}
	task := TaskRequest{Goal: r.Goal, Input: r.Input, Coordinator: r.Coordinator, Terms: r.Terms, Key: r.Key}
	if len(r.Input) == 0 && (r.Channel != "" || r.Sender != "") {
		task.Input = journal.JSON(map[string]string{"channel": r.Channel, "sender": r.Sender})
	}
	submitted, err := c.submitTask(ctx, by, in, task)
	if err != nil {
		return nil, err
	}
	t := submitted.Body
	out := rest.Say(&Ingress{TaskID: t.ID, RunID: t.RunID, Status: t.Status, Task: rest.Prefix + "/tasks/" + t.ID,
		Run:      rest.Prefix + "/runs/" + t.RunID,
		Receipts: rest.Prefix + "/runs/" + t.RunID + "/receipts", Events: rest.Prefix + "/runs/" + t.RunID + "/events"})
	out.Status, out.Location = submitted.Status, submitted.Location
	return out, nil
}

// message returns the idempotency key of a message. It includes the chat, because messages are
// numbered per chat.
func (r *IngressTask) message() string {
	place := sha256.Sum256(journal.JSON([]string{r.Channel, r.Sender, r.MessageID}))
	return "chat/" + hex.EncodeToString(place[:])
}

// receiptInput names a receipt of a run. The id of a receipt alone is not enough: it is found only by its run.
type receiptInput struct {
	ID      string         `path:"id"`
	Receipt httpapi.Number `path:"receipt" minimum:"0" maximum:"9007199254740991"`
}

// getReceipt serves GET /v1/runs/{id}/receipts/{receipt}.
func (c *Control) getReceipt(ctx context.Context, in *receiptInput) (*rest.Answer[Receipt], error) {
	wanted, err := number("receipt", string(in.Receipt))
	if err != nil {
		return nil, err
	}
	run, err := c.run(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	r, err := rundb.Receipt(ctx, c.db, run.ID, wanted)
	if err != nil {
		return nil, err
	}
	w := []Receipt{receiptOnWire(r)}
	return rest.Say(&w[0]), c.joinTreasury(ctx, run.ID, w)
}
