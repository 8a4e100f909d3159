package x402

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Names of extensions (specs/extensions).
const (
	ExtensionPaymentID    = "payment-identifier"
	ExtensionOfferReceipt = "offer-receipt"
	ExtensionBazaar       = "bazaar"
)

// schemaDraft is the JSON Schema draft of extensions' schemas.
const schemaDraft = "https://json-schema.org/draft/2020-12/schema"

// extension is one item of Extensions. The schema is for clients and catalogs; this package does not validate by it.
type extension struct {
	Info   any `json:"info"`
	Schema any `json:"schema"`
}

// Add sets an extension by its info and the JSON Schema of it.
func (e *Extensions) Add(name string, info, schema any) error {
	raw, err := json.Marshal(extension{info, schema})
	if err != nil {
		return fmt.Errorf("extension %s: %w", name, err)
	}
	if *e == nil {
		*e = Extensions{}
	}
	(*e)[name] = raw
	return nil
}

// info reads the info of an extension; ok is false where it is not there. The error is a *Refusal.
func (e Extensions) info(name string, into any) (ok bool, err error) {
	raw, ok := e[name]
	if !ok {
		return false, nil
	}
	x := struct {
		Info any `json:"info"`
	}{into}
	if err := json.Unmarshal(raw, &x); err != nil {
		return false, Refuse(ReasonInvalidPayload, "extension %s: %v", name, err)
	}
	return true, nil
}

// object is JSON of a schema.
type object map[string]any

// paymentID is the info of the extension payment-identifier.
type paymentID struct {
	Required bool   `json:"required"`
	ID       string `json:"id,omitempty"`
}

// Lengths of a payment's id, in characters.
const (
	minPaymentID = 16
	maxPaymentID = 128
)

// OfferPaymentID lets clients name their payments (payment_identifier.md), or demands it.
func (e *Extensions) OfferPaymentID(required bool) error {
	return e.Add(ExtensionPaymentID, paymentID{Required: required}, object{"$schema": schemaDraft, "type": "object",
		"properties": object{"required": object{"type": "boolean"}, "id": object{"type": "string",
			"minLength": minPaymentID, "maxLength": maxPaymentID, "pattern": "^[a-zA-Z0-9_-]+$"}},
		"required": []string{"required"}})
}

// SetPaymentID adds the client's id to the extension that a server offered; nothing is changed
// where it offered none.
func (e Extensions) SetPaymentID(id string) error {
	var info map[string]any
	ok, err := e.info(ExtensionPaymentID, &info)
	if err != nil || !ok {
		return err
	}
	if !validPaymentID(id) {
		return fmt.Errorf("payment id: 16 to 128 letters, digits, - and _ are allowed")
	}
	var whole map[string]json.RawMessage
	if err := json.Unmarshal(e[ExtensionPaymentID], &whole); err != nil {
		return fmt.Errorf("extension %s: %w", ExtensionPaymentID, err)
	}
	if info == nil {
		info = map[string]any{}
	}
	info["id"] = id
	if whole["info"], err = json.Marshal(info); err != nil {
		return fmt.Errorf("extension %s: %w", ExtensionPaymentID, err)
	}
	e[ExtensionPaymentID], err = json.Marshal(whole)
	return err
}

// PaymentID returns the client's id of a payment, "" where it has none. The same id with the same
// payload asks for the same answer again; with another payload it is a conflict, and servers
// answer 409. The error is a *Refusal where the id is malformed, or required and missing.
func (e Extensions) PaymentID(required bool) (string, error) {
	var info paymentID
	ok, err := e.info(ExtensionPaymentID, &info)
	switch {
	case err != nil:
		return "", err
	case (!ok || info.ID == "") && required:
		return "", Refuse(ReasonInvalidPayload, "extension %s: id is missing, and this server needs it", ExtensionPaymentID)
	case !ok || info.ID == "":
		return "", nil
	case !validPaymentID(info.ID):
		return "", Refuse(ReasonInvalidPayload, "extension %s: id is malformed: 16 to 128 letters, digits, - and _ are allowed",
			ExtensionPaymentID)
	}
	return info.ID, nil
}

// validPaymentID reports whether an id has the form of the extension.
func validPaymentID(id string) bool {
	return len(id) >= minPaymentID && len(id) <= maxPaymentID && strings.Trim(id,
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == ""
}

// Discovery describes an endpoint that takes JSON for catalogs (bazaar.md).
type Discovery struct {
	Method        string          // GET, POST
	InputExample  json.RawMessage // query parameters or body
	InputSchema   json.RawMessage // JSON Schema of them
	OutputExample json.RawMessage
	Tool          string // name, where the resource is an MCP tool; Method is ignored then
	Description   string // of the tool
}

// AddDiscovery describes the resource to catalogs. Methods without a body take query parameters; every other one, ""
// too, takes a body of JSON.
func (e *Extensions) AddDiscovery(d Discovery) error {
	input, required := object{"type": "http", "method": d.Method}, []string{"type"}
	described := object{"type": object{"type": "string", "const": "http"}, "method": object{"type": "string"}}
	switch {
	case d.Tool != "":
		input = object{"type": "mcp", "toolName": d.Tool, "inputSchema": orEmpty(d.InputSchema)}
		if d.Description != "" {
			input["description"] = d.Description
		}
		described = object{"type": object{"type": "string", "const": "mcp"}, "toolName": object{"type": "string"},
			"description": object{"type": "string"}, "inputSchema": object{"type": "object"}}
		required = []string{"type", "toolName", "inputSchema"}
	case d.Method == "GET" || d.Method == "HEAD" || d.Method == "DELETE":
		input["queryParams"] = orEmpty(d.InputExample)
		described["queryParams"] = orEmpty(d.InputSchema)
	default:
		input["bodyType"], input["body"] = "json", orEmpty(d.InputExample)
		described["bodyType"], described["body"] = object{"type": "string", "enum": []string{"json"}}, orEmpty(d.InputSchema)
		required = []string{"type", "bodyType", "body"}
	}
	info := object{"input": input}
	properties := object{"input": object{"type": "object", "properties": described, "required": required}}
	if len(d.OutputExample) > 0 {
		info["output"] = object{"type": "json", "example": d.OutputExample}
		properties["output"] = object{"type": "object", "properties": object{"type": object{"type": "string"},
			"example": object{}}, "required": []string{"type"}}
	}
	return e.Add(ExtensionBazaar, info, object{"$schema": schemaDraft, "type": "object", "properties": properties,
		"required": []string{"input"}})
}

// orEmpty returns JSON, an empty object for none.
func orEmpty(raw json.RawMessage) any {
	if len(raw) == 0 {
		return object{}
	}
	return raw
}
