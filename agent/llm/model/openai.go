package model

import (
	"context"
	"errors"
	"net/http"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"repute/agent/llm"
	"repute/agent/llm/modelfile"
)

// openaiModel asks a server of Chat Completions.
type openaiModel struct {
	chat  openai.ChatService
	entry modelfile.Entry
}

// newOpenAI returns a client of OpenAI, or of a server that speaks its protocol at the base URL.
func newOpenAI(e modelfile.Entry, key string, hc *http.Client) *openaiModel {
	opts := []option.RequestOption{option.WithEnvironmentProduction(), option.WithHTTPClient(hc),
		option.WithMaxRetries(maxRetries)}
	if key == "" {
		key = "none" // the client wants a key, and a server of its own ignores it
	}
	opts = append(opts, option.WithAPIKey(key))
	if e.BaseURL != "" {
		opts = append(opts, option.WithBaseURL(e.BaseURL))
	}
	return &openaiModel{openai.NewChatService(opts...), e} // NewClient would read variables of the environment
}

// Turn implements llm.Model.
//
// Only the first choice is read, since none other is asked for. A stream without a reason for its end was cut.
func (m *openaiModel) Turn(ctx context.Context, r llm.Request, text func(string)) (llm.Reply, error) {
	params, err := m.params(&r)
	if err != nil {
		return llm.Reply{}, err
	}
	stream := m.chat.Completions.NewStreaming(ctx, params)
	defer stream.Close()
	var got openai.ChatCompletionAccumulator
	for stream.Next() {
		chunk := stream.Current()
		if !got.AddChunk(chunk) {
			reply := replyOfOpenAI(&got)
			return broken(ctx, &r, &reply, 0, "", errors.New("a part of the answer fits no other"))
		}
		if len(chunk.Choices) > 0 {
			say(text, chunk.Choices[0].Delta.Content)
		}
	}
	reply := replyOfOpenAI(&got)
	if err := stream.Err(); err != nil {
		var refused *openai.Error
		if errors.As(err, &refused) {
			return broken(ctx, &r, &reply, refused.StatusCode, refused.Message, err)
		}
		return broken(ctx, &r, &reply, 0, "", err)
	}
	if len(got.Choices) == 0 || got.Choices[0].FinishReason == "" {
		return broken(ctx, &r, &reply, 0, "", errCut)
	}
	return whole(&r, &reply)
}

// params is the request in OpenAI's form. max_tokens is the older name, which all servers of this API know
// but OpenAI's own reasoning models, which want the newer one.
func (m *openaiModel) params(r *llm.Request) (p openai.ChatCompletionNewParams, err error) {
	p = openai.ChatCompletionNewParams{Model: r.Model,
		StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: param.NewOpt(true)}}
	if most := param.NewOpt(tokens(r, &m.entry)); m.entry.BaseURL == "" {
		p.MaxCompletionTokens = most
	} else {
		p.MaxTokens = most
	}
	if r.Temperature != nil {
		p.Temperature = param.NewOpt(*r.Temperature)
	}
	if r.System != "" {
		p.Messages = append(p.Messages, openai.SystemMessage(r.System))
	}
	for _, msg := range r.Messages {
		p.Messages = append(p.Messages, openaiMessages(msg)...)
	}
	for _, t := range r.Tools {
		schema, err := schemaOf(&t)
		if err != nil {
			return p, err
		}
		p.Tools = append(p.Tools, openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{Name: t.Name,
			Description: param.NewOpt(t.Description), Parameters: schema}))
	}
	return p, nil
}

// openaiMessages is a message in OpenAI's form, in which each result is a message.
// The text of an assistant's message that only calls tools is left out, and not written as an empty text.
func openaiMessages(m llm.Message) (out []openai.ChatCompletionMessageParamUnion) {
	switch m.Role {
	case llm.RoleTool:
		for _, t := range m.Results {
			out = append(out, openai.ToolMessage(t.Text, t.ID))
		}
		return out
	case llm.RoleUser:
		return append(out, openai.UserMessage(m.Text))
	}
	msg := &openai.ChatCompletionAssistantMessageParam{}
	if m.Text != "" {
		msg.Content.OfString = param.NewOpt(m.Text)
	}
	for _, c := range m.Calls {
		msg.ToolCalls = append(msg.ToolCalls, openai.ChatCompletionMessageToolCallUnionParam{
			OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{ID: c.ID,
				Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{Name: c.Name, Arguments: c.Input}}})
	}
	return append(out, openai.ChatCompletionMessageParamUnion{OfAssistant: msg})
}

// replyOfOpenAI reads an answer.
func replyOfOpenAI(c *openai.ChatCompletionAccumulator) llm.Reply {
	out := llm.Reply{Stop: llm.StopEnd, Usage: llm.Usage{Input: c.Usage.PromptTokens, Output: c.Usage.CompletionTokens}}
	if len(c.Choices) == 0 {
		return out
	}
	choice := c.Choices[0]
	out.Text = choice.Message.Content
	for _, t := range choice.Message.ToolCalls {
		out.Calls = append(out.Calls, llm.ToolCall{ID: t.ID, Name: t.Function.Name, Input: t.Function.Arguments})
	}
	switch choice.FinishReason {
	case "tool_calls":
		out.Stop = llm.StopTools
	case "length":
		out.Stop = llm.StopLength
	case "content_filter":
		out.Stop = llm.StopRefused
	}
	return out
}
