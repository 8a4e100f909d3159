package modeltest

import (
	"encoding/json"
	"fmt"
)

// object is a JSON object.
type object = map[string]any

// anthropicSpeaker speaks Anthropic's Messages.
type anthropicSpeaker struct{}

func (anthropicSpeaker) stop(t Turn) string {
	switch {
	case t.Length:
		return "max_tokens"
	case t.Refused:
		return "refusal"
	case len(t.Calls) > 0:
		return "tool_use"
	}
	return "end_turn"
}

func (a anthropicSpeaker) whole(t Turn) any {
	content := []any{}
	if t.Text != "" {
		content = append(content, object{"type": "text", "text": t.Text})
	}
	for i, c := range t.Calls {
		content = append(content, object{"type": "tool_use", "id": fmt.Sprintf("toolu_%d", i+1), "name": c.Name,
			"input": json.RawMessage(c.Input)})
	}
	return object{"id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", "content": content,
		"stop_reason": a.stop(t), "stop_sequence": nil,
		"usage": object{"input_tokens": t.Input, "output_tokens": t.Output}}
}

func (a anthropicSpeaker) events(t Turn) (out []string) {
	add := func(kind string, v object) {
		v["type"] = kind
		out = append(out, "event: "+kind+"\n"+data(v))
	}
	add("message_start", object{"message": object{"id": "msg_1", "type": "message", "role": "assistant",
		"model": "scripted", "content": []any{}, "stop_reason": nil, "stop_sequence": nil,
		"usage": object{"input_tokens": t.Input, "output_tokens": 1}}})
	index := 0
	block := func(start object, deltas []object) {
		add("content_block_start", object{"index": index, "content_block": start})
		for _, d := range deltas {
			add("content_block_delta", object{"index": index, "delta": d})
		}
		add("content_block_stop", object{"index": index})
		index++
	}
	if t.Text != "" {
		var deltas []object
		for _, w := range words(t.Text) {
			deltas = append(deltas, object{"type": "text_delta", "text": w})
		}
		block(object{"type": "text", "text": ""}, deltas)
	}
	for i, c := range t.Calls {
		block(object{"type": "tool_use", "id": fmt.Sprintf("toolu_%d", i+1), "name": c.Name, "input": object{}},
			[]object{{"type": "input_json_delta", "partial_json": c.Input}})
	}
	add("message_delta", object{"delta": object{"stop_reason": a.stop(t), "stop_sequence": nil},
		"usage": object{"output_tokens": t.Output}})
	add("message_stop", object{})
	return out
}

// openaiSpeaker speaks OpenAI's Chat Completions.
type openaiSpeaker struct{}

func (openaiSpeaker) stop(t Turn) string {
	switch {
	case t.Length:
		return "length"
	case t.Refused:
		return "content_filter"
	case len(t.Calls) > 0:
		return "tool_calls"
	}
	return "stop"
}

func (openaiSpeaker) calls(t Turn, indexed bool) (out []any) {
	for i, c := range t.Calls {
		call := object{"id": fmt.Sprintf("call_%d", i+1), "type": "function",
			"function": object{"name": c.Name, "arguments": c.Input}}
		if indexed {
			call["index"] = i
		}
		out = append(out, call)
	}
	return out
}

func (openaiSpeaker) usage(t Turn) object {
	return object{"prompt_tokens": t.Input, "completion_tokens": t.Output, "total_tokens": t.Input + t.Output}
}

func (o openaiSpeaker) whole(t Turn) any {
	message := object{"role": "assistant", "content": t.Text}
	if len(t.Calls) > 0 {
		message["tool_calls"] = o.calls(t, false)
	}
	return object{"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "scripted",
		"choices": []any{object{"index": 0, "message": message, "finish_reason": o.stop(t)}}, "usage": o.usage(t)}
}

func (o openaiSpeaker) events(t Turn) (out []string) {
	add := func(choices []any, usage any) {
		out = append(out, data(object{"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1,
			"model": "scripted", "choices": choices, "usage": usage}))
	}
	delta := func(d object, finish any) { add([]any{object{"index": 0, "delta": d, "finish_reason": finish}}, nil) }
	delta(object{"role": "assistant", "content": ""}, nil)
	for _, w := range words(t.Text) {
		delta(object{"content": w}, nil)
	}
	if len(t.Calls) > 0 {
		delta(object{"tool_calls": o.calls(t, true)}, nil)
	}
	delta(object{}, o.stop(t))
	add([]any{}, o.usage(t))
	return append(out, "data: [DONE]\n\n")
}

// data is an event of a stream.
func data(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		raw, _ = json.Marshal(object{"error": err.Error()}) // a text is always JSON
	}
	return "data: " + string(raw) + "\n\n"
}
