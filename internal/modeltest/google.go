package modeltest

import (
	"encoding/json"
	"net/http"
	"strings"
)

// googleSpeaker speaks Google's Gemini API: generateContent and streamGenerateContent. The input of a call MUST be a
// JSON object, because the format has no place for anything else.
type googleSpeaker struct{}

// isGoogle reports whether a path is of the Gemini API, and whether it asks for a stream.
func isGoogle(path string) (is, stream bool) {
	stream = strings.HasSuffix(path, ":streamGenerateContent")
	return stream || strings.HasSuffix(path, ":generateContent"), stream
}

func (googleSpeaker) stop(t Turn) string {
	switch {
	case t.Length:
		return "MAX_TOKENS"
	case t.Refused:
		return "SAFETY"
	}
	return "STOP"
}

// answer is a whole answer or a part of one; the last part has a reason why it ends.
func (googleSpeaker) answer(t Turn, parts []any, reason string) object {
	candidate := object{"index": 0, "content": object{"role": "model", "parts": parts}}
	if reason != "" {
		candidate["finishReason"] = reason
	}
	return object{"candidates": []any{candidate}, "modelVersion": "scripted", "usageMetadata": object{
		"promptTokenCount": t.Input, "candidatesTokenCount": t.Output, "totalTokenCount": t.Input + t.Output}}
}

func (googleSpeaker) calls(t Turn) (out []any) {
	for _, c := range t.Calls {
		out = append(out, object{"functionCall": object{"name": c.Name, "args": json.RawMessage(c.Input)},
			"thoughtSignature": "c2lnbmVk"})
	}
	return out
}

func (g googleSpeaker) whole(t Turn) any {
	parts := g.calls(t)
	if t.Text != "" {
		parts = append([]any{object{"text": t.Text}}, parts...)
	}
	return g.answer(t, parts, g.stop(t))
}

func (g googleSpeaker) events(t Turn) (out []string) {
	for _, w := range words(t.Text) {
		out = append(out, data(g.answer(t, []any{object{"text": w}}, "")))
	}
	if calls := g.calls(t); len(calls) > 0 {
		out = append(out, data(g.answer(t, calls, "")))
	}
	return append(out, data(g.answer(t, []any{object{"text": ""}}, g.stop(t))))
}

// refusal is the body of an error, in the form of the provider.
func refusal(path string, status int) string {
	body := object{"type": "error", "error": object{"type": "refused", "message": "the script refuses"}}
	if is, _ := isGoogle(path); is {
		body["error"] = object{"code": status, "message": "the script refuses", "status": http.StatusText(status)}
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return "{}" // texts and numbers are always JSON
	}
	return string(raw)
}
