package contracts

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/ethereum/go-ethereum/crypto"

	"repute"
)

// Function is a contract's function as its callers see it: a name and typed arguments.
type Function struct {
	// Selector is the first four bytes of the hash of Signature.
	Selector [4]byte
	// Signature is the name with the types of the arguments: transfer(address,uint256).
	Signature string
	// Text is Signature with the names of the arguments, where they have names.
	Text   string
	inputs []field
}

// field is an argument of a function, or a member of a tuple.
type field struct {
	name string
	abiType
}

// kind is the shape of a type of the contract ABI.
type kind int

const (
	kindWord  kind = iota // one word: integers, addresses, booleans, bytesN
	kindBytes             // bytes and string: a length and as many bytes
	kindList              // T[]: a length and as many elements
	kindArray             // T[n]
	kindTuple
)

// abiType is a type of the contract ABI.
type abiType struct {
	kind
	name    string // canonical: uint256, (address,bytes)[]
	size    int    // of words: bits of integers, bytes of bytesN; of arrays: elements
	elem    *abiType
	members []field // of tuples
	words   int     // in the head; 1 for dynamic types, of which the head has the place
	dynamic bool    // the size follows from the value: the head has the offset of the tail
}

// Bounds of function texts. They keep what a text describes as small as the text.
const (
	maxFunctionText = 2 << 10
	maxNesting      = 8
	maxHeadWords    = 4 << 10 // calldata has at most as many words
)

// ParseFunction reads a function's text as Solidity writes it, without the word function and
// what follows the arguments: transfer(address to, uint256 amount). Names may be missing.
// The error is repute.ErrInvalid.
func ParseFunction(text string) (*Function, error) {
	p := &functionParser{rest: text}
	if len(text) > maxFunctionText {
		return nil, repute.Invalid("function", "is too long", fmt.Sprintf("at most %d bytes", maxFunctionText))
	}
	name := p.word()
	inputs, err := p.tuple(0)
	if err == nil && (name == "" || strings.TrimSpace(p.rest) != "") {
		err = fmt.Errorf("starts without a name or has more text after the arguments")
	}
	if err != nil {
		return nil, repute.Invalid("function", fmt.Sprintf("%.80q cannot be read: %v", text, err),
			"a name with types, e.g. transfer(address to, uint256 amount)")
	}
	f := &Function{inputs: inputs, Signature: name + typesOf(inputs), Text: name + "(" + strings.Join(described(inputs),
		", ") + ")"}
	copy(f.Selector[:], crypto.Keccak256([]byte(f.Signature)))
	return f, nil
}

// Calls reports whether calldata names the function.
func (f *Function) Calls(data []byte) bool { return bytes.HasPrefix(data, f.Selector[:]) }

// typesOf is the list of types in parentheses, as it is hashed into a selector.
func typesOf(fields []field) string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.abiType.name
	}
	return "(" + strings.Join(names, ",") + ")"
}

// described lists types with the names that they have.
func described(fields []field) []string {
	out := make([]string, len(fields))
	for i, f := range fields {
		out[i] = strings.TrimSpace(f.text() + " " + f.name)
	}
	return out
}

// text is a type with the names of the members of its tuples.
func (t *abiType) text() string {
	switch t.kind {
	case kindTuple:
		return "(" + strings.Join(described(t.members), ", ") + ")"
	case kindList:
		return t.elem.text() + "[]"
	case kindArray:
		return fmt.Sprintf("%s[%d]", t.elem.text(), t.size)
	}
	return t.name
}

// functionParser reads a function's text from the left.
type functionParser struct{ rest string }

