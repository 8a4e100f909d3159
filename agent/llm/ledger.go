package llm

import (
	"context"
	"encoding/json"
	"errors"
)

// ErrUncertain is returned by a tool that failed, and whose call may have had its effect.
var ErrUncertain = errors.New("it is unknown whether the tool has done its work")

// Ledger makes the calls of a Loop. It counts every call, refuses one that a budget does not allow with
// repute.ErrLimited, and answers a call that it journaled before without making it again.
type Ledger interface {
	// Model makes a call of a model. about is shown in records; do MUST be called at most once.
	Model(ctx context.Context, about ModelCall, do func(context.Context) (Reply, error)) (Reply, error)
	// Tool makes a call of a tool.
	Tool(ctx context.Context, use ToolUse, do func(context.Context) (string, error)) (string, error)
	// Ends reports whether an error ends the run: the model is not told about it.
	Ends(ctx context.Context, err error) bool
}

// ToolUse describes a call of a tool to a Ledger.
type ToolUse struct {
	Name  string
	Input json.RawMessage
	// Once says that the call may have an effect each time that it is made. A ledger that journals calls MUST
	// NOT make one again that was begun and whose end is unknown, or that failed with ErrUncertain, unless a person
	// says so.
	Once bool
}

// ModelCall describes a call of a model to a Ledger.
type ModelCall struct {
	Model string
	Turn  int
	// Request is the whole request. A ledger MUST use all of it to recognize a call, and need not store it.
	Request json.RawMessage
	// Most is what the call can use. The ledger reserves it before the call.
	Most Usage
}
