package capability

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"repute"
)

// Capability is a checked definition with its compiled schemas. It does not change and is safe for
// concurrent use.
type Capability struct {
	definition Definition
	input      *schema
	output     *schema
}

// New checks a definition, fills in its defaults and compiles its schemas. The error is
// repute.ErrInvalid and names every member that is wrong.
func New(d Definition) (*Capability, error) {
	wrong := d.complete()
	input, err := compileSchema("inputSchema", d.InputSchema)
	output, err2 := compileSchema("outputSchema", d.OutputSchema)
	if err := errors.Join(wrong, err, err2); err != nil {
		return nil, fmt.Errorf("capability %.64q: %w", d.Name, err)
	}
	return &Capability{definition: d, input: input, output: output}, nil
}

// Definition is the definition with its defaults.
func (c *Capability) Definition() Definition { return c.definition }

// CheckInput validates a request. repute.ErrLimited: it is too large. repute.ErrInvalid, often a
// *Mismatch: it is malformed or the schema does not allow it.
func (c *Capability) CheckInput(ctx context.Context, raw json.RawMessage) error {
	if int64(len(raw)) > c.definition.MaxRequestBytes {
		return fmt.Errorf("input: %w: at most %d bytes", repute.ErrLimited, c.definition.MaxRequestBytes)
	}
	return c.input.validate(ctx, "input", raw)
}

// CheckOutput validates an answer in the same way.
func (c *Capability) CheckOutput(ctx context.Context, raw json.RawMessage) error {
	if int64(len(raw)) > c.definition.MaxAnswerBytes {
		return fmt.Errorf("output: %w: at most %d bytes", repute.ErrLimited, c.definition.MaxAnswerBytes)
	}
	return c.output.validate(ctx, "output", raw)
}

// TaskHash is the hash of a request for this capability to an agent.
func (c *Capability) TaskHash(agentID string, input json.RawMessage) (common.Hash, error) {
	return TaskHash(agentID, c.definition.Name, c.definition.Version, input)
}
