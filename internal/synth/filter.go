package synth

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/ethereum/go-ethereum/common"
)

// filter is the question of eth_getLogs.
type filter struct {
	BlockHash *common.Hash          `json:"blockHash"`
	FromBlock blockRef              `json:"fromBlock"`
	ToBlock   blockRef              `json:"toBlock"`
	Address   anyOf[common.Address] `json:"address"`
	Topics    []anyOf[common.Hash]  `json:"topics"`

	// The same in hex, as lines have it.
	addresses [][]byte
	topics    [][][]byte
	written   bool // a line was sent
}

// anyOf reads one value, a list, or null for any.
type anyOf[T any] []T

// UnmarshalJSON reads the three forms.
func (a *anyOf[T]) UnmarshalJSON(raw []byte) error {
	if len(raw) > 0 && raw[0] == '[' {
		if err := json.Unmarshal(raw, (*[]T)(a)); err != nil {
			return fmt.Errorf("filter: %w", err)
		}
		return nil
	}
	var one *T
	if err := json.Unmarshal(raw, &one); err != nil {
		return fmt.Errorf("filter: %w", err)
	}
	if one != nil {
		*a = anyOf[T]{*one}
	}
	return nil
}

// everything tells whether no log of a history can fail the filter.
func (q *filter) everything(e *encoder) bool {
	for _, registry := range []common.Address{identityAddress, reputationAddress, validationAddress} {
		if len(q.Address) > 0 && !slices.Contains(q.Address, registry) {
			return false
		}
	}
	for i, wanted := range q.Topics {
		if len(wanted) == 0 {
			continue
		}
		if i > 0 {
			return false
		}
		for _, topic := range e.topics[1:] {
			if !slices.Contains(wanted, topic) {
				return false
			}
		}
	}
	return true
}

// prepare writes the filter in hex.
func (q *filter) prepare() {
	for _, a := range q.Address {
		q.addresses = append(q.addresses, hex.AppendEncode(nil, a[:]))
	}
	for _, wanted := range q.Topics {
		var list [][]byte
		for _, t := range wanted {
			list = append(list, hex.AppendEncode(nil, t[:]))
		}
		q.topics = append(q.topics, list)
	}
}

// matches looks at the places where a line has its address and topics.
func (q *filter) matches(line []byte) bool {
	if len(q.addresses) > 0 && !contains(q.addresses, line[addressAt:addressAt+40]) {
		return false
	}
	for i, wanted := range q.topics {
		at := topicAt + i*topicStep
		if i > 0 && string(line[at-4:at]) != `,"0x` { // fewer topics
			return false
		}
		if len(wanted) > 0 && !contains(wanted, line[at:at+64]) {
			return false
		}
	}
	return true
}

func contains(list [][]byte, b []byte) bool {
	return slices.ContainsFunc(list, func(x []byte) bool { return bytes.Equal(x, b) })
}

// copy writes the lines that match, without the comma of the last one.
func (q *filter) copy(w io.Writer, lines io.Reader) (n int64, err error) {
	in, out := bufio.NewReaderSize(lines, 1<<16), bufio.NewWriterSize(w, 1<<16)
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return n, out.Flush()
		}
		if err != nil {
			return n, err
		}
		if !q.matches(line) {
			continue
		}
		if q.written {
			n++
			if err := out.WriteByte(','); err != nil {
				return n, err
			}
		}
		q.written = true
		sent, err := out.Write(line[:len(line)-len(lineEnd)])
		if n += int64(sent); err != nil {
			return n, err
		}
	}
}
