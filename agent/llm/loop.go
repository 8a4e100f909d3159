package llm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"repute"
	"repute/internal/jsonwalk"
)

// Tool is a tool that the model may call.
type Tool struct {
	ToolDef
	// Run does the call. input is a JSON object. An error that the ledger does not end the run for is told
	// to the model.
	Run func(ctx context.Context, input json.RawMessage) (string, error)
	// Before is called before the call is counted or made, for example to ask a person; nil for none. Its
	// error is treated like one of Run.
	Before func(ctx context.Context, input json.RawMessage) error
	// Direct says that Run counts and journals the call itself, so that the ledger is not asked.
	Direct bool
	// Once is that of ToolUse.
	Once bool
}

// Bounds of a conversation. What is 0 has a default.
type Bounds struct {
	Turns     int           // calls of the model, 20 when 0
	ToolCalls int           // calls of tools, 50 when 0
	ToolBytes int           // bytes of one result that the model sees, 64 KiB when 0
	AllBytes  int           // bytes of all results, 1 MiB when 0
	Wall      time.Duration // enforced by Within, not by Run; includes preparation and fallback; 5 minutes when 0
}

// Defaults of Bounds.
const (
	defaultTurns     = 20
	defaultToolCalls = 50
	defaultToolBytes = 64 << 10
	defaultAllBytes  = 1 << 20
	defaultWall      = 5 * time.Minute
	// MaxCallsOfTurn bounds the calls of one message of the model; further ones are refused.
	MaxCallsOfTurn = 16
	// maxInput bounds the input of a call, in bytes.
	maxInput = 256 << 10
	// maxText bounds the text of an answer, in bytes.
	maxText = 128 << 10
	// defaultMaxTokens is what an answer may have where the agent does not say.
	defaultMaxTokens = 4096
)

// Loop is a conversation with a model that ends with an answer.
type Loop struct {
	Model       Model
	ModelName   string // of the provider
	System      string
	Temperature *float64
	MaxTokens   int64 // of one answer, 4096 when 0
	Tools       []Tool
	Bounds      Bounds
	Ledger      Ledger
	// Text receives parts of the model's text as they arrive; nil: nobody does.
	Text func(turn int, text string)
}

// Answer is how a conversation ended.
type Answer struct {
	Text      string `json:"text"`
	Turns     int    `json:"turns"`
	ToolCalls int    `json:"toolCalls"`
	Usage     Usage  `json:"usage"`
	// Refused counts calls beyond MaxCallsOfTurn, which were not made; the model was told so.
	Refused int `json:"refusedCalls,omitempty"`
}

var (
	// ErrRefused is returned when the model declines to answer.
	ErrRefused = errors.New("the model declined to answer")
	// ErrCut is returned when the tokens of an answer are used up before its end. The Answer has its beginning.
	ErrCut = errors.New("the answer is not complete: its tokens were used up")
)

// conversation is the state of a Loop that runs.
type conversation struct {
	*Loop
	tools    map[string]*Tool
	messages []Message
	answer   Answer
	bytes    int // of results
}

// Run has the conversation that begins with a message of the user. repute.ErrLimited: a bound or a budget is used up.
// The Answer has the turns, calls and tokens also on an error. Run does not enforce Bounds.Wall: callers MUST call it
// inside Within.
func (l *Loop) Run(ctx context.Context, user string) (Answer, error) {
	c := &conversation{Loop: l, tools: make(map[string]*Tool, len(l.Tools)),
		messages: []Message{{Role: RoleUser, Text: user}}}
	for i := range l.Tools {
		c.tools[l.Tools[i].Name] = &l.Tools[i]
	}
	for turn := 1; ; turn++ {
		if most := cmp.Or(l.Bounds.Turns, defaultTurns); turn > most {
			return c.answer, fmt.Errorf("turns: the model did not end after %d: %w", most, repute.ErrLimited)
		}
		if done, err := c.turn(ctx, turn); done || err != nil {
			return c.answer, err
		}
	}
}

