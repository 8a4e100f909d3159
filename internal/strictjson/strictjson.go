// Package strictjson decodes documents that people write in JSON, or in YAML: policies, capabilities, configurations of
// models, items of a batch. A member that is unknown, given twice or of the wrong type is an error that names it by a
// JSON pointer, because a misspelled member of a policy would otherwise be a rule that does not hold.
//
// YAML becomes JSON first (FromYAML), so that there is one decoder. Decode gives each error the kind repute.ErrInvalid,
// and bounds the untrusted text in it.
package strictjson

import (
	"errors"
	"fmt"
	"reflect"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"repute"
)

// Document describes a kind of document for errors.
type Document struct {
	Name    string // of the document: errors name its members by this and a JSON Pointer
	Unknown string // what is said of an unknown member
	Hint    string // which members are allowed
}

// maxText bounds the parts of errors, in bytes, because they contain untrusted text.
const maxText = 200

// Decode decodes a document. The error is that of Wrong.
func (d Document) Decode(raw []byte, into any) error {
	if err := jsonv2.Unmarshal(raw, into, jsonv2.RejectUnknownMembers(true)); err != nil {
		return d.Wrong(err)
	}
	return nil
}

// Wrong converts an error of decoding to repute.ErrInvalid, which names the member that could not be read.
func (d Document) Wrong(err error) error {
	field, reason := d.Name, err.Error()
	var semantic *jsonv2.SemanticError
	var syntactic *jsontext.SyntacticError
	switch {
	case errors.As(err, &semantic):
		field += string(semantic.JSONPointer)
		switch {
		case errors.Is(semantic.Err, jsonv2.ErrUnknownName):
			reason = d.Unknown
		case semantic.Err != nil:
			reason = semantic.Err.Error()
		case semantic.GoType != nil:
			reason = "is no " + nameOf(semantic.GoType)
		}
	case errors.As(err, &syntactic):
		field, reason = field+string(syntactic.JSONPointer), syntactic.Err.Error()
	}
	return repute.Invalid(fmt.Sprintf("%.*s", maxText, field), fmt.Sprintf("%.*s", maxText, reason), d.Hint)
}

// nameOf returns what JSON calls the values of a Go type.
func nameOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Struct, reflect.Map:
		return "object"
	case reflect.Slice:
		return "list"
	}
	return "number in range"
}
