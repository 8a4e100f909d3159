package jsonrpc

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/go-json-experiment/json/jsontext"
)

// objectReader reads logs and headers from a stream of JSON tokens, each byte
// once. A wrong value leaves the stream inside the object: see skipTo.
type objectReader struct {
	dec    *jsontext.Decoder
	hashes slab[common.Hash]
	data   slab[byte]
}

// lenient accepts what encoding/json accepts. If a name is repeated the last value counts.
func lenient() []jsontext.Options {
	return []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}
}

// openList enters a list. It returns false without an error for null.
func (r *objectReader) openList(what string) (open bool, err error) {
	k := r.dec.PeekKind()
	if k != 'n' && k != '[' {
		return false, r.unexpected(what, k)
	}
	_, err = r.dec.ReadToken()
	return k == '[' && err == nil, err
}

// logs reads a list of logs: nil for null, and an empty list for an empty one.
func (r *objectReader) logs() ([]types.Log, error) {
	if open, err := r.openList("a list of logs"); !open {
		return nil, err
	}
	list := []types.Log{}
	for r.dec.PeekKind() != ']' {
		list = append(list, types.Log{})
		if err := r.log(&list[len(list)-1]); err != nil {
			return nil, fmt.Errorf("log %d of the answer: %w", len(list)-1, err)
		}
	}
	_, err := r.dec.ReadToken()
	return list, err
}

// Flags for the members that a log must have.
const (
	hasAddress = 1 << iota
	hasTopics
	hasData
	hasBlockNumber
	hasTxHash
	hasBlockHash
	hasIndex
	hasAll = 1<<iota - 1
)

// log reads one log of a mined block.
func (r *objectReader) log(l *types.Log) error {
	has := 0
	err := r.object(func(name []byte) (err error) {
		switch string(name) {
		case `"address"`:
			err = r.fixed(l.Address[:], hasAddress, &has)
		case `"topics"`:
			l.Topics, err = r.topics()
			has |= hasTopics
		case `"data"`:
			l.Data, err = r.bytes()
			has |= hasData
		case `"blockNumber"`:
			l.BlockNumber, err = r.quantity(hasBlockNumber, &has)
		case `"transactionHash"`:
			err = r.fixed(l.TxHash[:], hasTxHash, &has)
		case `"transactionIndex"`:
			l.TxIndex, err = r.index(0, &has)
		case `"blockHash"`:
			err = r.fixed(l.BlockHash[:], hasBlockHash, &has)
		case `"blockTimestamp"`:
			l.BlockTimestamp, err = r.quantity(0, &has)
		case `"logIndex"`:
			l.Index, err = r.index(hasIndex, &has)
		case `"removed"`:
			l.Removed, err = r.bool()
		default:
			err = r.dec.SkipValue()
		}
		return err
	})
	if err == nil && has != hasAll {
		err = errors.New("a log without address, topics, data, blockNumber, blockHash, transactionHash or logIndex")
	}
	return err
}

// object calls member with every quoted name; member reads the value.
func (r *objectReader) object(member func(name []byte) error) error {
	if k := r.dec.PeekKind(); k != '{' {
		return r.unexpected("an object", k)
	}
	if _, err := r.dec.ReadToken(); err != nil {
		return err
	}
	for r.dec.PeekKind() == '"' {
		name, err := r.dec.ReadValue()
		if err != nil {
			return err
		}
		if bytes.IndexByte(name, '\\') >= 0 {
			if name, err = unescaped(name); err != nil {
				return err
			}
		}
		if err := member(name); err != nil {
			// The name is gone: the stream's buffer has moved on.
			return fmt.Errorf("at %s: %w", r.dec.StackPointer(), err)
		}
	}
	_, err := r.dec.ReadToken()
	return err
}

// unescaped writes a name the plain way.
func unescaped(name []byte) ([]byte, error) {
	text, err := jsontext.AppendUnquote([]byte{'"'}, name)
	return append(text, '"'), err
}