// Within does the work of a conversation in the time that Bounds.Wall gives the whole of it. repute.ErrLimited: the
// time is used up.
func Within(ctx context.Context, wall time.Duration, do func(context.Context) (Answer, error)) (Answer, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, cmp.Or(wall, defaultWall), errWall)
	defer cancel()
	answer, err := do(ctx)
	if err != nil && errors.Is(context.Cause(ctx), errWall) {
		err = errWall
	}
	return answer, err
}

// errWall is returned when the time of a conversation is used up.
var errWall = fmt.Errorf("wall time: the conversation took too long: %w", repute.ErrLimited)

// turn asks the model once and makes the calls that it wants. done reports whether it has answered. No call of a reply
// that was refused or cut is made.
func (c *conversation) turn(ctx context.Context, n int) (done bool, err error) {
	reply, err := c.ask(ctx, n)
	c.answer.Turns, c.answer.Usage = n, Usage{c.answer.Usage.Input + reply.Usage.Input,
		c.answer.Usage.Output + reply.Usage.Output}
	if err != nil {
		return false, fmt.Errorf("model %s, turn %d: %w", c.ModelName, n, err)
	}
	if reply.Stop == StopRefused || reply.Stop == StopLength || len(reply.Calls) == 0 {
		c.answer.Text = shortened(reply.Text, maxText, "answer")
		return true, c.stopped(reply.Stop)
	}
	results := make([]ToolResult, 0, len(reply.Calls))
	for i, call := range reply.Calls {
		result := ToolResult{ID: call.ID, Name: call.Name, Failed: true}
		if i >= MaxCallsOfTurn {
			c.answer.Refused++
			result.Text = fmt.Sprintf("not called: one message may call at most %d tools, and this is call %d of %d",
				MaxCallsOfTurn, i+1, len(reply.Calls))
		} else if result, err = c.call(ctx, call); err != nil {
			return false, fmt.Errorf("tool %.64q: %w", call.Name, err)
		}
		results = append(results, result)
	}
	c.messages = append(c.messages, Message{Role: RoleAssistant, Text: shortened(reply.Text, maxText, "message"),
		Calls: sendable(reply.Calls)},
		Message{Role: RoleTool, Results: results})
	return false, nil
}

// stopped returns the error of a conversation whose last message ended for a reason. The text of a message that was
// cut is not complete, and its last call can be unfinished: it is no answer.
func (c *conversation) stopped(why Stop) error {
	switch why {
	case StopRefused:
		return ErrRefused
	case StopLength:
		return fmt.Errorf("%w: raise config.max_tokens, which is %d, or max_tokens of the table of models", ErrCut,
			cmp.Or(c.MaxTokens, defaultMaxTokens))
	}
	return nil
}

// sendable returns calls whose inputs can be sent back to a provider, which takes JSON objects alone.
func sendable(calls []ToolCall) []ToolCall {
	out := make([]ToolCall, len(calls))
	for i, c := range calls {
		out[i] = c
		if _, err := object(c.Input); err != nil {
			out[i].Input = "{}"
		}
	}
	return out
}

// ask makes one call of the model.
func (c *conversation) ask(ctx context.Context, n int) (Reply, error) {
	r := Request{Model: c.ModelName, System: c.System, Messages: c.messages, Temperature: c.Temperature,
		MaxTokens: cmp.Or(c.MaxTokens, defaultMaxTokens)}
	for i := range c.Tools {
		r.Tools = append(r.Tools, c.Tools[i].ToolDef)
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return Reply{}, repute.Invalid("request", err.Error(), "a schema of each tool that is JSON")
	}
	return c.Ledger.Model(ctx, ModelCall{Model: c.ModelName, Turn: n, Request: raw, Most: r.Estimate()},
		func(ctx context.Context) (Reply, error) {
			var text func(string)
			if c.Text != nil {
				text = func(s string) { c.Text(n, s) }
			}
			return c.Model.Turn(ctx, r, text)
		})
}

