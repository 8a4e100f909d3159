package model

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"google.golang.org/genai"

	"repute"
	"repute/agent/llm"
	"repute/agent/llm/modelfile"
)

// googleModel asks Google's Gemini API.
type googleModel struct {
	client *genai.Client
	entry  modelfile.Entry
}

// newGoogle returns a client of the Gemini API. Its retries are bounded, because the budget has reserved a call once.
// repute.ErrInvalid: the client refuses its configuration.
func newGoogle(ctx context.Context, e modelfile.Entry, key string, hc *http.Client) (*googleModel, error) {
	if key == "" {
		key = "none" // the client wants a key, and a server of its own ignores it
	}
	base := e.BaseURL
	if base == "" {
		base = "https://generativelanguage.googleapis.com/" // else a variable of the environment could name another
	}
	c, err := genai.NewClient(ctx, &genai.ClientConfig{APIKey: key, Backend: genai.BackendGeminiAPI, HTTPClient: hc,
		HTTPOptions: genai.HTTPOptions{BaseURL: base,
			RetryOptions: &genai.HTTPRetryOptions{Attempts: genai.Ptr(int32(maxRetries + 1))}}})
	if err != nil {
		return nil, fmt.Errorf("client of Gemini: %.200s: %w", err.Error(), repute.ErrInvalid)
	}
	return &googleModel{c, e}, nil
}

// Turn implements llm.Model.
//
// The usage of the last part counts, since each part reports the sum so far. A stream without a reason for its end
// was cut.
func (m *googleModel) Turn(ctx context.Context, r llm.Request, text func(string)) (llm.Reply, error) {
	contents, config, err := m.params(&r)
	if err != nil {
		return llm.Reply{}, err
	}
	var out llm.Reply
	var ended genai.FinishReason
	for chunk, err := range m.client.Models.GenerateContentStream(ctx, r.Model, contents, config) {
		if err != nil {
			var refused genai.APIError
			if errors.As(err, &refused) {
				return broken(ctx, &r, &out, refused.Code, refused.Message, err)
			}
			return broken(ctx, &r, &out, 0, "", err)
		}
		if u := chunk.UsageMetadata; u != nil {
			out.Usage = llm.Usage{Input: tokensOf(int64(u.PromptTokenCount), int64(u.ToolUsePromptTokenCount)),
				Output: tokensOf(int64(u.CandidatesTokenCount), int64(u.ThoughtsTokenCount))}
		}
		if len(chunk.Candidates) == 0 {
			continue
		}
		if c := chunk.Candidates[0]; c.Content != nil {
			for _, p := range c.Content.Parts {
				if p != nil { // a server may send null
					take(&out, p, text)
				}
			}
		}
		if reason := chunk.Candidates[0].FinishReason; reason != "" {
			ended = reason
		}
	}
	if ended == "" {
		return broken(ctx, &r, &out, 0, "", errCut)
	}
	out.Stop = stopOfGoogle(ended, len(out.Calls))
	return whole(&r, &out)
}

// take adds a part of an answer. Thoughts are left out.
//
// Calls without an id get one of their number, because results are matched by id. The signature of a thought MUST be
// sent back with its call, as the API asks for it.
func take(out *llm.Reply, p *genai.Part, text func(string)) {
	switch {
	case p.FunctionCall != nil:
		input, err := json.Marshal(p.FunctionCall.Args)
		if err != nil || p.FunctionCall.Args == nil {
			input = []byte("{}")
		}
		id := p.FunctionCall.ID
		if id == "" {
			id = fmt.Sprintf("call_%d", len(out.Calls)+1)
		}
		out.Calls = append(out.Calls, llm.ToolCall{ID: id, Name: p.FunctionCall.Name, Input: string(input),
			Signature: base64.StdEncoding.EncodeToString(p.ThoughtSignature)})
	case p.Text != "" && !p.Thought:
		out.Text += p.Text
		say(text, p.Text)
	}
}

// stopOfGoogle is why the model ended.
// Every reason but STOP and MAX_TOKENS is a refusal: safety, recitation, a call that is malformed.
func stopOfGoogle(reason genai.FinishReason, calls int) llm.Stop {
	switch {
	case reason == genai.FinishReasonMaxTokens:
		return llm.StopLength
	case reason != genai.FinishReasonStop:
		return llm.StopRefused
	case calls > 0:
		return llm.StopTools
	}
	return llm.StopEnd
}

// params is the request in Google's form.
func (m *googleModel) params(r *llm.Request) (contents []*genai.Content, c *genai.GenerateContentConfig, err error) {
	c = &genai.GenerateContentConfig{MaxOutputTokens: int32(min(tokens(r, &m.entry), 1<<30))}
	if r.System != "" {
		c.SystemInstruction = &genai.Content{Parts: []*genai.Part{{Text: r.System}}}
	}
	if r.Temperature != nil {
		c.Temperature = genai.Ptr(float32(*r.Temperature))
	}
	var functions []*genai.FunctionDeclaration
	for _, t := range r.Tools {
		functions = append(functions, &genai.FunctionDeclaration{Name: t.Name, Description: t.Description,
			ParametersJsonSchema: t.Schema})
	}
	if len(functions) > 0 {
		c.Tools = []*genai.Tool{{FunctionDeclarations: functions}}
	}
	for _, msg := range r.Messages {
		content, err := googleContent(msg)
		if err != nil {
			return nil, nil, err
		}
		contents = append(contents, content)
	}
	return contents, c, nil
}

// googleContent is a message in Google's form.
// A call's input is an object here, as the API has no other form; another provider's conversation that has none is
// refused.
func googleContent(m llm.Message) (*genai.Content, error) {
	out := &genai.Content{Role: genai.RoleUser}
	if m.Role == llm.RoleAssistant {
		out.Role = genai.RoleModel
	}
	if m.Text != "" {
		out.Parts = append(out.Parts, &genai.Part{Text: m.Text})
	}
	for _, c := range m.Calls {
		var args map[string]any
		if err := json.Unmarshal([]byte(c.Input), &args); err != nil {
			return nil, repute.Invalid("messages", "a call has no object as its input", "a JSON object")
		}
		signature, err := base64.StdEncoding.DecodeString(c.Signature)
		if err != nil {
			return nil, repute.Invalid("messages", "a call has a signature that is no base64", "what the provider sent")
		}
		out.Parts = append(out.Parts, &genai.Part{FunctionCall: &genai.FunctionCall{ID: c.ID, Name: c.Name, Args: args},
			ThoughtSignature: signature})
	}
	for _, t := range m.Results {
		key := "output"
		if t.Failed {
			key = "error"
		}
		out.Parts = append(out.Parts, &genai.Part{FunctionResponse: &genai.FunctionResponse{ID: t.ID, Name: t.Name,
			Response: map[string]any{key: t.Text}}})
	}
	return out, nil
}
