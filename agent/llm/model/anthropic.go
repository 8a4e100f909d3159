package model

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"repute/agent/llm"
	"repute/agent/llm/modelfile"
)

// anthropicModel asks Anthropic's Messages API.
type anthropicModel struct {
	messages anthropic.MessageService
	entry    modelfile.Entry
}

// newAnthropic returns a client without a key where the server at the base URL needs none.
func newAnthropic(e modelfile.Entry, key string, hc *http.Client) *anthropicModel {
	opts := []option.RequestOption{option.WithEnvironmentProduction(), option.WithHTTPClient(hc),
		option.WithMaxRetries(maxRetries), option.WithoutOpenTelemetry()}
	if key != "" {
		opts = append(opts, option.WithAPIKey(key))
	}
	if e.BaseURL != "" {
		opts = append(opts, option.WithBaseURL(e.BaseURL))
	}
	// A whole client would read variables of the environment, and link every other service of the provider.
	return &anthropicModel{anthropic.NewMessageService(opts...), e}
}

// Turn implements llm.Model.
//
// A stream that ends without message_stop was cut, although the HTTP answer may look whole. Parts of the text are
// passed on as they come; a turn that fails later does not take them back.
func (m *anthropicModel) Turn(ctx context.Context, r llm.Request, text func(string)) (llm.Reply, error) {
	params, err := m.params(&r)
	if err != nil {
		return llm.Reply{}, err
	}
	stream := m.messages.NewStreaming(ctx, params)
	defer stream.Close()
	var got anthropic.Message
	stopped, inputs := false, map[int64]string{}
	for stream.Next() {
		event := stream.Current()
		if err := got.Accumulate(event); err != nil {
			reply := replyOfAnthropic(&got, inputs)
			return broken(ctx, &r, &reply, 0, "", err)
		}
		stopped = stopped || event.Type == "message_stop"
		if event.Type == "content_block_delta" && event.Delta.Type == "text_delta" {
			say(text, event.Delta.Text)
		}
		if event.Type == "content_block_delta" {
			inputs[event.Index] += event.Delta.PartialJSON
		}
	}
	reply := replyOfAnthropic(&got, inputs)
	if err := stream.Err(); err != nil {
		var refused *anthropic.Error
		if errors.As(err, &refused) {
			return broken(ctx, &r, &reply, refused.StatusCode, refused.RawJSON(), err)
		}
		return broken(ctx, &r, &reply, 0, "", err)
	}
	if !stopped {
		return broken(ctx, &r, &reply, 0, "", errCut)
	}
	return whole(&r, &reply)
}

// params is the request in Anthropic's form.
// The members of a schema other than type and properties, such as required and $defs, are extra fields of the
// client's type.
func (m *anthropicModel) params(r *llm.Request) (p anthropic.MessageNewParams, err error) {
	p = anthropic.MessageNewParams{Model: r.Model, MaxTokens: tokens(r, &m.entry)}
	if r.System != "" {
		p.System = []anthropic.TextBlockParam{{Text: r.System}}
	}
	if r.Temperature != nil {
		p.Temperature = param.NewOpt(*r.Temperature)
	}
	for _, msg := range r.Messages {
		p.Messages = append(p.Messages, anthropicMessage(msg))
	}
	for _, t := range r.Tools {
		schema, err := schemaOf(&t)
		if err != nil {
			return p, err
		}
		in := anthropic.ToolInputSchemaParam{Properties: schema["properties"], ExtraFields: map[string]any{}}
		for name, v := range schema {
			if name != "properties" && name != "type" {
				in.ExtraFields[name] = v
			}
		}
		p.Tools = append(p.Tools, anthropic.ToolUnionParam{OfTool: &anthropic.ToolParam{Name: t.Name,
			Description: param.NewOpt(t.Description), InputSchema: in}})
	}
	return p, nil
}

// anthropicMessage is a message in Anthropic's form.
// Results of tools are blocks of a message of the user's role.
func anthropicMessage(m llm.Message) anthropic.MessageParam {
	var blocks []anthropic.ContentBlockParamUnion
	if m.Text != "" {
		blocks = append(blocks, anthropic.NewTextBlock(m.Text))
	}
	for _, c := range m.Calls {
		blocks = append(blocks, anthropic.NewToolUseBlock(c.ID, json.RawMessage(c.Input), c.Name))
	}
	for _, t := range m.Results {
		blocks = append(blocks, anthropic.NewToolResultBlock(t.ID, t.Text, t.Failed))
	}
	if m.Role == llm.RoleAssistant {
		return anthropic.NewAssistantMessage(blocks...)
	}
	return anthropic.NewUserMessage(blocks...)
}

// replyOfAnthropic reads an answer. Tokens of the cache count like all that the model reads. inputs are the
// streamed inputs of calls by their block, because the client replaces one that is no JSON by an empty object.
func replyOfAnthropic(m *anthropic.Message, inputs map[int64]string) llm.Reply {
	u := m.Usage
	out := llm.Reply{Stop: llm.StopEnd, Usage: llm.Usage{
		Input: tokensOf(u.InputTokens, u.CacheCreationInputTokens, u.CacheReadInputTokens), Output: u.OutputTokens}}
	for i, b := range m.Content {
		switch b.Type {
		case "text":
			out.Text += b.Text
		case "tool_use":
			out.Calls = append(out.Calls, llm.ToolCall{ID: b.ID, Name: b.Name,
				Input: cmp.Or(inputs[int64(i)], string(b.Input))})
		}
	}
	switch m.StopReason {
	case anthropic.StopReasonToolUse:
		out.Stop = llm.StopTools
	case anthropic.StopReasonMaxTokens:
		out.Stop = llm.StopLength
	case anthropic.StopReasonRefusal:
		out.Stop = llm.StopRefused
	}
	return out
}
