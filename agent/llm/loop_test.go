package llm_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"repute"
	"repute/agent/llm"
	"repute/agent/llm/model"
	"repute/agent/llm/modelfile"
	"repute/internal/modeltest"
)

// providers are the wire formats that the scripted model speaks.
func providers() map[string]string {
	return map[string]string{"anthropic": "/", "openai": "/v1/", "google": "/"}
}

// ask runs a loop against a scripted model over a provider's wire format.
func ask(t *testing.T, provider string, s *modeltest.Server, change func(*llm.Loop)) (llm.Answer, error) {
	t.Helper()
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	m, err := model.New(t.Context(), modelfile.Entry{Provider: provider, Model: "scripted",
		BaseURL: srv.URL + providers()[provider]}, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	l := &llm.Loop{Model: m, ModelName: "scripted", System: "You add numbers.", MaxTokens: 100, Ledger: &llm.Meter{},
		Tools: []llm.Tool{{ToolDef: llm.ToolDef{Name: "add", Description: "adds",
			Schema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false}`)},
			Run: func(_ context.Context, in json.RawMessage) (string, error) { return "sum of " + string(in), nil }}}}
	if change != nil {
		change(l)
	}
	return llm.Within(t.Context(), l.Bounds.Wall, func(ctx context.Context) (llm.Answer, error) {
		return l.Run(ctx, "What is the sum?")
	})
}

// isObject reports whether a text is a JSON object.
func isObject(text string) bool {
	var v map[string]any
	return json.Unmarshal([]byte(text), &v) == nil
}

// A turn with a tool, over all wire formats: the model gets the tools, the tool gets the input, the model
// gets the result, and the text streams in parts that make up the answer.
func TestToolCall(t *testing.T) {
	for provider := range providers() {
		t.Run(provider, func(t *testing.T) {
			var streamed strings.Builder
			parts := 0
			s := modeltest.New(modeltest.Turn{Text: "I call it.",
				Calls: []modeltest.Call{{Name: "add", Input: `{"a": 7}`}}, Input: 10,
				Output: 6}, modeltest.Turn{Text: "It is seven of course.", Input: 30, Output: 9})
			got, err := ask(t, provider, s, func(l *llm.Loop) {
				l.Text = func(turn int, part string) {
					if turn == 2 {
						streamed.WriteString(part)
						parts++
					}
				}
			})
			if err != nil || got.Text != "It is seven of course." || got.Turns != 2 || got.ToolCalls != 1 {
				t.Fatalf("%+v, %v", got, err)
			}
			if got.Usage != (llm.Usage{Input: 40, Output: 15}) {
				t.Errorf("usage %+v", got.Usage)
			}
			if streamed.String() != got.Text || parts < 3 {
				t.Errorf("streamed %q in %d parts", streamed.String(), parts)
			}
			seen := s.Seen()
			if len(seen) != 2 || len(seen[0].Tools) != 1 || seen[0].Tools[0] != "add" ||
				!seen[0].Contains("You add numbers.") {
				t.Fatalf("first request %+v", seen[0])
			}
			if !seen[1].Contains(`sum of {"a":`) || !seen[1].Contains("I call it.") {
				t.Errorf("second request has texts %q", seen[1].Texts)
			}
		})
	}
}

// What a model does wrong is told to it or ends the conversation, with the kind of the error.
func TestBadModel(t *testing.T) {
	call := func(name, input string) modeltest.Turn {
		return modeltest.Turn{Calls: []modeltest.Call{{Name: name, Input: input}}}
	}
	end := modeltest.Turn{Text: "done"}
	for name, c := range map[string]struct {
		turns []modeltest.Turn
		kind  error  // nil: the conversation ends well
		told  string // what the second request contains
	}{
		"unknown tool":          {[]modeltest.Turn{call("rm", `{}`), end}, nil, `there is no tool "rm"`},
		"input that is no JSON": {[]modeltest.Turn{call("add", `{"a": `), end}, nil, "is no JSON object"},
		"input that is a list":  {[]modeltest.Turn{call("add", `[1]`), end}, nil, "is no JSON object"},
		"calls for ever":        {[]modeltest.Turn{call("add", `{"a":1}`)}, repute.ErrLimited, ""},
		"unknown tool for ever": {[]modeltest.Turn{call("rm", `{}`)}, repute.ErrLimited, ""},
		"429":                   {[]modeltest.Turn{{Status: 429}}, repute.ErrUnavailable, ""},
		"500":                   {[]modeltest.Turn{{Status: 500}}, repute.ErrUnavailable, ""},
		"400":                   {[]modeltest.Turn{{Status: 400}}, repute.ErrInvalid, ""},
		"stream is cut":         {[]modeltest.Turn{{Text: "one two three four", Cut: true}}, repute.ErrUnavailable, ""},
		"stream of noise": {[]modeltest.Turn{{Raw: "data: {not json\n\ndata: [DONE]\n\n"}},
			repute.ErrUnavailable, ""},
		"page instead": {[]modeltest.Turn{{Raw: "<html>hello</html>"}}, repute.ErrUnavailable, ""},
		"429 once":     {[]modeltest.Turn{{Status: 429}, end}, nil, ""},
	} {
		for provider := range providers() {
			t.Run(name+"/"+provider, func(t *testing.T) {
				if input := c.turns[0].Calls; provider == "google" && len(input) > 0 && !isObject(input[0].Input) {
					t.Skip("its format has no call whose input is no object")
				}
				s := modeltest.New(c.turns...)
				got, err := ask(t, provider, s, nil)
				if c.kind == nil && (err != nil || got.Text != "done") || c.kind != nil && !errors.Is(err, c.kind) {
					t.Fatalf("%+v, %v, want %v", got, err, c.kind)
				}
				if c.told != "" && !s.Seen()[1].Contains(c.told) {
					t.Errorf("the model is not told %q: %q", c.told, s.Seen()[1].Texts)
				}
				if n := len(s.Seen()); n > 20 {
					t.Errorf("%d requests", n)
				}
			})
		}
	}
}

// No call of a reply that was refused or cut is made: the conversation ends.
func TestStoppedCalls(t *testing.T) {
	calls := []modeltest.Call{{Name: "add", Input: `{"a": 7}`}}
	for name, turn := range map[string]modeltest.Turn{
		"refused": {Text: "I call it.", Calls: calls, Refused: true},
		"cut":     {Text: "I call it.", Calls: calls, Length: true},
	} {
		for provider := range providers() {
			t.Run(name+"/"+provider, func(t *testing.T) {
				s, made := modeltest.New(turn, modeltest.Turn{Text: "done"}), 0
				got, err := ask(t, provider, s, func(l *llm.Loop) {
					l.Tools[0].Run = func(context.Context, json.RawMessage) (string, error) {
						made++
						return "", nil
					}
				})
				if made != 0 || got.ToolCalls != 0 || len(s.Seen()) != 1 || got.Text != "I call it." {
					t.Errorf("%d calls in %d requests, %+v", made, len(s.Seen()), got)
				}
				if errors.Is(err, llm.ErrRefused) != turn.Refused || errors.Is(err, llm.ErrCut) != turn.Length {
					t.Errorf("%+v, %v", got, err)
				}
			})
		}
	}
}

// Results are cut for the model, and all results together are bounded.
func TestLargeResults(t *testing.T) {
	s := modeltest.New(modeltest.Turn{Calls: []modeltest.Call{{Name: "add", Input: `{}`}}})
	_, err := ask(t, "openai", s, func(l *llm.Loop) {
		l.Bounds = llm.Bounds{ToolBytes: 1000, AllBytes: 2500}
		l.Tools[0].Run = func(context.Context, json.RawMessage) (string, error) { return strings.Repeat("ü", 25<<20), nil }
	})
	if !errors.Is(err, repute.ErrLimited) {
		t.Fatal(err)
	}
	seen := s.Seen()
	if len(seen) != 3 {
		t.Fatalf("%d requests", len(seen))
	}
	for _, text := range seen[2].Texts {
		if len(text) > 1200 {
			t.Errorf("a text has %d bytes", len(text))
		}
	}
}

// An answer that is too long is cut, and says so with its whole size.
func TestLongAnswerSaysThatItIsCut(t *testing.T) {
	const most = 128 << 10
	for size, note := range map[int]string{most: "",
		most + 5: "\n[cut: the answer has 131077 bytes, 131072 are shown]"} {
		a, err := ask(t, "anthropic", modeltest.New(modeltest.Turn{Text: strings.Repeat("x", size)}), nil)
		if err != nil || len(a.Text) != most+len(note) || !strings.HasSuffix(a.Text, note) {
			t.Errorf("%d bytes: %d bytes, %v", size, len(a.Text), err)
		}
	}
}

// A model that does not answer ends with the time of the conversation.
func TestWall(t *testing.T) {
	never := make(chan struct{})
	_, err := ask(t, "anthropic", modeltest.New(modeltest.Turn{Text: "late", Wait: never}), func(l *llm.Loop) {
		l.Bounds.Wall = 200 * time.Millisecond
	})
	if !errors.Is(err, repute.ErrLimited) {
		t.Fatal(err)
	}
}

// Whatever a model uses, no call is made that could pass the budget by what is estimated, and the meter ends
// with exactly what the model said it used.
func TestBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.Int64Range(0, 2000).Draw(t, "most")
		meter := &llm.Meter{Budget: llm.Budget{Tokens: most,
			Cost: repute.Micros(rapid.Int64Range(0, 3000).Draw(t, "cost"))},
			Price: func(u llm.Usage) repute.Micros { return repute.Micros(2 * u.Total()) }}
		var sum llm.Usage
		for range rapid.IntRange(0, 30).Draw(t, "calls") {
			reserve := llm.Usage{Input: rapid.Int64Range(1, 100).Draw(t, "in"),
				Output: rapid.Int64Range(1, 100).Draw(t, "out")}
			used := llm.Usage{Input: rapid.Int64Range(0, reserve.Input).Draw(t, "usedIn"),
				Output: rapid.Int64Range(0, reserve.Output).Draw(t, "usedOut")}
			made := false
			_, err := meter.Model(context.Background(), llm.ModelCall{Most: reserve},
				func(context.Context) (llm.Reply, error) {
					made = true
					return llm.Reply{Usage: used}, nil
				})
			if made != (err == nil) || err != nil && !errors.Is(err, repute.ErrLimited) {
				t.Fatalf("made %v, %v", made, err)
			}
			if made {
				sum = llm.Usage{Input: sum.Input + used.Input, Output: sum.Output + used.Output}
			}
			got, cost := meter.Used()
			if got != sum || cost != repute.Micros(2*sum.Total()) {
				t.Fatalf("meter has %+v and %s, used %+v", got, cost, sum)
			}
			if most > 0 && got.Total() > most || meter.Budget.Cost > 0 && cost > meter.Budget.Cost {
				t.Fatalf("passed the budget: %+v of %d, %s of %s", got, most, cost, meter.Budget.Cost)
			}
		}
	})
}

// A budget of tokens ends a conversation that would go on.
func TestTokenBudget(t *testing.T) {
	s := modeltest.New(modeltest.Turn{Calls: []modeltest.Call{{Name: "add", Input: `{}`}}, Input: 300, Output: 90})
	meter := &llm.Meter{Budget: llm.Budget{Tokens: 850}}
	got, err := ask(t, "openai", s, func(l *llm.Loop) { l.Ledger = meter })
	if !errors.Is(err, repute.ErrLimited) || !strings.Contains(err.Error(), "maxTokens") {
		t.Fatal(err)
	}
	if used, _ := meter.Used(); used.Total() != 780 || used != got.Usage || len(s.Seen()) != 2 {
		t.Errorf("used %+v in %d calls, want 780 in 2", used, len(s.Seen()))
	}
}

// A message may call a bounded number of tools: the model is told of each call that was not made, and the answer counts
// them.
func TestTooManyCalls(t *testing.T) {
	const extra = 4
	turn := modeltest.Turn{}
	for range llm.MaxCallsOfTurn + extra {
		turn.Calls = append(turn.Calls, modeltest.Call{Name: "add", Input: `{"a":1}`})
	}
	for provider := range providers() {
		t.Run(provider, func(t *testing.T) {
			s := modeltest.New(turn, modeltest.Turn{Text: "done"})
			got, err := ask(t, provider, s, nil)
			if err != nil || got.ToolCalls != llm.MaxCallsOfTurn || got.Refused != extra {
				t.Errorf("%+v, %v", got, err)
			}
			told := 0
			for _, text := range s.Seen()[1].Texts {
				if strings.Contains(text, "not called: one message may call at most 16 tools") {
					told++
				}
			}
			if told != extra {
				t.Errorf("the model is told of %d calls, want %d: %q", told, extra, s.Seen()[1].Texts)
			}
		})
	}
}
