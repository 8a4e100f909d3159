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
)

// Memory stores the blocks of agents, per agent and session.
type Memory interface {
	// Blocks returns the stored blocks, ordered by label.
	Blocks(ctx context.Context, agent, session string) ([]Block, error)
	// Put stores a block.
	Put(ctx context.Context, agent, session string, b Block) error
	// Search returns the blocks of an agent, of the sessions whose id begins with scope, that have a word of a
	// query, best first.
	Search(ctx context.Context, agent, scope, query string, most int) ([]Block, error)
}

// Block is a labeled text.
type Block struct {
	Label string `json:"label"`
	Text  string `json:"text"`
	// Session is where the block is from; set by Search.
	Session string `json:"session,omitempty"`
}

const (
	// MaxBlock bounds a block where the agent's file does not, in characters.
	MaxBlock = 8 << 10
	maxFound = 10
)

// remembered returns the blocks that the agent's file declares, with what is stored of them. It is a call of
// the ledger, so that a resumed conversation begins with the same text.
func (r *run) remembered(ctx context.Context) ([]Block, error) {
	if r.def.Memory == nil || len(r.def.Memory.Blocks) == 0 {
		return nil, nil
	}
	use := llm.ToolUse{Name: "memory_read", Input: json.RawMessage(`{}`)}
	text, err := r.s.Ledger.Tool(ctx, use, func(ctx context.Context) (string, error) {
		stored := map[string]string{}
		if r.o.Memory != nil {
			list, err := r.o.Memory.Blocks(ctx, r.def.ID(), r.s.ID)
			if err != nil {
				return "", err
			}
			for _, b := range list {
				stored[b.Label] = b.Text
			}
		}
		out := []Block{}
		for _, b := range r.def.Memory.Blocks {
			v, ok := stored[b.Label]
			if !ok {
				v = b.Value
			}
			out = append(out, Block{Label: b.Label, Text: v})
		}
		raw, err := json.Marshal(out)
		return string(raw), err
	})
	if err != nil {
		return nil, fmt.Errorf("memory: %w", err)
	}
	var out []Block
	return out, json.Unmarshal([]byte(text), &out)
}

// memoryTools edit and search the memory.
func (r *run) memoryTools() (out []tool) {
	if r.def.Memory == nil || r.o.Memory == nil {
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
	var b Block
	if err := json.Unmarshal(input, &b); err != nil {
		return "", repute.Invalid("input", "has the wrong type", "label and text as texts")
	}
	for _, known := range r.def.Memory.Blocks {
		most := MaxBlock
		if known.Limit > 0 {
			most = min(known.Limit, most)
		}
		switch {
		case known.Label != b.Label:
		case utf8.RuneCountInString(b.Text) > most:
			return "", repute.Invalid("text", fmt.Sprintf("has %d characters", utf8.RuneCountInString(b.Text)),
				fmt.Sprintf("at most %d", most))
		default:
			return "stored", r.o.Memory.Put(ctx, r.def.ID(), r.s.ID, Block{Label: b.Label, Text: b.Text})
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
	found, err := r.o.Memory.Search(ctx, r.def.ID(), r.s.Scope, q.Query, maxFound)
	if err != nil {
		return "", err
	}
	if len(found) == 0 {
		return "nothing is stored about it", nil
	}
	raw, err := json.Marshal(found)
	return string(raw), err
}
