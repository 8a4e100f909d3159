package contracts

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

// Argument is one value of a call. The values inside of tuples and lists are arguments of
// their own, behind one for the list that has its length as value.
type Argument struct {
	Path  string `json:"path" doc:"position from 0, below tuples and lists joined by dots: 2.0.1"`
	Name  string `json:"name,omitempty" doc:"as the ABI names it, e.g. orders[0].amount"`
	Type  string `json:"type" doc:"of the contract ABI, e.g. uint256"`
	Value string `json:"value" doc:"decimal of integers, 0x and hex of bytes, EIP-55 of addresses, true or false; of lists their length"`
	// At is where a value of one word begins in the calldata, 0 for others.
	At int `json:"-"`
}

// Arguments are the decoded arguments of a call.
type Arguments struct {
	Function *Function
	values   []value
}

// value is a decoded argument; at is as in Argument.
type value struct {
	field
	text  string
	at    int
	parts []value
}

// ErrEncoding is the kind of errors of calldata that is not the function's, or not in the
// ABI's one standard encoding: a decoder and the contract may then read different arguments.
var ErrEncoding = errors.New("calldata is not in the standard encoding")

// Decode takes calldata apart. It accepts only what an encoder writes (heads and tails in
// their order, without gaps, overlaps, dirty padding and trailing bytes), so that equal
// arguments are equal bytes. Its work is linear in the length of data. Errors wrap
// ErrEncoding.
func (f *Function) Decode(data []byte) (*Arguments, error) {
	if !f.Calls(data) {
		return nil, fmt.Errorf("%w: it does not begin with the selector of %s", ErrEncoding, f.Signature)
	}
	d := callReader{data: data}
	values, end, err := d.fields(f.inputs, 4)
	if err == nil && end != len(data) {
		err = fmt.Errorf("%w: %d bytes follow the arguments", ErrEncoding, len(data)-end)
	}
	if err != nil {
		return nil, err
	}
	return &Arguments{f, values}, nil
}

// callReader reads calldata at places that it has reached.
type callReader struct{ data []byte }

// word is the word that begins at a place in bytes.
func (d *callReader) word(at int) (common.Hash, error) {
	if at+wordSize > len(d.data) {
		return common.Hash{}, fmt.Errorf("%w: it is cut off", ErrEncoding)
	}
	return common.Hash(d.data[at : at+wordSize]), nil
}

// fields reads values whose heads begin at a place; end is behind the last tail. An encoder writes tails in the order
// of their heads, each directly behind the one before: end is where the next one MUST begin.
func (d *callReader) fields(types []field, from int) (out []value, end int, err error) {
	end = from
	for i := range types {
		end += types[i].words * wordSize
	}
	if end > len(d.data) {
		return nil, end, fmt.Errorf("%w: it is cut off", ErrEncoding)
	}
	head := from
	for i := range types {
		v, at := value{field: types[i]}, head
		if types[i].dynamic {
			if at = end; !d.places(head, end-from) {
				return nil, end, fmt.Errorf("%w: argument %d is not behind the one before", ErrEncoding, i)
			}
		}
		next, err := d.value(&v, at)
		if err != nil {
			return nil, end, err
		}
		if types[i].dynamic {
			end = next
		}
		head += types[i].words * wordSize
		out = append(out, v)
	}
	return out, end, nil
}

// places reports whether the word at head is the offset of a tail.
func (d *callReader) places(head, offset int) bool {
	w, err := d.word(head)
	return err == nil && w.Big().Cmp(big.NewInt(int64(offset))) == 0
}

// value reads one value; end is behind it.
func (d *callReader) value(v *value, at int) (end int, err error) {
	switch v.kind {
	case kindWord:
		w, err := d.word(at)
		if err != nil {
			return at, err
		}
		v.at = at
		v.text, err = wordText(&v.abiType, w)
		return at + wordSize, err
	case kindBytes:
		return d.bytes(v, at)
	case kindTuple:
		v.parts, end, err = d.fields(v.members, at)
		return end, err
	}
	n := v.size
	if v.kind == kindList {
		if n, err = d.length(at, v.elem.words*wordSize); err != nil {
			return at, err
		}
		v.text = strconv.Itoa(n)
		at += wordSize
	}
	elements := make([]field, n)
	for i := range elements {
		elements[i] = field{abiType: *v.elem}
	}
	v.parts, end, err = d.fields(elements, at)
	return end, err
}

// length reads how many elements of a size follow. It is bounded by the bytes that are left, so that a claimed length
// allocates no more than the calldata itself. size is never 0: listOf refuses elements without content.
func (d *callReader) length(at, size int) (int, error) {
	w, err := d.word(at)
	if err != nil {
		return 0, err
	}
	if n := w.Big(); n.IsInt64() && n.Int64() <= int64((len(d.data)-at-wordSize)/size) {
		return int(n.Int64()), nil
	}
	return 0, fmt.Errorf("%w: a length is beyond its end", ErrEncoding)
}

