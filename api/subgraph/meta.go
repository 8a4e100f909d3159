package subgraph

import (
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	mh "github.com/multiformats/go-multihash"
	"github.com/vektah/gqlparser/v2/ast"

	"repute/store/subgraphdb"
)

// block is the block that a field asks for; the zero value is the newest one. hash is in small letters, with or without
// 0x; invalid is set when a number is none.
type block struct {
	number  *int64
	least   *int64 // number_gte
	hash    string
	invalid bool
}

// block returns the block argument of a field. Several members may be given: check wants all of them.
func (o *operation) block(field *ast.Field) (b block) {
	v, f := o.argument(field, "block")
	if f != nil {
		o.fail(f)
	}
	if v == nil {
		return b
	}
	object, isObject := v.(map[string]any)
	read := func(name string) *int64 {
		if object[name] == nil {
			return nil
		}
		n, err := strconv.ParseInt(textOf(object[name]), 10, 32)
		b.invalid = b.invalid || err != nil || n < 0
		return &n
	}
	b.number, b.least = read("number"), read("number_gte")
	b.hash = strings.ToLower(textOf(object["hash"]))
	if !isObject || b.invalid {
		o.fail(invalidArgument(field.Position, "block", v))
	}
	return b
}

// check returns a failure unless the snapshot has the block and nothing newer: only the newest state is kept for
// queries.
func (b block) check(s *subgraphdb.Snapshot) error {
	head, id := s.Head.Number, deployment(s)
	above := func(name string, n int64) error {
		return undecodable("block."+name,
			fmt.Sprintf("subgraph %s has only indexed up to block number %d and data for block "+
				"number %d is therefore not yet available", id, head, n))
	}
	switch {
	case b.number != nil && *b.number > head:
		return above("number", *b.number)
	case b.number != nil && *b.number < head:
		return undecodable("block.number",
			fmt.Sprintf("subgraph %s only has data starting at block number %d and data for "+
				"block number %d is therefore not available", id, head, *b.number))
	case b.least != nil && *b.least > head:
		return above("number_gte", *b.least)
	case b.hash != "" && strings.TrimPrefix(b.hash, "0x") != strings.TrimPrefix(s.Head.Hash, "0x"):
		return undecodable("block.hash", "no block with that hash found")
	}
	return nil
}

// allowsErrors reports whether a field asks for data of a chain whose index has errors.
func (o *operation) allowsErrors(field *ast.Field) bool {
	v, f := o.argument(field, "subgraphError")
	if f != nil {
		o.fail(f)
	}
	if text := textOf(v); v != nil && text != "allow" && text != "deny" {
		o.fail(invalidArgument(field.Position, "subgraphError", v))
	}
	return textOf(v) == "allow"
}

// deployment returns the name of a chain's subgraph, in the form that clients expect of one: the CID of its registries.
// It is the same on every server for the same registries, and changes when one is replaced, as a subgraph's does with
// its manifest.
func deployment(s *subgraphdb.Snapshot) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s %s", s.Chain.ID, s.Chain.Identity, s.Chain.Reputation))
	name, err := mh.Encode(sum[:], mh.SHA2_256)
	if err != nil {
		return ""
	}
	return mh.Multihash(name).B58String()
}

// static returns the answer of a field of Query that is not read from the entities.
func (x *execution) static(p plan) (any, error) {
	var v any
	switch p.field.Name {
	case "_meta":
		v = meta(x.snapshot, p.at)
	case "__schema":
		v = x.schema.introspect()
	case "__type":
		name, f := x.argument(p.field, "name")
		if f != nil {
			return nil, f
		}
		v = x.schema.introspectType(textOf(name))
	}
	return x.pick(v, p.group.sets())
}

// meta returns what is known of the index of a chain. The hash is left out where the caller names the block by number,
// as graph-node does.
func meta(s *subgraphdb.Snapshot, at block) *static {
	optional := func(v string) any {
		if v == "" || v == (common.Hash{}).Hex() || at.number != nil {
			return nil
		}
		return v
	}
	var timestamp any
	if !s.Head.Time.IsZero() {
		timestamp = s.Head.Time.Unix()
	}
	b := &static{name: "_Block_", fields: map[string]any{"hash": optional(s.Head.Hash), "number": s.Head.Number,
		"timestamp": timestamp, "parentHash": optional(s.Head.Parent)}}
	return &static{name: "_Meta_", fields: map[string]any{"block": b, "deployment": deployment(s),
		"hasIndexingErrors": s.Chain.Halted}}
}

// static is an object whose members are known before the query. A member may be a func() any, which is called when the
// query selects it. Members are in no order: the query gives it.
type static struct {
	name   string
	fields map[string]any
}

// pick returns what selections have of a static value. sets has the selections of all fields with one key; scalars
// ignore it.
func (x *execution) pick(v any, sets []ast.SelectionSet) (any, error) {
	if lazy, isLazy := v.(func() any); isLazy {
		v = lazy()
	}
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			one, err := x.pick(e, sets)
			if err != nil {
				return nil, err
			}
			out[i] = one
		}
		return out, nil
	case *static:
		if v == nil {
			return nil, nil
		}
		return x.pickObject(v, sets)
	}
	return v, nil
}

// pickObject returns what selections have of a static object. Each object takes one of the rows that are left, which
// bounds queries that go around in circles of types.
func (x *execution) pickObject(v *static, sets []ast.SelectionSet) (any, error) {
	if x.left--; x.left < 0 {
		return nil, tooExpensive()
	}
	out := &object{}
	seen := x.fields // the bound is that of the text: objects are bounded by left
	for _, g := range x.groups(v.name, sets) {
		name := g.first().Name
		member, known := v.fields[name]
		switch {
		case name == typename:
			out.set(g.key, v.name)
			continue
		case !known:
			return nil, failedAt(g.first().Position, "Type `%s` has no field `%s`", v.name, name)
		}
		picked, err := x.pick(member, g.sets())
		if err != nil {
			return nil, err
		}
		out.set(g.key, picked)
	}
	x.fields = seen
	return out, nil
}
