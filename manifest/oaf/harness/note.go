package harness

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Note is a part of an agent that an export or an import does not carry as it is.
// Reasons are for people, and may quote names of the agent.
type Note struct {
	Kind  Kind
	Agent string // identifier of the agent; "" for the project or the file that agents are imported from
	// Field is as in AGENTS.md, e.g. config.temperature, and mcp-configs.{part} for a part of servers. A part that only
	// the imported file has is named as there.
	Field  string
	Reason string
}

// Kind is what happened to a part of an agent.
type Kind string

// Kinds of notes.
const (
	Dropped Kind = "dropped" // the other side has no place for it, or not for all of it
	Guessed Kind = "guessed" // the source does not say it: it is derived from something else, the same way each time
)

// notes collects what an import does not carry as it is.
type notes struct{ list []Note }

// drop records a part that is left out, if the condition holds.
func (n *notes) drop(is bool, field, format string, args ...any) {
	if is {
		n.list = append(n.list, Note{Kind: Dropped, Field: field, Reason: fmt.Sprintf(format, args...)})
	}
}

// guess records a part that is derived, if the condition holds.
func (n *notes) guess(is bool, field, format string, args ...any) {
	if is {
		n.list = append(n.list, Note{Kind: Guessed, Field: field, Reason: fmt.Sprintf(format, args...)})
	}
}

// of returns the notes with the identifier of their agent.
func (n *notes) of(agent string) []Note {
	for i := range n.list {
		n.list[i].Agent = agent
	}
	return n.list
}

// unused returns the members of a JSON object that are not among the used ones and say something, in order. What is no
// object has none.
// Names are compared as written, while encoding/json takes them in any letter case: a member URL for url is both read
// and noted.
func unused(object json.RawMessage, used ...string) []string {
	var members map[string]json.RawMessage
	if json.Unmarshal(object, &members) != nil {
		return nil
	}
	maps.DeleteFunc(members, func(name string, value json.RawMessage) bool {
		return slices.Contains(used, name) || isEmptyJSON(value)
	})
	return slices.Sorted(maps.Keys(members))
}

// isEmptyJSON reports whether a value says nothing: null, false, zero, or an empty text, list or object.
func isEmptyJSON(value json.RawMessage) bool {
	text := strings.Join(strings.Fields(string(value)), "")
	return slices.Contains([]string{"", "null", "false", "0", `""`, "[]", "{}"}, text)
}
