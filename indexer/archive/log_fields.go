package archive

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"repute/indexer/node"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// logFields are an object's scalar members by lower-case name without
// underscores, and its topics as raw JSON.
type logFields map[string]member

// member is a value with its key as spelled in the input.
type member struct {
	key   string
	value any
}

// blocksEnd is the first number that no block of an input may have: JSON numbers are exact below it.
const blocksEnd = 1 << 53

// wrong names the member that an error is about.
func (f logFields) wrong(name string, err error) error {
	if m, ok := f[name]; ok {
		name = m.key
	} else {
		name = strings.NewReplacer("number", "Number", "index", "Index", "hash", "Hash").Replace(name)
	}
	return fmt.Errorf("%s: %w", name, err)
}

// log reads the members of a log. Block hash, transaction index and block time
// may be absent, everything else is needed.
func (f logFields) log() (l types.Log, err error) {
	if removed, _ := f["removed"].value.(bool); removed {
		return l, errors.New("the log is marked removed")
	}
	var e [7]error
	var index, txIndex uint64
	e[0] = f.fixed("address", l.Address[:])
	e[1] = f.fixed("transactionhash", l.TxHash[:])
	l.Topics, e[2] = f.topics()
	l.Data, e[3] = f.bytes("data")
	l.BlockNumber, e[4] = f.below("blocknumber", blocksEnd)
	index, e[5] = f.below("logindex", math.MaxInt32+1)
	e[6] = f.optional(&l, &txIndex)
	if err := errors.Join(e[:]...); err != nil {
		return l, fmt.Errorf("log: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	l.Index, l.TxIndex = uint(index), uint(txIndex)
	return l, nil
}

// optional reads the fields that not every export has: the hash and the time of the block and the
// index of the transaction.
func (f logFields) optional(l *types.Log, txIndex *uint64) (err error) {
	if f["blockhash"].value != nil {
		if err := f.fixed("blockhash", l.BlockHash[:]); err != nil {
			return err
		}
	}
	if f["transactionindex"].value != nil {
		if *txIndex, err = f.below("transactionindex", math.MaxInt32+1); err != nil {
			return err
		}
	}
	for _, name := range []string{"blocktimestamp", "timestamp"} {
		if f[name].value == nil {
			continue
		}
		l.BlockTimestamp, err = f.below(name, node.TimesEnd)
		return err
	}
	return nil
}

// fixed reads bytes of exactly the length of into.
func (f logFields) fixed(name string, into []byte) error {
	b, err := f.bytes(name)
	if err == nil && len(b) != len(into) {
		err = f.wrong(name, fmt.Errorf("%d bytes instead of %d", len(b), len(into)))
	}
	copy(into, b)
	return err
}

// topics reads up to four topics. A null ends the list, because table exports fill it up that way.
func (f logFields) topics() ([]common.Hash, error) {
	raw, _ := f["topics"].value.(json.RawMessage)
	var list []*string
	if err := json.Unmarshal(raw, &list); err != nil || len(list) > 4 {
		return nil, errors.New("topics: not a list of at most 4 hashes")
	}
	topics := []common.Hash{}
	for _, s := range list {
		if s == nil {
			break // some exports fill up with null
		}
		b, err := unhex(*s)
		if err != nil || len(b) != 32 {
			return nil, fmt.Errorf("topics: %.80q is no hash", *s)
		}
		topics = append(topics, common.BytesToHash(b))
	}
	return topics, nil
}

// bytes reads hexadecimal bytes of any length; the error names the field.
func (f logFields) bytes(name string) ([]byte, error) {
	b, err := unhex(f[name].value)
	if err != nil {
		return nil, f.wrong(name, err)
	}
	return b, nil
}

// below reads a number, decimal or hexadecimal, that is less than end; the error names the field.
func (f logFields) below(name string, end uint64) (uint64, error) {
	n, err := quantity(f[name].value)
	if err == nil && n >= end {
		err = fmt.Errorf("%d is out of range", n)
	}
	if err != nil {
		return 0, f.wrong(name, err)
	}
	return n, nil
}

// unhex decodes a string of hexadecimal digits, which MUST begin with 0x: without it a decimal
// number would pass as bytes.
func unhex(v any) ([]byte, error) {
	s, ok := v.(string)
	if !ok {
		return nil, errors.New("missing")
	}
	digits, ok := strings.CutPrefix(s, "0x")
	if !ok {
		return nil, errors.New("no 0x")
	}
	return hex.DecodeString(digits)
}

// quantity reads hex or decimal; "0x" is zero, as one explorer writes it.
func quantity(v any) (uint64, error) {
	var s string
	switch v := v.(type) {
	case string:
		s = v
	case json.Number:
		s = v.String()
	default:
		return 0, errors.New("missing")
	}
	digits, isHex := strings.CutPrefix(s, "0x")
	if !isHex {
		return strconv.ParseUint(s, 10, 64)
	}
	if digits == "" {
		return 0, nil
	}
	return strconv.ParseUint(digits, 16, 64)
}

// lineReader bounds the input and records the offsets of its lines as far as the decoder has read.
type lineReader struct {
	r         io.Reader
	left, max int64
	read      int64
	breaks    []int64 // offsets of line ends not yet passed
	passed    int     // line ends passed
	err       error   // of the reader itself
}

// Read reads on and counts.
func (lr *lineReader) Read(p []byte) (int, error) {
	if lr.left <= 0 {
		lr.err = fmt.Errorf("more than %d bytes", lr.max)
		return 0, lr.err
	}
	if int64(len(p)) > lr.left {
		p = p[:lr.left]
	}
	n, err := lr.r.Read(p)
	for i, c := range p[:n] {
		if c == '\n' {
			lr.breaks = append(lr.breaks, lr.read+int64(i))
		}
	}
	lr.read += int64(n)
	lr.left -= int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		lr.err = err
	}
	return n, err
}

// line returns the line number of an offset, counted from 1. Offsets must not decrease between
// calls.
func (lr *lineReader) line(offset int64) int {
	passed := 0
	for passed < len(lr.breaks) && lr.breaks[passed] < offset {
		passed++
	}
	lr.breaks = lr.breaks[passed:]
	lr.passed += passed
	return lr.passed + 1
}
