package capability

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"repute"
)

const (
	maxSchema = 64 << 10
	// maxSchemaParts bounds the objects and lists of a schema: compilation takes quadratic time.
	maxSchemaParts = 4096
	// validationTime bounds one validation on the clock; maxSteps ends a costly one before that on
	// all but very slow machines.
	validationTime = 2 * time.Second
	// spare is how many compiled copies of a schema wait for the next validations.
	spare = 8
)

// schema is a compiled JSON Schema. It is safe for concurrent use.
type schema struct {
	field string // inputSchema or outputSchema
	doc   any
	// free holds compiled copies: each counts the steps of the one validation that uses it.
	free chan *copyOf
}

// copyOf is one compiled copy of a schema with the meter that its parts count with.
type copyOf struct {
	compiled *jsonschema.Schema
	meter    *meter
}

// base is the address that a schema is compiled under; a reference to any other is refused.
const base = "repute:///schema"

// compileSchema compiles a schema. repute.ErrInvalid says what is wrong with it.
func compileSchema(field string, raw []byte) (*schema, error) {
	if len(raw) == 0 {
		return nil, repute.Invalid(field, "missing", "a JSON Schema; {} allows everything")
	}
	if len(raw) > maxSchema || bytes.Count(raw, []byte("{"))+bytes.Count(raw, []byte("[")) > maxSchemaParts {
		return nil, repute.Invalid(field, "too large", "at most 64 KiB and 4096 objects and lists")
	}
	if err := checkDocument(field, raw); err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, repute.Invalid(field, "is no JSON", "a JSON Schema")
	}
	s := &schema{field: field, doc: doc, free: make(chan *copyOf, spare)}
	first, err := s.compile()
	if err != nil {
		return nil, err
	}
	s.put(first)
	return s, nil
}

// compile makes one copy.
func (s *schema) compile() (*copyOf, error) {
	m := &meter{}
	c := jsonschema.NewCompiler()
	c.UseLoader(jsonschema.SchemeURLLoader{}) // none: a reference to another file is an error
	c.UseRegexpEngine(m.compilePattern)
	c.AssertFormat()
	if err := c.AddResource(base, s.doc); err != nil {
		return nil, s.wrong(err)
	}
	compiled, err := c.Compile(base)
	if err != nil {
		return nil, s.wrong(err)
	}
	if err := m.install(compiled); err != nil {
		return nil, s.wrong(err)
	}
	return &copyOf{compiled, m}, nil
}

// wrong tells why a schema does not compile.
func (s *schema) wrong(err error) error {
	var failed *jsonschema.SchemaValidationError
	if errors.As(err, &failed) {
		var invalid *jsonschema.ValidationError
		if errors.As(failed.Err, &invalid) {
			return problems(s.field, invalid)
		}
	}
	return repute.Invalid(s.field, fmt.Sprintf("%.300s", err.Error()),
		"a JSON Schema with references inside the document only and patterns of RE2")
}

// get returns a copy that no other validation uses.
func (s *schema) get() (*copyOf, error) {
	select {
	case c := <-s.free:
		return c, nil
	default:
		return s.compile()
	}
}

// put makes a copy available to the next validation.
func (s *schema) put(c *copyOf) {
	select {
	case s.free <- c:
	default:
	}
}

// validate checks a document. repute.ErrInvalid: it is malformed, does not match, or takes too many
// steps to decide; otherwise the error is that of ctx.
func (s *schema) validate(ctx context.Context, field string, raw json.RawMessage) error {
	if err := checkDocument(field, raw); err != nil {
		return err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return repute.Invalid(field, "is no JSON", "any JSON value")
	}
	c, err := s.get()
	if err != nil {
		return err
	}
	defer s.put(c)
	limited, cancel := context.WithTimeout(ctx, validationTime)
	defer cancel()
	result, ok := c.run(limited, doc)
	if !ok {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("validate %s: %w", field, err)
		}
		return repute.Invalid(field, "takes too many steps to validate", "a smaller document, or one with less nesting")
	}
	var failed *jsonschema.ValidationError
	if errors.As(result, &failed) {
		return problems(field, failed)
	}
	return result
}

// run validates a document in a goroutine of its own, which the meter ends when the steps are used
// up: the library has no other way to stop. ok is false when that happened.
func (c *copyOf) run(ctx context.Context, doc any) (result error, ok bool) {
	c.meter.start(ctx)
	done := make(chan error, 1)
	go func() {
		defer close(done)
		done <- c.compiled.Validate(doc)
	}()
	result, ok = <-done
	return result, ok
}