// word takes an identifier, empty where there is none.
func (p *functionParser) word() string {
	p.rest = strings.TrimLeft(p.rest, " ")
	end := strings.IndexFunc(p.rest, func(r rune) bool {
		return r != '_' && r != '$' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
	if end < 0 {
		end = len(p.rest)
	}
	word := p.rest[:end]
	p.rest = p.rest[end:]
	return word
}

// take takes a sign and reports whether it was there.
func (p *functionParser) take(sign string) bool {
	rest, ok := strings.CutPrefix(strings.TrimLeft(p.rest, " "), sign)
	if ok {
		p.rest = rest
	}
	return ok
}

// tuple takes arguments in parentheses.
func (p *functionParser) tuple(depth int) (out []field, err error) {
	if !p.take("(") || depth > maxNesting {
		return nil, fmt.Errorf("no opening parenthesis, or more than %d inside each other", maxNesting)
	}
	for !p.take(")") {
		if len(out) > 0 && !p.take(",") {
			return nil, fmt.Errorf("no comma before %.20q", p.rest)
		}
		var f field
		if f.abiType, err = p.oneType(depth); err != nil {
			return nil, err
		}
		for f.name = p.word(); f.name == "memory" || f.name == "calldata" || f.name == "payable"; {
			f.name = p.word()
		}
		out = append(out, f)
	}
	return out, nil
}

// oneType takes a type with its brackets.
func (p *functionParser) oneType(depth int) (t abiType, err error) {
	word := p.word()
	switch {
	case word == "" || word == "tuple":
		members, err := p.tuple(depth + 1)
		if err != nil {
			return t, err
		}
		t = tupleOf(members)
	default:
		if t, err = elementary(word); err != nil {
			return t, err
		}
	}
	for brackets := 0; p.take("["); brackets++ {
		length := p.word()
		if !p.take("]") || brackets >= maxNesting {
			return t, fmt.Errorf("no closing bracket, or more than %d", maxNesting)
		}
		if t, err = listOf(t, length); err != nil {
			return t, err
		}
	}
	if t.words > maxHeadWords {
		return t, fmt.Errorf("%s is larger than any calldata", t.name)
	}
	return t, nil
}

// tupleOf is the type of a tuple. Its words stop counting one above maxHeadWords, so that nested arrays cannot overflow
// the number.
func tupleOf(members []field) abiType {
	t := abiType{kind: kindTuple, name: typesOf(members), members: members}
	for _, m := range members {
		t.words, t.dynamic = min(t.words+m.words, maxHeadWords+1), t.dynamic || m.dynamic
	}
	if t.dynamic {
		t.words = 1
	}
	return t
}

// listOf is a list of elements of a type, or an array where it has a length.
func listOf(elem abiType, length string) (abiType, error) {
	if elem.words == 0 {
		return elem, fmt.Errorf("%s has no content to repeat", elem.name)
	}
	t := abiType{kind: kindList, name: elem.name + "[]", elem: &elem, words: 1, dynamic: true}
	if length == "" {
		return t, nil
	}
	n, err := strconv.Atoi(length)
	if err != nil || n < 1 || n > maxHeadWords || strconv.Itoa(n) != length {
		return t, fmt.Errorf("%.20q is no length of an array", length)
	}
	t.kind, t.name, t.size, t.dynamic = kindArray, elem.name+"["+length+"]", n, elem.dynamic
	if !elem.dynamic {
		t.words = min(n*elem.words, maxHeadWords+1)
	}
	return t, nil
}

// elementary is a type that is a word by itself: uint is uint256.
func elementary(word string) (abiType, error) {
	one := abiType{kind: kindWord, name: word, words: 1}
	base := strings.TrimRight(word, "0123456789")
	n, err := strconv.Atoi(word[len(base):])
	switch digits := word[len(base):]; {
	case word == "address" || word == "bool":
		return one, nil
	case word == "bytes" || word == "string":
		return abiType{kind: kindBytes, name: word, words: 1, dynamic: true}, nil
	case word == "uint" || word == "int":
		one.name, one.size = word+"256", 256
		return one, nil
	case err != nil || strconv.Itoa(n) != digits:
	case (base == "uint" || base == "int") && n%8 == 0 && n >= 8 && n <= 256, base == "bytes" && n >= 1 && n <= 32:
		one.size = n
		return one, nil
	}
	return one, fmt.Errorf("%.40q is no type", word)
}
