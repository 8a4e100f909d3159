package source

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
)

// wordSize is the length of a word of the contract ABI, in bytes.
const wordSize = 32

// wordType is a type of the contract ABI whose values take one word: address, bool, uintN or bytesN. Types of variable
// length are left out, apart from one name and the data of an attestation, so that an answer has one length and a
// contract cannot return more than is read.
type wordType struct {
	name string
	size int // bits of uintN, bytes of bytesN
}

// value is a typed, named word that a function takes or returns.
type value struct {
	name string
	wordType
}

// function is the signature of a contract function that a plan calls. text is the canonical signature without names,
// whose hash begins with selector.
type function struct {
	text     string
	selector [4]byte
	inputs   []value
	outputs  []value
	record   bool // the function returns an EAS attestation: decode uses decodeRecord
	named    bool // the function returns one name: decode uses decodeName
}

// maxSignature bounds the text of a function or error, in bytes.
const maxSignature = 500

// parseFunction parses a signature such as lookupHuman(address) returns (uint256 humanId). newPlan calls it for each
// function and each error of a file of sources. The same form serves errors, which return nothing. Unnamed outputs are
// refused later, by declare.
func parseFunction(text string) (f function, err error) {
	parts := regexp.MustCompile(`^(\w+)\(([^()]*)\)(?: returns \(([^()]*)\))?$`).FindStringSubmatch(text)
	if parts == nil || len(text) > maxSignature {
		return f, errors.New("is no signature such as lookupHuman(address) returns (uint256 humanId)")
	}
	if f.inputs, err = parseValues(parts[2]); err != nil {
		return f, err
	}
	if returned := strings.Fields(parts[3]); len(returned) == 2 && returned[0] == nameType {
		f.named, f.outputs = true, nameValues(returned[1])
	} else {
		f.outputs, err = parseValues(parts[3])
	}
	types := make([]string, len(f.inputs))
	for i, in := range f.inputs {
		types[i] = in.wordType.name
	}
	f.text = parts[1] + "(" + strings.Join(types, ",") + ")"
	copy(f.selector[:], crypto.Keccak256([]byte(f.text)))
	return f, err
}

// parseValues parses a list of types with optional names, divided by commas. A single word is a type without a name, as
// parameters mostly have.
func parseValues(text string) (out []value, err error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		words := strings.Fields(part)
		if len(words) == 0 || len(words) > 2 {
			return nil, fmt.Errorf("has %q where a type with a name is wanted", part)
		}
		t, err := parseType(words[0])
		if err != nil {
			return nil, err
		}
		out = append(out, value{name: strings.Join(words[1:], ""), wordType: t})
	}
	return out, nil
}

// parseType parses the name of a type. The error lists the types that are supported.
func parseType(name string) (wordType, error) {
	t := wordType{name: name}
	if name == "address" || name == "bool" {
		return t, nil
	}
	digits, least, most, step := strings.TrimPrefix(name, "uint"), 8, 256, 8
	if bytes, ok := strings.CutPrefix(name, "bytes"); ok {
		digits, least, most, step = bytes, 1, 32, 1
	}
	n, err := strconv.Atoi(digits)
	if err != nil || digits == name || strconv.Itoa(n) != digits || n < least || n > most || n%step != 0 {
		return t, fmt.Errorf("has the type %.40q; address, bool, uint8 to uint256 and bytes1 to bytes32 can be read", name)
	}
	t.size = n
	return t, nil
}

// valid reports whether a word is an encoded value of the type. Decoders of Solidity revert on words with other bits
// set, so that a contract that returns them is not the one declared. Numbers, addresses and bool are padded on the
// left, bytesN on the right.
func (t wordType) valid(w common.Hash) bool {
	switch {
	case t.name == "address":
		return zero(w[:12])
	case t.name == "bool":
		return zero(w[:31]) && w[31] <= 1
	case t.number():
		return zero(w[:wordSize-t.size/8])
	}
	return zero(w[t.size:])
}

// number reports whether the type is uintN.
func (t wordType) number() bool { return strings.HasPrefix(t.name, "uint") }

// zero reports whether all bytes are 0.
func zero(b []byte) bool {
	for _, x := range b {
		if x != 0 {
			return false
		}
	}
	return true
}

