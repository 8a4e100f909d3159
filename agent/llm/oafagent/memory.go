package oafagent

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"repute"
	"repute/agent/llm"
	"repute/manifest/oaf"
	"repute/store/agentdb"
)

// block is a labeled text as it is journaled, and as the model reads it.
type block struct {
	Label   string `json:"label"`
	Text    string `json:"text"`
	Session string `json:"session,omitempty"` // where search found it
}

const (
	// maxBlock bounds a block where the agent's file does not, in characters.
	maxBlock = 8 << 10
	maxFound = 10
)

// remembered returns the blocks that the agent's file declares, with what is stored of them. It is a call of
// the ledger, so that a resumed conversation begins with the same text.
func (r *run) remembered(ctx context.Context) ([]block, error) {
	if r.def.Memory == nil || len(r.def.Memory.Blocks) == 0 {
		return nil, nil
	}
	use := llm.ToolUse{Name: "memory_read", Input: json.RawMessage(`{}`)}
	text, err := r.s.Ledger.Tool(ctx, use, func(ctx context.Context) (string, error) {
		stored := map[string]string{}
		if r.o.DB != nil {
			list, err := agentdb.Memory(ctx, r.o.DB, r.def.ID(), r.s.ID)
			if err != nil {
				return "", err
			}
			for _, b := range list {
				stored[b.Label] = b.Text
			}
		}
		out := []block{}
		for _, b := range r.def.Memory.Blocks {
			v, ok := stored[b.Label]
			if !ok {
				v = b.Value
			}
			out = append(out, block{Label: b.Label, Text: v})
		}
		raw, err := json.Marshal(out)
		return string(raw), err
	})
	if err != nil {
		return nil, fmt.Errorf("memory: %w", err)
	}
	var out []block
	return out, json.Unmarshal([]byte(text), &out)
}

// memoryTools edit and search the memory.
func (r *run) memoryTools() (out []tool) {
	if r.def.Memory == nil || r.o.DB == nil {
		return nil
	}
	out = append(out, own(llm.Tool{ToolDef: llm.ToolDef{Name: "memory_search",
		Description: "Finds blocks of your memory, of earlier conversations too, by words.", Schema: schema("query")},
		Run: r.search}, ""))
	if r.def.Memory.Type == oaf.MemoryEditable {
		out = append(out, own(r.confirm(llm.Tool{ToolDef: llm.ToolDef{Name: "memory_edit",
			Description: "Replaces the text of a block of your memory: " + r.labels() + ".",
			Schema:      schema("label", "text")}, Run: r.edit}), ""))
	}
	return out
}

// labels lists the blocks for the model.
func (a *Agent) labels() string {
	var names []string
	for _, b := range a.def.Memory.Blocks {
		names = append(names, b.Label)
	}
	return strings.Join(names, ", ")
}

// edit is the tool memory_edit.
func (r *run) edit(ctx context.Context, input json.RawMessage) (string, error) {
	var b block
	if err := json.Unmarshal(input, &b); err != nil {
		return "", repute.Invalid("input", "has the wrong type", "label and text as texts")
	}
	for _, known := range r.def.Memory.Blocks {
		most := maxBlock
		if known.Limit > 0 {
			most = min(known.Limit, most)
		}
		switch {
		case known.Label != b.Label:
		case utf8.RuneCountInString(b.Text) > most:
			return "", repute.Invalid("text", fmt.Sprintf("has %d characters", utf8.RuneCountInString(b.Text)),
				fmt.Sprintf("at most %d", most))
		default:
			return "stored", agentdb.PutMemory(ctx, r.o.DB, r.def.ID(),
				agentdb.MemoryBlock{Session: r.s.ID, Label: b.Label, Text: b.Text})
		}
	}
	return "", repute.Unknown("block %.80q of the memory", b.Label)
}

// search is the tool memory_search.
func (r *run) search(ctx context.Context, input json.RawMessage) (string, error) {
	var q struct{ Query string }
	if err := json.Unmarshal(input, &q); err != nil {
		return "", repute.Invalid("input", "has the wrong type", "query as a text")
	}
	list, err := agentdb.SearchMemory(ctx, r.o.DB, r.def.ID(), r.s.Scope, q.Query, maxFound)
	if err != nil {
		return "", err
	}
	if len(list) == 0 {
		return "nothing is stored about it", nil
	}
	found := make([]block, 0, len(list))
	for _, b := range list {
		found = append(found, block{b.Label, b.Text, b.Session})
	}
	raw, err := json.Marshal(found)
	return string(raw), err
}
