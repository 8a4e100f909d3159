package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"repute/internal/httpapi"
)

// Tool is a tool for callers. In and Out are structs; their fields are documented by the tags json,
// doc and enum, and those of In without omitempty are required.
type Tool[In, Out any] struct {
	Name        string // letters, digits and _
	Description string // helps a model to choose a tool
	Effect      Effect
	// Do carries the call out. Its error has the form of the REST routes.
	Do func(context.Context, In) (Out, error)
}

// Effect describes the side effects of a tool. The zero value: none. Clients may ask a person before a call that
// destroys, so that Destroy is set where in doubt.
type Effect struct {
	Changes bool // it changes something
	Repeats bool // doing it again with the same input changes nothing more
	Destroy bool // its changes cannot be undone
	World   bool // it affects more than this service: a chain, other agents
}

// text returns an error in the form for models.
func text(b *httpapi.ErrorBody) string {
	t := b.Code + ": " + strings.TrimSuffix(b.Detail, ".")
	if b.Hint != "" {
		t += ". Fix: " + b.Hint
	}
	return t
}

// problemKey is the key of an error's body in _meta of a result.
const problemKey = "repute/problem"

// Add adds a tool to a server. It fails for types that have no schema. The answer is encoded once and is both text and
// structured content, because older clients read the text alone.
func Add[In, Out any](s *Server, t Tool[In, Out]) error {
	in, err := shapeOf(reflect.TypeFor[In](), false)
	if err != nil {
		return fmt.Errorf("tool %s: %w", t.Name, err)
	}
	out, err := shapeOf(reflect.TypeFor[Out](), true)
	if err != nil {
		return fmt.Errorf("tool %s: %w", t.Name, err)
	}
	return s.AddRaw(Raw{Name: t.Name, Description: t.Description, Input: in.raw, Output: out.raw, Effect: t.Effect,
		Do: func(ctx context.Context, c Call) Result {
			raw, err := call(ctx, t.Do, &in, c.Arguments)
			if err == nil && len(raw) > s.o.Output {
				err = tooLarge(len(raw), s.o.Output)
			}
			if err != nil {
				return s.failed(ctx, err)
			}
			return Result{Text: string(raw), Structured: raw, Outcome: "ok"}
		}})
}

// annotations describe the effects for clients. Defaults of the protocol are omitted: a tool that
// changes something is destructive and open-world unless it says otherwise.
func (e Effect) annotations() *sdk.ToolAnnotations {
	a := &sdk.ToolAnnotations{ReadOnlyHint: !e.Changes, IdempotentHint: !e.Changes || e.Repeats}
	if !e.World {
		a.OpenWorldHint = new(bool)
	}
	if e.Changes && !e.Destroy {
		a.DestructiveHint = new(bool)
	}
	return a
}

// call reads the arguments and asks.
func call[In, Out any](ctx context.Context, do func(context.Context, In) (Out, error), in *shape,
	arguments json.RawMessage) (json.RawMessage, error) {
	var given In
	if err := in.read(arguments, &given); err != nil {
		return nil, err
	}
	out, err := do(ctx, given)
	if err != nil {
		return nil, err
	}
	return json.Marshal(out)
}

// failed returns the result of a call that failed, and logs a fault of this service.
func (s *Server) failed(ctx context.Context, err error) Result {
	b := httpapi.Report(ctx, s.log, err)
	return Result{Text: text(b), Meta: map[string]any{problemKey: b}, Failed: true, Outcome: b.Code}
}

// bounded adds the timeout, the caller's token, and the end of the HTTP request to a call's
// context. The caller MUST call the function that it returns, also after a timeout. Without headers, as on standard
// input, the token is that of the stream.
func (s *Server) bounded(ctx context.Context, r *sdk.CallToolRequest) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	if r.Extra != nil && r.Extra.Header != nil {
		scheme, text, _ := strings.Cut(r.Extra.Header.Get("Authorization"), " ")
		if !strings.EqualFold(scheme, "bearer") {
			text = ""
		}
		ctx = context.WithValue(ctx, tokenKey{}, strings.TrimSpace(text))
	}
	request, ok := ctx.Value(requestKey{}).(context.Context)
	if !ok {
		return ctx, cancel
	}
	stop := context.AfterFunc(request, cancel)
	return ctx, func() { stop(); cancel() }
}

// tokenKey is the context key of the caller's token.
type tokenKey struct{}

// Token returns the bearer token of a call, empty without one.
func Token(ctx context.Context) string {
	t, _ := ctx.Value(tokenKey{}).(string)
	return t
}