// literal encodes a value that is written in the file of sources. An address may be written in any capitals. Numbers
// are decimal, bytesN exactly N bytes in hexadecimal.
func (t wordType) literal(text string) (w common.Hash, err error) {
	switch {
	case t.name == "bool" && (text == "true" || text == "false"):
		w[31] = byte(len("false") - len(text)) // 1 of true, 0 of false
		return w, nil
	case t.name == "address" && common.IsHexAddress(text):
		return common.BytesToHash(common.HexToAddress(text).Bytes()), nil
	case t.number():
		n, ok := new(big.Int).SetString(text, 10)
		if ok && n.Sign() >= 0 && n.BitLen() <= t.size {
			return common.BigToHash(n), nil
		}
	case t.size > 0:
		if b, err := hexutil.Decode(text); err == nil && len(b) == t.size {
			copy(w[:], b)
			return w, nil
		}
	}
	return w, fmt.Errorf("%.80q is no %s", text, t.name)
}

// encode returns the calldata of a call with these arguments.
func (f *function) encode(arguments []common.Hash) []byte {
	out := make([]byte, 0, len(f.selector)+len(arguments)*wordSize)
	out = append(out, f.selector[:]...)
	for _, a := range arguments {
		out = append(out, a[:]...)
	}
	return out
}

// errEncoding is returned for an answer that is not of the declared type. It turns the source off, since no rater can
// cause it.
var errEncoding = errors.New("the answer is not of the declared type")

// decode returns the words of an answer. It refuses with errEncoding everything that no ABI encoder writes, and with
// errName a string that is no name.
func (f *function) decode(data []byte) ([]common.Hash, error) {
	switch {
	case f.record:
		return f.decodeRecord(data)
	case f.named:
		return decodeName(data)
	}
	return f.words(data)
}

// words decodes an answer that consists of exactly the words of the declared outputs. More bytes than declared are an
// error as well: the function would be another one.
func (f *function) words(data []byte) ([]common.Hash, error) {
	if len(data) != len(f.outputs)*wordSize {
		return nil, fmt.Errorf("%w: %d bytes instead of %d", errEncoding, len(data), len(f.outputs)*wordSize)
	}
	out := make([]common.Hash, len(f.outputs))
	for i, o := range f.outputs {
		if out[i] = common.Hash(data[i*wordSize:]); !o.valid(out[i]) {
			return nil, fmt.Errorf("%w: %s is no %s", errEncoding, out[i], o.wordType.name)
		}
	}
	return out, nil
}

// recordText declares the nine words of an attestation that getAttestation of EAS returns. The field data, which
// follows them, has no fixed size and is left out.
const recordText = "getAttestation(bytes32) returns (bytes32 uid, bytes32 schema, uint64 time, " +
	"uint64 expirationTime, uint64 revocationTime, bytes32 refUID, address recipient, address attester, bool revocable)"

// decodeRecord decodes an EAS attestation: a tuple of nine words and the bytes of data. The layout is that of a dynamic
// tuple: an offset to the tuple, nine words, an offset to data within the tuple, its length, and its bytes padded to
// whole words. Every offset MUST have its only canonical value.
func (f *function) decodeRecord(data []byte) ([]common.Hash, error) {
	head := len(f.outputs) * wordSize
	tail := wordSize + head + wordSize // after the offset of the tuple, the nine words and the offset of data
	if len(data) < tail+wordSize || number(data[0:]) != wordSize ||
		number(data[tail-wordSize:]) != uint64(head+wordSize) {
		return nil, fmt.Errorf("%w: %d bytes are no attestation", errEncoding, len(data))
	}
	if n := number(data[tail:]); n > uint64(len(data)) ||
		tail+wordSize+int(n+wordSize-1)/wordSize*wordSize != len(data) {
		return nil, fmt.Errorf("%w: the attestation's data does not end with the answer", errEncoding)
	}
	return f.words(data[wordSize : wordSize+head])
}

// number returns a word as a number, or the largest uint64 when the word does not fit. data MUST have at least a word;
// the largest value fails every comparison with a length.
func number(data []byte) uint64 {
	if !zero(data[:24]) {
		return 1<<64 - 1
	}
	return binary.BigEndian.Uint64(data[24:])
}
