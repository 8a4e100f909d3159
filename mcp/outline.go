package mcp

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// maxOutline bounds the schema of a tool's answer in the list of tools, in bytes: a model reads
// the list before anything else, and the whole of every schema is longer than most conversations.
const maxOutline = 400

// outline is the part of an answer's schema that fits into the list of tools: the members of
// the answer and, breadth first, those of the objects in it, as long as there is room.
// Descriptions and the names of required members are left out. What it says, it says exactly:
// an answer that fits the whole schema fits its outline. The names of members MUST be letters,
// digits and _ alone. It does not change the schema. The members of the answer itself are listed even where they take
// more room.
func outline(schema map[string]any) map[string]any {
	var o outliner
	root := o.shell(schema)
	for first := true; len(o.open) > 0; first = false {
		next := o.open[0]
		o.open = o.open[1:]
		before := len(o.open)
		members := map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(next.properties)) {
			member, _ := next.properties[name].(map[string]any)
			members[name] = o.shell(member)
		}
		if next.shell["properties"] = members; !first && len(encoded(grouped(root))) > maxOutline {
			delete(next.shell, "properties")
			o.open = o.open[:before] // its own members are omitted too
		}
	}
	return grouped(root)
}

// alike is the number of members of the same kind from which one entry describes all of them. With fewer the pattern is
// not shorter.
const alike = 3

// grouped returns a schema in which similar members share an entry of patternProperties, which
// takes a third of the space. It works on copies, because outline calls it for every size that it tries.
func grouped(s map[string]any) map[string]any {
	out := maps.Clone(s)
	if items, ok := s["items"].(map[string]any); ok {
		out["items"] = grouped(items)
	}
	properties, ok := s["properties"].(map[string]any)
	if !ok {
		return out
	}
	listed, named := map[string]any{}, map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		member, _ := properties[name].(map[string]any)
		listed[name] = grouped(member)
		kind := string(encoded(listed[name]))
		named[kind] = append(named[kind], name)
	}
	patterns := map[string]any{}
	for _, names := range named {
		if len(names) >= alike {
			patterns["^("+strings.Join(names, "|")+")$"] = listed[names[0]]
			maps.DeleteFunc(listed, func(name string, _ any) bool { return slices.Contains(names, name) })
		}
	}
	if out["properties"] = listed; len(patterns) > 0 {
		out["patternProperties"] = patterns
	}
	return out
}

// outliner walks through a schema. The list is a queue, which makes the walk breadth first.
type outliner struct {
	open []opened // whose members are not listed yet
}

// opened is an object of the outline with its properties in the whole schema.
type opened struct {
	shell, properties map[string]any
}

// shell returns a schema without its inner schemas, and records objects with properties for later.
func (o *outliner) shell(s map[string]any) map[string]any {
	out, kinds, all := map[string]any{}, []any{}, alternatives(s)
	if enum, ok := all[0]["enum"]; ok && len(all) == 1 {
		return map[string]any{"enum": enum}
	}
	for _, one := range all {
		switch kind := one["type"].(type) {
		case string:
			kinds = append(kinds, kind)
		case []any:
			kinds = append(kinds, kind...)
		default:
			return map[string]any{} // any JSON
		}
		if items, ok := one["items"].(map[string]any); ok {
			if below := o.shell(items); len(below) > 0 {
				out["items"] = below
			}
		}
		if properties, ok := one["properties"].(map[string]any); ok {
			o.open = append(o.open, opened{out, properties})
		}
	}
	if out["type"] = kinds; len(kinds) == 1 {
		out["type"] = kinds[0]
	}
	return out
}

// alternatives returns the schemas of oneOf or anyOf.
func alternatives(s map[string]any) (out []map[string]any) {
	list, ok := s["anyOf"].([]any)
	if !ok {
		return []map[string]any{s}
	}
	for _, v := range list {
		one, _ := v.(map[string]any)
		out = append(out, alternatives(one)...)
	}
	return out
}

// encoded returns a part of a schema as JSON.
func encoded(v any) []byte {
	raw, _ := json.Marshal(v) // decoded JSON can always be encoded
	return raw
}