// call makes one call of a tool. What the model can correct is a failed result; what ends the run is an
// error.
func (c *conversation) call(ctx context.Context, call ToolCall) (ToolResult, error) {
	out := ToolResult{ID: call.ID, Name: call.Name}
	if most := cmp.Or(c.Bounds.ToolCalls, defaultToolCalls); c.answer.ToolCalls >= most {
		return out, fmt.Errorf("tool calls: %d were made: %w", most, repute.ErrLimited)
	}
	c.answer.ToolCalls++
	text, err := c.run(ctx, call)
	if err != nil {
		if ctx.Err() != nil || c.Ledger.Ends(ctx, err) {
			return out, err
		}
		out.Failed, text = true, err.Error()
	}
	out.Text = c.cut(text)
	if c.bytes += len(out.Text); c.bytes > cmp.Or(c.Bounds.AllBytes, defaultAllBytes) {
		return out, fmt.Errorf("results: the tools returned more than %d bytes: %w",
			cmp.Or(c.Bounds.AllBytes, defaultAllBytes),
			repute.ErrLimited)
	}
	return out, nil
}

// run calls a tool through the ledger. A call that names no tool, or has no input, is counted too, so that
// a model which repeats it uses its budget up.
func (c *conversation) run(ctx context.Context, call ToolCall) (string, error) {
	tool := c.tools[call.Name]
	input, bad := object(call.Input)
	if tool == nil {
		bad = fmt.Errorf("there is no tool %.64q", call.Name)
	}
	do := func(ctx context.Context) (string, error) {
		if bad != nil {
			return "", bad
		}
		text, err := tool.Run(ctx, input)
		return c.cut(text), err
	}
	if bad == nil && tool.Before != nil {
		if err := tool.Before(ctx, input); err != nil {
			return "", err
		}
	}
	if bad == nil && tool.Direct {
		return do(ctx)
	}
	return c.Ledger.Tool(ctx, ToolUse{bounded(call.Name, 64), input, tool != nil && tool.Once}, do)
}

// cut shortens a result that is too long for the model.
func (c *conversation) cut(text string) string {
	return shortened(text, cmp.Or(c.Bounds.ToolBytes, defaultToolBytes), "result")
}

// shortened returns the beginning of a text, as UTF-8 without NUL; one that is cut says so at its end.
func shortened(text string, most int, what string) string {
	if len(text) <= most {
		return bounded(text, most)
	}
	return bounded(text, most) + fmt.Sprintf("\n[cut: the %s has %d bytes, %d are shown]", what, len(text), most)
}

// object returns the input of a call as a JSON object. Missing input is an empty one. A repeated member is refused,
// because readers differ in which one they take: a person could confirm one, and a tool use the other.
func object(text string) (json.RawMessage, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return json.RawMessage("{}"), nil
	}
	var members map[string]json.RawMessage
	if len(text) > maxInput || json.Unmarshal([]byte(text), &members) != nil || members == nil {
		return json.RawMessage("{}"), repute.Invalid("input", "is no JSON object, or is too long",
			"an object by the tool's schema")
	}
	if err := repute.CheckJSON("input", []byte(text)); err != nil {
		return json.RawMessage("{}"), err
	}
	repeated := ""
	jsonwalk.Duplicates([]byte(text), func(pointer string) bool {
		repeated = pointer
		return false
	})
	if repeated != "" {
		return json.RawMessage("{}"), repute.Invalid("input", fmt.Sprintf("has the member %.100q twice", repeated),
			"each member once")
	}
	return json.RawMessage(text), nil
}

// bounded returns the beginning of a text, as UTF-8 without NUL.
func bounded(text string, most int) string { return jsonwalk.Clean(jsonwalk.Cut(text, most)) }
