// Package schemas checks the three files that an agent of the orchestrator publishes against JSON Schemas:
// agent-registration.json, agent.json (the orchestrator's own, not that of package agentjson) and agent_log.json.
//
// The schemas are the JSON files of this directory, and are compiled for each check: checks are rare. Detect tells
// manifests and logs by the schema that they name. The package reads no network; a schema refers to no other file.
package schemas

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"repute"
)

// Kinds of the files that only orchestrators know.
const (
	CapabilityDocument repute.DocumentKind = "capability" // agent.json
	LogDocument        repute.DocumentKind = "log"        // agent_log.json
)

// Codes of problems.
const (
	CodeNoJSON = "SC001" // the bytes are no JSON
	CodeSchema = "SC002" // a value is not what the schema says
)

// Hint tells what to do about every problem found here.
const Hint = "write what the JSON Schema of the file says: manifest/schemas in the sources"

// What capability manifests and logs name as their schema.
const (
	capabilitySchema = "https://openfi.dev/schemas/agent/"
	logSchema        = "https://openfi.dev/schemas/agent-log/"
)

//go:embed *.json
var files embed.FS

// Detect tells whether bytes are a capability manifest or a log by the schema they name.
func Detect(b []byte) (kind repute.DocumentKind, ok bool) {
	var named struct {
		Schema string `json:"schema"`
	}
	if json.Unmarshal(b, &named) != nil {
		return repute.UnknownDocument, false
	}
	switch {
	case strings.HasPrefix(named.Schema, logSchema):
		return LogDocument, true
	case strings.HasPrefix(named.Schema, capabilitySchema):
		return CapabilityDocument, true
	}
	return repute.UnknownDocument, false
}

// maxProblems bounds what is listed of one document.
const maxProblems = 100

// Check lists what of a document its schema does not allow: a CapabilityDocument, a
// LogDocument or a repute.RegistrationDocument. repute.ErrInvalid: there is no schema for
// the kind.
func Check(kind repute.DocumentKind, b []byte) ([]repute.Problem, error) {
	schema, err := compiled(kind)
	if err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		return []repute.Problem{{Code: CodeNoJSON, Severity: repute.SeverityError,
			Message: "the document is no JSON: " + err.Error()}}, nil
	}
	var failed *jsonschema.ValidationError
	if err := schema.Validate(doc); !errors.As(err, &failed) {
		return nil, err
	}
	return leaves(nil, failed, message.NewPrinter(language.English)), nil
}

// leaves are the places where a document fails, without those that only contain them.
func leaves(out []repute.Problem, e *jsonschema.ValidationError, p *message.Printer) []repute.Problem {
	if len(e.Causes) == 0 && len(out) < maxProblems {
		path := ""
		for _, part := range e.InstanceLocation {
			path += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(part)
		}
		out = append(out, repute.Problem{Code: CodeSchema, Severity: repute.SeverityError, Path: path,
			Message: fmt.Sprintf("%.300s", e.ErrorKind.LocalizedString(p))})
	}
	for _, c := range e.Causes {
		out = leaves(out, c, p)
	}
	return out
}

// compiled returns the schema of a kind, ready for validation. The error is repute.ErrInvalid for
// kinds without a schema.
func compiled(kind repute.DocumentKind) (*jsonschema.Schema, error) {
	name := map[repute.DocumentKind]string{CapabilityDocument: "agent.json", LogDocument: "agent_log.json",
		repute.RegistrationDocument: "agent-registration.json"}[kind]
	if name == "" {
		return nil, repute.Invalid("kind", fmt.Sprintf("there is no schema of %.40q", kind),
			"capability, log or registration")
	}
	raw, err := files.ReadFile(name)
	if err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("schema %s: %w", name, err)
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(jsonschema.SchemeURLLoader{}) // none: a reference to another file is an error
	if err := c.AddResource(name, doc); err != nil {
		return nil, fmt.Errorf("schema %s: %w", name, err)
	}
	schema, err := c.Compile(name)
	if err != nil {
		return nil, fmt.Errorf("schema %s: %w", name, err)
	}
	return schema, nil
}
