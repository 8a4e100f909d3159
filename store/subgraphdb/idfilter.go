package subgraphdb

import "strings"

// compareKey returns the SQL of a comparison of an id. Equal ids are found by the columns of the key, because the text
// of an id has no index.
func (b *builder) compareKey(e *Entity, level int, f *Filter) string {
	key, exists := e.Key, "true"
	if f.Field.To != "" {
		key = b.schema.Entity(f.Field.To).Key
	}
	if f.Field.Exists != "" {
		exists = "(" + at(f.Field.Exists, level) + ")"
	}
	if b.joined && level == 0 && f.Field.Inline && f.Op != Equal && f.Op != In {
		exists = "(" + at(f.Field.Key[len(f.Field.Key)-1], level) +
			" is not null)" // Postgres takes this to be true of most rows
	}
	switch f.Op {
	case Equal, Not, In, NotIn:
		return b.compareKeys(key, level, f, exists)
	}
	if partial(f.Op) {
		return b.comparePart(f.Op, key.id(f.Field.Key, level), f.Values[0].(string))
	}
	return b.compareIDs(key, level, f, exists)
}

// compareIDs returns the SQL of whether an id is above or below another one. All ids of a chain begin alike, and what
// follows is compared.
func (b *builder) compareIDs(key Key, level int, f *Filter, exists string) string {
	if !key.Chain || len(key.Parts) == 0 {
		return b.compareWhole(texts(), key.id(f.Field.Key, level), f.Op, f.Values)
	}
	id, prefix := f.Values[0].(string), key.prefix(b.chain)
	if rest, alike := strings.CutPrefix(id, prefix); alike {
		return b.compareWhole(texts(), key.rest(f.Field.Key, level), f.Op, []any{rest})
	}
	if greater := f.Op == Greater || f.Op == GreaterEqual; greater == (prefix > id) {
		return "(" + exists + ")"
	}
	return "false"
}

// compareKeys returns the SQL of whether a key is, or is not, one of the ids. exists is the condition that there is
// one.
func (b *builder) compareKeys(key Key, level int, f *Filter, exists string) string {
	keys, null := f.keys(key, b.chain)
	found := b.among(key, f.Field.Key, level, keys)
	absent := "not (" + exists + ")"
	if f.Op == Equal || f.Op == In {
		if null {
			return "(" + found + " or " + absent + ")"
		}
		return found
	}
	if f.Op == NotIn && len(f.Values) == 0 {
		return "true"
	}
	return "(" + exists + " and not " + found + ")"
}

// keys returns the keys that the ids of a filter name, and whether null is among them. Ids of no row are left out.
func (f *Filter) keys(key Key, chain uint64) (keys []Value, null bool) {
	for _, v := range f.Values {
		id, isText := v.(string)
		null = null || !isText
		if v, ok := key.Parse(chain, id); isText && ok {
			keys = append(keys, v)
		}
	}
	return keys, null
}

// among returns the SQL of whether the columns of a key have one of the values. One value is compared by = alone:
// Postgres then knows that rows have one value, and reads them in the order of the next column of an index.
func (b *builder) among(key Key, columns []string, level int, keys []Value) string {
	switch {
	case len(keys) == 0:
		return "false"
	case len(columns) == 0:
		return "true"
	}
	var ours, theirs, equal []string
	for i, c := range columns {
		ours = append(ours, "("+at(c, level)+")")
		if len(keys) == 1 {
			equal = append(equal, ours[i]+" = "+b.part(key.Parts[i].Form, keys[0][i]))
			continue
		}
		theirs = append(theirs, b.column(key.Parts[i].Form, keys, i))
	}
	if len(keys) == 1 {
		return "(" + strings.Join(equal, " and ") + ")"
	}
	first := ours[0] + " = any(" + theirs[0] + ")" // by which an index finds the rows
	if len(columns) == 1 {
		return first
	}
	return "(" + first + " and (" + strings.Join(ours, ", ") + ") in (select * from unnest(" +
		strings.Join(theirs, ", ") + ")))"
}

// part adds one part of a key as a parameter.
func (b *builder) part(form Form, v any) string {
	if form == FormNumber {
		return b.arg(v) + "::text::numeric"
	}
	return b.arg(v) + "::bytea"
}

// column adds one part of keys as an array parameter.
func (b *builder) column(form Form, keys []Value, i int) string {
	parts := make([]any, len(keys))
	for n, k := range keys {
		parts[n] = k[i]
	}
	if form == FormNumber {
		return b.arg(slice[string](parts)) + "::text[]::numeric[]"
	}
	return b.arg(slice[[]byte](parts)) + "::bytea[]"
}
