package wire

import (
	"fmt"
	"math"
	"strconv"
)

// The scalars of the wire. In JSON they are strings, Long is a number; in
// GraphQL they are the custom scalars of the same names.
type (
	// ID names a thing for ever.
	ID string
	// Long is a 64-bit number.
	Long int64
	// BigInt is an integer of any size in decimal digits.
	BigInt string
	// Decimal is an exact decimal number without exponent.
	Decimal string
	// Address is 0x and 40 hex digits, in answers with EIP-55 capitals.
	Address string
	// Hash is 0x and 64 hex digits.
	Hash string
	// Hex is 0x and hex digits.
	Hex string
	// Time is RFC 3339 in UTC.
	Time string
)

// ImplementsGraphQLType names the scalar.
func (ID) ImplementsGraphQLType(name string) bool { return name == "ID" }

// ImplementsGraphQLType names the scalar.
func (Long) ImplementsGraphQLType(name string) bool { return name == "Long" }

// ImplementsGraphQLType names the scalar.
func (BigInt) ImplementsGraphQLType(name string) bool { return name == "BigInt" }

// ImplementsGraphQLType names the scalar.
func (Decimal) ImplementsGraphQLType(name string) bool { return name == "Decimal" }

// ImplementsGraphQLType names the scalar.
func (Address) ImplementsGraphQLType(name string) bool { return name == "Address" }

// ImplementsGraphQLType names the scalar.
func (Hash) ImplementsGraphQLType(name string) bool { return name == "Hash" }

// ImplementsGraphQLType names the scalar.
func (Hex) ImplementsGraphQLType(name string) bool { return name == "Hex" }

// ImplementsGraphQLType names the scalar.
func (Time) ImplementsGraphQLType(name string) bool { return name == "Time" }

// UnmarshalGraphQL takes a string or a number.
func (s *ID) UnmarshalGraphQL(input any) error {
	switch v := input.(type) {
	case int32:
		*s = ID(strconv.FormatInt(int64(v), 10))
		return nil
	case int64:
		*s = ID(strconv.FormatInt(v, 10))
		return nil
	}
	return unmarshalText(s, input)
}

// UnmarshalGraphQL reads a number, or a string for those that a client's
// numbers cannot hold.
func (l *Long) UnmarshalGraphQL(input any) error {
	switch v := input.(type) {
	case int32:
		*l = Long(v)
		return nil
	case int64:
		*l = Long(v)
		return nil
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			*l = Long(v)
			return nil
		}
	case string:
		if n, err := strconv.ParseInt(v, 10, 64); err == nil {
			*l = Long(n)
			return nil
		}
	}
	return fmt.Errorf("not a whole number: %v", input)
}

// UnmarshalGraphQL takes any string; the resolver says what is wrong with it.
func (s *BigInt) UnmarshalGraphQL(input any) error { return unmarshalText(s, input) }

// UnmarshalGraphQL takes any string; the resolver says what is wrong with it.
func (s *Decimal) UnmarshalGraphQL(input any) error { return unmarshalText(s, input) }

// UnmarshalGraphQL takes any string; the resolver says what is wrong with it.
func (s *Address) UnmarshalGraphQL(input any) error { return unmarshalText(s, input) }

// UnmarshalGraphQL takes any string; the resolver says what is wrong with it.
func (s *Hash) UnmarshalGraphQL(input any) error { return unmarshalText(s, input) }

// UnmarshalGraphQL takes any string; the resolver says what is wrong with it.
func (s *Hex) UnmarshalGraphQL(input any) error { return unmarshalText(s, input) }

// UnmarshalGraphQL takes any string; the resolver says what is wrong with it.
func (s *Time) UnmarshalGraphQL(input any) error { return unmarshalText(s, input) }

// unmarshalText reads a scalar that is a string in JSON.
func unmarshalText[T ~string](out *T, input any) error {
	s, isText := input.(string)
	if !isText {
		return fmt.Errorf("not a string: %v", input)
	}
	*out = T(s)
	return nil
}