// text reads a string as it stands, with its quotes; nil for null. It is valid
// until the next read.
func (r *objectReader) text() ([]byte, error) {
	switch k := r.dec.PeekKind(); k {
	case '"':
		return r.dec.ReadValue()
	case 'n':
		_, err := r.dec.ReadToken()
		return nil, err
	default:
		return nil, r.unexpected("a string", k)
	}
}

// fixed reads hexadecimal bytes of the length of dst and sets the member's flag in has. A null
// leaves both as they are.
func (r *objectReader) fixed(dst []byte, flag int, has *int) error {
	quoted, err := r.text()
	if err != nil || quoted == nil {
		return err
	}
	*has |= flag
	return readFixed(dst, quoted)
}

// quantity reads a hexadecimal number and sets the member's flag in has. A null is 0 and sets no
// flag.
func (r *objectReader) quantity(flag int, has *int) (uint64, error) {
	quoted, err := r.text()
	if err != nil || quoted == nil {
		return 0, err
	}
	*has |= flag
	return readQuantity(quoted)
}

// index reads a quantity that MUST fit an int of this machine.
func (r *objectReader) index(flag int, has *int) (uint, error) {
	n, err := r.quantity(flag, has)
	if uint64(uint(n)) != n {
		return 0, errQuantity
	}
	return uint(n), err
}

// maybeQuantity reads a quantity, nil for null.
func (r *objectReader) maybeQuantity() (*uint64, error) {
	has := 0
	n, err := r.quantity(1, &has)
	if err != nil || has == 0 {
		return nil, err
	}
	return &n, nil
}

// bytes reads hexadecimal bytes of any length into memory that the logs of an answer share.
func (r *objectReader) bytes() ([]byte, error) {
	quoted, err := r.text()
	if err != nil {
		return nil, err
	}
	if quoted == nil {
		return nil, errors.New("null instead of bytes")
	}
	text, _, err := digits(quoted)
	if err != nil {
		return nil, err
	}
	if len(text)%2 != 0 {
		return nil, errOddHex
	}
	data := r.data.take(len(text)/2, 1)
	_, err = hex.Decode(data, text)
	return data, err
}

// maxTopics is the largest number of topics of a log.
const maxTopics = 4

// topics reads at most four topics into memory that the logs of an answer share.
func (r *objectReader) topics() ([]common.Hash, error) {
	if k := r.dec.PeekKind(); k != '[' {
		return nil, r.unexpected("a list of topics", k)
	}
	if _, err := r.dec.ReadToken(); err != nil {
		return nil, err
	}
	var found [maxTopics]common.Hash
	n := 0
	for ; r.dec.PeekKind() == '"'; n++ {
		quoted, err := r.dec.ReadValue()
		if err != nil {
			return nil, err
		}
		if n == maxTopics {
			return nil, fmt.Errorf("more than %d topics", maxTopics)
		}
		if err := readFixed(found[n][:], quoted); err != nil {
			return nil, err
		}
	}
	if k := r.dec.PeekKind(); k != ']' {
		return nil, r.unexpected("a topic", k)
	}
	list := r.hashes.take(n, common.HashLength)
	copy(list, found[:n])
	_, err := r.dec.ReadToken()
	return list, err
}

// bool reads true or false; null is false.
func (r *objectReader) bool() (bool, error) {
	switch k := r.dec.PeekKind(); k {
	case 't', 'f', 'n':
		_, err := r.dec.ReadToken()
		return k == 't', err
	default:
		return false, r.unexpected("true or false", k)
	}
}

// unexpected returns the error for a value of the wrong kind. For kind 0 there is no value, and the
// next read returns the cause.
func (r *objectReader) unexpected(want string, k jsontext.Kind) error {
	if k == 0 {
		_, err := r.dec.ReadToken()
		return err
	}
	return fmt.Errorf("%s instead of %s", k, want)
}
