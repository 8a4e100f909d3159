package llm

import (
	"context"
	"encoding/json"
)

// Model answers turns of a conversation.
type Model interface {
	// Turn asks for the next message of the model. text receives parts of the answer's text as they
	// arrive; it may be nil. On an error the reply has the usage that is known, which the provider may
	// charge. repute.ErrUnavailable: the provider refuses for now, or the answer broke off.
	// repute.ErrInvalid: the request or the answer is malformed.
	Turn(ctx context.Context, r Request, text func(string)) (Reply, error)
}

// Request is a turn of a conversation. Its JSON is the same for the same turn, so that a journal finds a
// call that was made before.
type Request struct {
	Model       string    `json:"model"`
	System      string    `json:"system"`
	Messages    []Message `json:"messages"`
	Tools       []ToolDef `json:"tools,omitempty"`
	Temperature *float64  `json:"temperature,omitempty"`
	MaxTokens   int64     `json:"maxTokens"`
}

// Roles of messages.
const (
	RoleUser      = "user"
	RoleAssistant = "assistant"
	RoleTool      = "tool"
)

// Message is a part of a conversation.
type Message struct {
	Role string `json:"role"`
	Text string `json:"text,omitempty"`
	// Calls are of RoleAssistant alone.
	Calls []ToolCall `json:"calls,omitempty"`
	// Results are of RoleTool alone: one for each call of the message before.
	Results []ToolResult `json:"results,omitempty"`
}

// ToolDef describes a tool to the model.
type ToolDef struct {
	Name        string          `json:"name"` // letters, digits, _ and -, at most 64 bytes
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"` // JSON Schema of an object
}

// ToolCall is a call of a tool that the model asks for.
type ToolCall struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Input string `json:"input"` // what the model wrote, which need not be JSON
	// Signature is an opaque value of the provider, base64, that the next request MUST repeat; often empty.
	Signature string `json:"signature,omitempty"`
}

// ToolResult is the answer to a ToolCall.
type ToolResult struct {
	ID     string `json:"id"` // of the call
	Name   string `json:"name"`
	Text   string `json:"text"`
	Failed bool   `json:"failed,omitempty"`
}

// Reply is the model's message.
type Reply struct {
	Text  string     `json:"text"`
	Calls []ToolCall `json:"calls,omitempty"`
	Stop  Stop       `json:"stop"`
	Usage Usage      `json:"usage"`
}

// Stop is why the model ended its message.
type Stop string

// Reasons to stop.
const (
	StopEnd     Stop = "end"     // the model is done
	StopTools   Stop = "tools"   // it waits for the results of its calls
	StopLength  Stop = "length"  // its tokens are used up
	StopRefused Stop = "refused" // the provider or the model declined
)

// Usage is what a turn used.
type Usage struct {
	Input  int64 `json:"inputTokens"`
	Output int64 `json:"outputTokens"`
}

// Total is the number of tokens that count against a budget.
func (u Usage) Total() int64 { return u.Input + u.Output }

// bytesPerToken is a low estimate of how much text a token is, so that an estimate of tokens is high.
const bytesPerToken = 3

// Estimate returns the most tokens that the turn is expected to use: its text at three bytes a token and all
// tokens that the answer may have. A model that counts more tokens passes it by the difference, once.
func (r *Request) Estimate() Usage {
	size := len(r.System)
	for _, m := range r.Messages {
		size += len(m.Text)
		for _, c := range m.Calls {
			size += len(c.Name) + len(c.Input)
		}
		for _, t := range m.Results {
			size += len(t.Text)
		}
	}
	for _, t := range r.Tools {
		size += len(t.Name) + len(t.Description) + len(t.Schema)
	}
	return Usage{Input: int64(size/bytesPerToken + 1), Output: r.MaxTokens}
}
