package httpapi

import (
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"repute"
)

// Parameters arrive as text and are parsed by their handlers, so that each mistake is answered by
// 400 with the name of the parameter and the allowed values. Their types define how they are
// documented.
type (
	// Number is a parameter documented as an integer.
	Number string
	// Real is a parameter documented as a number.
	Real string
	// Flag is a parameter documented as a boolean.
	Flag string
	// Since is a parameter documented as a time, a date or the number of a block.
	Since string
)

// Schema returns the schema of an integer.
func (Number) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeInteger, Format: "int64"}
}

// Schema returns the schema of a number.
func (Real) Schema(huma.Registry) *huma.Schema { return &huma.Schema{Type: huma.TypeNumber} }

// Schema returns the schema of a boolean.
func (Flag) Schema(huma.Registry) *huma.Schema { return &huma.Schema{Type: huma.TypeBoolean} }

// Schema returns the schema of a time, a date or a block number.
func (Since) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{AnyOf: []*huma.Schema{{Type: huma.TypeString, Format: "date"},
		{Type: huma.TypeString, Format: "date-time"}, {Type: huma.TypeString, Pattern: "^[0-9]{1,18}$"}},
		Examples: []any{"2026-01-31"}}
}

// Bool reads true, 1, false or 0; absent is false. repute.ErrInvalid names the parameter.
func (f Flag) Bool(name string) (bool, error) {
	switch f {
	case "", "false", "0":
		return false, nil
	case "true", "1":
		return true, nil
	}
	return false, repute.Invalid(name, "not a boolean", "true or false")
}

// Optional is Bool; it returns nil if the parameter is absent.
func (f Flag) Optional(name string) (*bool, error) {
	if f == "" {
		return nil, nil
	}
	b, err := f.Bool(name)
	return &b, err
}

// Default and largest size of a page of a list.
const (
	DefaultPage = 50
	MaxPage     = 200
)

// PageSize reads the parameter limit. repute.ErrInvalid: it is not from 1 to most.
func PageSize(limit Number, usual, most int) (int, error) {
	if limit == "" {
		return usual, nil
	}
	n, err := strconv.Atoi(string(limit))
	if err != nil || n < 1 || n > most || limit[0] == '+' {
		return 0, repute.Invalid("limit", "not a page size", "a number from 1 to "+strconv.Itoa(most))
	}
	return n, nil
}
