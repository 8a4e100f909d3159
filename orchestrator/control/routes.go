package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/danielgtaylor/huma/v2"

	"repute"
	"repute/internal/httpapi"
)

// mount is the table of contents.
func (c *Control) mount() {
	read(c, "/agents", "list-task-agents", "Lists the agents that can be given tasks", c.listAgents)
	read(c, "/agents/{slug}", "get-task-agent", "Returns an agent that can be given tasks", c.getAgent)
	read(c, "/agents/{slug}/trust", "get-agent-trust", "Returns what the trust gate would decide about an agent now",
		c.getTrust)
	write[TrustQuestion](c, http.MethodPost, "/agents/{slug}/trust", "recompute-agent-trust",
		"Evaluates the trust gate for an agent again, and recomputes its final score from the stored evidence",
		c.recomputeTrust)
	write[AgentRegistration](c, http.MethodPost, "/agents", "register-agent",
		"Registers an agent that runs on a server of its own", c.registerAgent)
	write[none](c, http.MethodDelete, "/agents/{slug}", "remove-agent",
		"Removes an agent that runs on a server of its own; its past runs stay", c.removeAgent)

	read(c, "/tasks", "list-tasks", "Lists tasks, newest first", c.listTasks)
	read(c, "/tasks/{id}", "get-task", "Returns a task with its runs", c.getTask)
	write[TaskRequest](c, http.MethodPost, "/tasks", "submit-task", "Submits a task", c.submitTask)
	write[Cancellation](c, http.MethodPost, "/tasks/{id}/cancel", "cancel-task", "Requests that a task be cancelled",
		c.cancelTask)
	write[RetryFrom](c, http.MethodPost, "/tasks/{id}/retry", "retry-task",
		"Starts another attempt of a task that failed", c.retryTask)

	read(c, "/runs/{id}", "get-run", "Returns a run: phases, steps, budget used, and why it was refused", c.getRun)
	read(c, "/runs/{id}/receipts", "list-receipts",
		"Lists receipts of a run: its recorded calls of tools, addresses and chains", c.listReceipts)
	read(c, "/runs/{id}/decisions", "list-decisions",
		"Lists the decisions about a run's task, each linked to the one before by its hash", c.listDecisions)
	read(c, "/runs/{id}/gate:verify", "verify-gate",
		"Verifies the hashes of the decisions about a run's task, and recomputes its trust decisions from the stored evidence", c.verifyGate)
	write[ApprovalAnswer](c, http.MethodPost, "/runs/{id}/approval", "approve-run",
		"Approves or rejects what a run waits for", c.approveRun)
}

// answer is what an operation says.
type answer[B any] struct {
	Status       int
	Location     string `header:"Location"`
	CacheControl string `header:"Cache-Control"`
	Body         *B
}

// say makes an answer that is not cached.
func say[B any](body *B) *answer[B] {
	return &answer[B]{Status: http.StatusOK, CacheControl: "no-store", Body: body}
}

// none is the body of a request that needs no body.
type none struct{}

// operation describes a route for the OpenAPI document.
func (c *Control) operation(method, path, id, summary string) huma.Operation {
	return huma.Operation{OperationID: id, Method: method, Path: prefix + path, Summary: summary,
		SkipValidateParams: true, // they are text and parsed here, which gives better answers
		Responses:          map[string]*huma.Response{"default": c.server.Problems()}}
}

// read mounts an operation that is open to all.
func read[I, B any](c *Control, path, id, summary string, handle func(context.Context, *I) (*answer[B], error)) {
	huma.Register(c.server.API, c.operation(http.MethodGet, path, id, summary),
		func(ctx context.Context, in *I) (*answer[B], error) {
			out, err := handle(ctx, in)
			if err != nil {
				return nil, c.fail(ctx, err)
			}
			return out, nil
		})
}

// write mounts an operation that changes something: R is what its body holds.
func write[R, I, B any](c *Control, method, path, id, summary string,
	handle func(ctx context.Context, by string, in *I, body R) (*answer[B], error)) {
	op := c.operation(method, path, id, summary)
	op.Security = []map[string][]string{{httpapi.Bearer: {}}}
	huma.Register(c.server.API, op, func(ctx context.Context, in *I) (*answer[B], error) {
		out, err := written(ctx, in, handle)
		if err != nil {
			return nil, c.fail(ctx, err)
		}
		return out, nil
	})
	describeBody[R](c, &op)
}