// bytes reads bytes or a string. Only zeros may pad them, and a string must be UTF-8, because it is shown to people.
func (d *callReader) bytes(v *value, at int) (end int, err error) {
	n, err := d.length(at, 1)
	if err != nil {
		return at, err
	}
	from := at + wordSize
	end = from + (n+wordSize-1)/wordSize*wordSize
	if end > len(d.data) || !zero(d.data[from+n:end]) {
		return end, fmt.Errorf("%w: bytes are not padded with zeros", ErrEncoding)
	}
	content := d.data[from : from+n]
	if v.abiType.name == "bytes" {
		v.text = hexutil.Encode(content)
	} else if v.text = string(content); !utf8.Valid(content) {
		err = fmt.Errorf("%w: a string is no UTF-8", ErrEncoding)
	}
	return end, err
}

// wordText is the text of a value of one word. Values wider than their type are refused, which a contract might cut
// off: a person would then confirm another value.
func wordText(t *abiType, w common.Hash) (string, error) {
	wide := fmt.Errorf("%w: %s is wider than %s", ErrEncoding, w, t.name)
	switch {
	case t.name == "address":
		if !zero(w[:12]) {
			return "", wide
		}
		return common.Address(w[12:]).Hex(), nil
	case t.name == "bool":
		if !zero(w[:31]) || w[31] > 1 {
			return "", wide
		}
		return strconv.FormatBool(w[31] == 1), nil
	case strings.HasPrefix(t.name, "bytes"):
		if !zero(w[t.size:]) {
			return "", wide
		}
		return hexutil.Encode(w[:t.size]), nil
	}
	n := w.Big()
	if strings.HasPrefix(t.name, "int") && n.Bit(255) == 1 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), 256))
	}
	if lowest, highest := Range(t.name); n.Cmp(lowest) < 0 || n.Cmp(highest) > 0 {
		return "", wide
	}
	return n.String(), nil
}

// Range is the least and greatest value of an integer type of the ABI; nil for other types.
func Range(typeName string) (lowest, highest *big.Int) {
	bits, unsigned := strings.CutPrefix(typeName, "uint")
	if !unsigned {
		var signed bool
		if bits, signed = strings.CutPrefix(typeName, "int"); !signed {
			return nil, nil
		}
	}
	n, err := strconv.ParseUint(bits, 10, 9)
	if err != nil || n == 0 || n > 256 {
		return nil, nil
	}
	one := big.NewInt(1)
	if unsigned {
		return new(big.Int), new(big.Int).Sub(new(big.Int).Lsh(one, uint(n)), one)
	}
	half := new(big.Int).Lsh(one, uint(n-1))
	return new(big.Int).Neg(half), new(big.Int).Sub(half, one)
}

// List returns the arguments one after the other, those inside of tuples and lists too. Tuples and arrays of a fixed
// length have no item of their own, since they have no value.
func (a *Arguments) List() []Argument {
	return listed(nil, a.values, "", "")
}

// listed appends values and, behind each, those inside of it. path and name are of what they are inside.
func listed(out []Argument, values []value, path, name string) []Argument {
	for i := range values {
		v := &values[i]
		at, called := path+strconv.Itoa(i), v.field.name
		switch {
		case name != "" && called == "":
			called = fmt.Sprintf("%s[%d]", name, i)
		case name != "":
			called = name + "." + called
		}
		if v.kind != kindTuple && v.kind != kindArray {
			out = append(out, Argument{Path: at, Name: called, Type: v.abiType.name, Value: v.text, At: v.at})
		}
		out = listed(out, v.parts, at+".", called)
	}
	return out
}

// Values are the arguments by name, or position where they have none, as values of Go:
// strings of integers (decimal), addresses (EIP-55) and bytes (hex), booleans, lists, and
// maps of tuples.
func (a *Arguments) Values() map[string]any { return mapped(a.values) }

// mapped names values as rules ask for them. Of two with one name the second has its position as its name, so that none
// is lost.
func mapped(values []value) map[string]any {
	out := make(map[string]any, len(values))
	for i := range values {
		name := values[i].field.name
		if _, twice := out[name]; name == "" || twice {
			name = strconv.Itoa(i)
		}
		out[name] = values[i].native()
	}
	return out
}

// native is a value as Values has it.
func (v *value) native() any {
	switch v.kind {
	case kindTuple:
		return mapped(v.parts)
	case kindList, kindArray:
		out := make([]any, len(v.parts))
		for i := range v.parts {
			out[i] = v.parts[i].native()
		}
		return out
	}
	if v.abiType.name == "bool" {
		return v.text == "true"
	}
	return v.text
}
