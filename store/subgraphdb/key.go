package subgraphdb

import (
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/ethereum/go-ethereum/common/hexutil"

	"repute"
)

// Form is how a part of a key is written in an id and stored in Postgres.
type Form int

// Forms of parts of keys.
const (
	// FormNumber is a decimal number without sign and leading zeros, of type numeric or bigint.
	FormNumber Form = iota
	// FormHex is an address or a hash in lower-case hex with 0x, of type bytea.
	FormHex
	// FormOptional is FormHex, left out where it is empty. It is the last part.
	FormOptional
	// FormText is the rest of the id, of type bytea.
	FormText
)

// Part is a part of a key.
type Part struct {
	Form Form
	SQL  string
}

// Key is what the id of an entity consists of: the chain, where Chain is set, and the parts, with colons between them.
type Key struct {
	Chain bool
	// Fixed is the id of an entity that exists once. Any id finds it.
	Fixed string
	Parts []Part
}

// columns returns the expressions of the parts.
func (k Key) columns() []string {
	out := []string{}
	for _, p := range k.Parts {
		out = append(out, p.SQL)
	}
	return out
}

// Value is the key of one row: a string for FormNumber, bytes for the other forms. It is nil for no row.
type Value []any

// Format returns the id of a key.
func (k Key) Format(chain uint64, v Value) string {
	if k.Fixed != "" {
		return k.Fixed
	}
	var parts []string
	if k.Chain {
		parts = append(parts, strconv.FormatUint(chain, 10))
	}
	for i, p := range k.Parts {
		switch b, _ := v[i].([]byte); p.Form {
		case FormNumber:
			parts = append(parts, v[i].(string))
		case FormOptional:
			if len(b) > 0 {
				parts = append(parts, hexutil.Encode(b))
			}
		case FormHex:
			parts = append(parts, hexutil.Encode(b))
		case FormText:
			parts = append(parts, text(b))
		}
	}
	return strings.Join(parts, ":")
}

// Parse returns the key that an id names. ok is false for a text that is the id of no row.
func (k Key) Parse(chain uint64, id string) (v Value, ok bool) {
	if k.Fixed != "" {
		return Value{}, true
	}
	most := len(k.Parts)
	if k.Chain {
		most++
	}
	segments := strings.SplitN(id, ":", most) // the last one may have colons
	if k.Chain {
		if segments[0] != strconv.FormatUint(chain, 10) {
			return nil, false
		}
		segments = segments[1:]
	}
	v = Value{}
	for i, p := range k.Parts {
		if i >= len(segments) {
			if p.Form != FormOptional {
				return nil, false
			}
			v = append(v, []byte{})
			continue
		}
		part, ok := p.Form.parse(segments[i])
		if !ok {
			return nil, false
		}
		v = append(v, part)
	}
	return v, len(segments) <= len(k.Parts)
}

// parse reads a part as ids write it.
func (f Form) parse(s string) (part any, ok bool) {
	switch f {
	case FormNumber:
		n, err := repute.ParseTokenID(s)
		return n.Dec(), err == nil
	case FormText:
		return []byte(s), true
	}
	digits, found := strings.CutPrefix(s, "0x")
	b, err := hex.DecodeString(digits)
	return b, found && err == nil && strings.ToLower(s) == s && len(b) > 0
}

// text returns a text of the chain as valid UTF-8.
func text(b []byte) string { return strings.ToValidUTF8(string(b), "\uFFFD") }

// prefix returns what all ids of a chain begin with.
func (k Key) prefix(chain uint64) string {
	if k.Chain && len(k.Parts) > 0 {
		return strconv.FormatUint(chain, 10) + ":"
	}
	return ""
}

// byToken reports whether ids are a chain, a token id, and what follows it.
func (k Key) byToken() bool { return k.Chain && len(k.Parts) > 0 && k.Parts[0].Form == FormNumber }

// id returns the SQL of the text of an id whose parts are at the expressions.
func (k Key) id(columns []string, level int) string {
	switch {
	case k.Fixed != "":
		return "'" + k.Fixed + "'"
	case k.Chain && len(k.Parts) == 0:
		return "($1::bigint::text)"
	case k.Chain:
		return "($1::bigint::text || ':' || " + k.rest(columns, level) + ")"
	}
	return k.rest(columns, level)
}

// rest returns the SQL of the text of an id after its prefix.
func (k Key) rest(columns []string, level int) string {
	var parts []string
	tail := ""
	for i, p := range k.Parts {
		sql := at(columns[i], level)
		if p.Form == FormOptional {
			tail = " || case when " + sql + " = '' then '' else ':0x' || encode(" + sql + ", 'hex') end"
			continue
		}
		parts = append(parts, p.Form.text(sql))
	}
	return "(" + strings.Join(parts, " || ':' || ") + tail + ")"
}

// text returns the SQL of a part as ids write it.
func (f Form) text(sql string) string {
	switch f {
	case FormNumber:
		return "(" + sql + ")::text"
	case FormText:
		return "encode(" + sql + ", 'escape')"
	}
	return "'0x' || encode(" + sql + ", 'hex')"
}

// within returns the SQL of what orders the ids of one token like their texts do: part by part, because an index has
// the parts. Addresses and hashes ascend as their hex does.
func (k Key) within(columns []string, level int) (out []string) {
	for i, p := range k.Parts {
		sql := at(columns[i], level)
		switch {
		case i == 0, p.Form == FormHex:
			out = append(out, sql)
		case i < len(k.Parts)-1:
			out = append(out, "("+p.Form.text(sql)+" || ':')"+collateC)
		default:
			out = append(out, "("+p.Form.text(sql)+")"+collateC)
		}
	}
	return out
}
