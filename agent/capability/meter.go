package capability

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"runtime"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const (
	// maxSteps bounds a validation. One step is a value that one part of a schema looks at and takes
	// one to two microseconds. Alternatives inside alternatives can need more than any clock has.
	maxSteps = 250_000
	// stepBytes is how much of a text one step covers.
	stepBytes = 1024
	// stepMatches is how many instructions of a pattern, on one byte each, one step covers.
	stepMatches = 100
	maxPattern  = 1024
)

// meter counts the steps of one validation at a time.
type meter struct {
	ctx  context.Context // of the validation that runs
	left int
}

// start begins a validation.
func (m *meter) start(ctx context.Context) { m.ctx, m.left = ctx, maxSteps }

// spend counts steps. It ends the validation's goroutine when they are used up, or when the context
// ends: it MUST run in copyOf.run only.
func (m *meter) spend(steps int) {
	before := m.left >> 10
	if m.left -= steps; m.left < 0 || m.left>>10 != before && m.ctx.Err() != nil {
		runtime.Goexit()
	}
}

// install makes every part of a compiled schema count. Parts check the format of a value after its
// type and before all that leads to other parts, so a format that counts sees every step but those
// that end with a wrong type; a part counts them for its children in advance.
func (m *meter) install(root *jsonschema.Schema) error {
	seen := map[*jsonschema.Schema]bool{root: true}
	for todo := []*jsonschema.Schema{root}; len(todo) > 0; {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if !strings.HasPrefix(s.Location, base+"#") {
			return fmt.Errorf("reference to %.100q", s.Location)
		}
		parts := partsOf(s)
		m.count(s, 1+len(parts))
		for _, p := range parts {
			if !seen[p] {
				seen[p] = true
				todo = append(todo, p)
			}
		}
	}
	return nil
}

// count gives a part of a schema a format that counts and then checks the part's own format.
func (m *meter) count(s *jsonschema.Schema, steps int) {
	own := s.Format
	s.Format = &jsonschema.Format{Name: "any", Validate: func(v any) error {
		m.spend(steps + sizeOf(v))
		if own == nil {
			return nil
		}
		return own.Validate(v)
	}}
	if own != nil {
		s.Format.Name = own.Name
	}
}

// sizeOf is how many steps a value takes beside those of its parts.
func sizeOf(v any) int {
	switch v := v.(type) {
	case string:
		return len(v) / stepBytes
	case []any:
		return len(v)
	case map[string]any:
		return len(v)
	}
	return 0
}

// partsOf lists the schemas that a schema leads to.
func partsOf(s *jsonschema.Schema) (out []*jsonschema.Schema) {
	add := func(parts ...*jsonschema.Schema) {
		for _, p := range parts {
			if p != nil {
				out = append(out, p)
			}
		}
	}
	add(s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else, s.PropertyNames, s.UnevaluatedProperties, s.Contains,
		s.Items2020, s.UnevaluatedItems, s.ContentSchema)
	if s.DynamicRef != nil {
		add(s.DynamicRef.Ref)
	}
	for _, list := range [][]*jsonschema.Schema{s.AllOf, s.AnyOf, s.OneOf, s.PrefixItems} {
		add(list...)
	}
	for _, group := range []map[string]*jsonschema.Schema{s.Properties, s.DependentSchemas} {
		for _, p := range group {
			add(p)
		}
	}
	for _, p := range s.PatternProperties {
		add(p)
	}
	for _, p := range s.Dependencies {
		add(schemasIn(p)...)
	}
	for _, v := range []any{s.AdditionalProperties, s.Items, s.AdditionalItems} {
		add(schemasIn(v)...)
	}
	return out
}

// schemasIn lists the schemas of a member that can hold other values too.
func schemasIn(v any) []*jsonschema.Schema {
	switch v := v.(type) {
	case *jsonschema.Schema:
		return []*jsonschema.Schema{v}
	case []*jsonschema.Schema:
		return v
	}
	return nil
}

// pattern is a regular expression that counts the steps it takes.
type pattern struct {
	re    *regexp.Regexp
	meter *meter
	size  int // instructions
}

// compilePattern compiles a pattern as RE2: its time is at most linear in the text times the
// instructions.
func (m *meter) compilePattern(text string) (jsonschema.Regexp, error) {
	if len(text) > maxPattern {
		return nil, errors.New("the pattern is longer than 1024 bytes")
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, err
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	return &pattern{re: re, meter: m, size: len(program.Inst)}, nil
}

// String is the pattern's text.
func (p *pattern) String() string { return p.re.String() }

// MatchString reports whether the pattern matches, and counts the steps of a validation.
func (p *pattern) MatchString(s string) bool {
	if p.meter.ctx != nil { // nil while the schema is compiled
		p.meter.spend(1 + p.size*len(s)/stepMatches)
	}
	return p.re.MatchString(s)
}