// describeBody says in the document what a request's body holds. The operation that the
// router has stays without one, or it would read and judge the body in its own words.
func describeBody[R any](c *Control, op *huma.Operation) {
	t := reflect.TypeFor[R]()
	item := c.server.API.OpenAPI().Paths[op.Path]
	if t == reflect.TypeFor[none]() || item == nil {
		return
	}
	at := &item.Post
	if op.Method == http.MethodPut {
		at = &item.Put
	}
	if *at == nil {
		return
	}
	described := **at
	schemas := c.server.API.OpenAPI().Components.Schemas
	schema := schemas.Schema(t, true, "")
	described.RequestBody = &huma.RequestBody{Required: len(schemas.SchemaFromRef(schema.Ref).Required) > 0,
		Content: map[string]*huma.MediaType{"application/json": {Schema: schema}}}
	*at = &described
}

// written decodes the body of a request that changes something and calls its handler with the name
// of the caller.
func written[R, I, B any](ctx context.Context, in *I, handle func(context.Context, string, *I, R) (*answer[B],
	error)) (*answer[B], error) {
	name, err := httpapi.By(ctx)
	if err != nil {
		return nil, err
	}
	var body R
	if err := decode(httpapi.RequestBody(ctx), &body); err != nil {
		return nil, err
	}
	return handle(ctx, name, in, body)
}

// decode reads a request's body strictly: a field that nobody knows is a mistake, not
// noise. No body at all is an empty object.
func decode(body []byte, into any) error {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil
	}
	if json.Valid(body) {
		if err := repute.CheckJSON("", body); err != nil {
			return err
		}
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	err := dec.Decode(into)
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong) && wrong.Field != "":
		return repute.Invalid(memberOf(wrong.Field), "is a "+wrong.Value, wanted(wrong.Type))
	case errors.As(err, &wrong):
		return repute.Invalid("body", "is a "+wrong.Value, "a JSON object")
	case err != nil && strings.HasPrefix(err.Error(), unknownField):
		return repute.Invalid(fmt.Sprintf("%.64s", strings.Trim(strings.TrimPrefix(err.Error(), unknownField), `"`)),
			"is no field of this request", "the fields of /openapi.json")
	case err != nil:
		return repute.Invalid("body", fmt.Sprintf("cannot be read: %.200s", err),
			"one JSON object with the fields of /openapi.json")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return repute.Invalid("body", "goes on after the object", "one JSON object")
	}
	return nil
}

// unknownField begins encoding/json's error about a field that a struct does not have. The
// package has no type for it.
const unknownField = "json: unknown field "

// wanted says which JSON a Go type is read from.
func wanted(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch k := t.Kind(); {
	case k == reflect.Bool:
		return "true or false"
	case k == reflect.String:
		return "a string"
	case k >= reflect.Int && k <= reflect.Int64, k >= reflect.Uint && k <= reflect.Uint64:
		return "a whole number of up to " + strconv.Itoa(t.Bits()) + " bits"
	case k == reflect.Float32 || k == reflect.Float64:
		return "a number"
	case k == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		return "a list"
	case k == reflect.Struct || k == reflect.Map:
		return "an object"
	}
	return "see the schema in /openapi.json"
}

// maxID bounds ids and slugs in paths, in bytes.
const maxID = 64

// fail prepares an error for the wire. What does not exist gets the route that lists what does.
func (c *Control) fail(ctx context.Context, err error) *httpapi.ErrorBody {
	var missing *repute.MissingError
	if errors.As(err, &missing) && missing.Hint == "" {
		kind, _, _ := strings.Cut(missing.What, " ")
		listed := *missing
		listed.Hint = map[string]string{"task": "GET /v1/tasks lists tasks", "agent": "GET /v1/agents lists agents",
			"run": "GET /v1/tasks/{id} lists the runs of a task"}[kind]
		err = &listed
	}
	return c.server.Fail(ctx, err)
}

// known refuses what cannot be the name of anything, before the database is asked.
func known(what, id string) error {
	if len(id) > maxID || httpapi.Clean(id) != id {
		return repute.Unknown("%s %.64q", what, id)
	}
	return nil
}

// memberOf is a path of JSON members, of one that names the structs that embed them too.
func memberOf(path string) string {
	parts := strings.Split(path, ".")
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p != "" && unicode.IsUpper(rune(p[0])) }),
		".")
}
