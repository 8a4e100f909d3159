package archive

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/ethereum/go-ethereum/core/types"

	"repute"
)

// Bounds of recorded logs: they are in memory as a whole.
const (
	maxInput = 1 << 30 // bytes
	maxLogs  = 2_000_000
)

// recording is the result of readLogs, in the order of the input.
type recording struct {
	Logs []recordedLog
	// Range is the range of blocks that the input claims to cover ("blockRange"), nil without such
	// a claim.
	Range *repute.BlockRange
	// ChainID is the input's own "chainId", 0 when it has none.
	ChainID uint64
}

// recordedLog is a log and the number of its last line.
type recordedLog struct {
	types.Log
	Line int
}

// readLogs reads recorded logs, within bounds: a JSON array of logs, one JSON value per line, JSON-RPC
// answers alone or in batches, receipts with their logs, or objects that contain any of these under any
// name. Quantities may be hex or decimal, as strings or numbers; names may be written with
// underscores. Block time, block hash and transaction index may be missing; a block time of 0
// counts as missing. Malformed input is an ErrInvalid that names line and byte; no logs are
// returned with an error.
func readLogs(r io.Reader, mostBytes int64, mostLogs int) (recording, error) {
	in := &lineReader{r: r, left: mostBytes, max: mostBytes}
	lr := &logReader{dec: json.NewDecoder(in), in: in, max: mostLogs}
	lr.dec.UseNumber()
	for lr.dec.More() {
		if err := lr.value(0); err != nil {
			return recording{}, lr.fail(err)
		}
	}
	if _, err := lr.dec.Token(); !errors.Is(err, io.EOF) {
		return recording{}, lr.fail(err)
	}
	return lr.found, nil
}

// logReader walks JSON of unknown shape and collects what looks like a log.
type logReader struct {
	dec   *json.Decoder
	in    *lineReader
	max   int
	found recording
}

// maxDepth is deeper than any known format.
const maxDepth = 32

// fail adds the position to an error.
func (lr *logReader) fail(err error) error {
	if errors.Is(lr.in.err, io.ErrUnexpectedEOF) {
		return repute.Invalid("logs", fmt.Sprintf("line %d: the compressed input is cut short",
			lr.in.line(lr.dec.InputOffset())), "nothing was stored; give a whole file")
	}
	if lr.in.err != nil {
		return fmt.Errorf("read logs: %w", lr.in.err)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("the input ends in the middle of a value")
	}
	at := lr.dec.InputOffset()
	return repute.Invalid("logs", fmt.Sprintf("line %d, byte %d: %v", lr.in.line(at), at, err),
		"a JSON array of logs, one log per line, JSON-RPC answers or receipts")
}

// value reads one value of any kind.
func (lr *logReader) value(depth int) error {
	tok, err := lr.dec.Token()
	if err != nil {
		return err
	}
	return lr.rest(tok, depth)
}

// rest reads a value after its first token.
func (lr *logReader) rest(tok json.Token, depth int) error {
	if depth > maxDepth {
		return errors.New("nested too deeply")
	}
	switch tok {
	case json.Delim('['):
		for lr.dec.More() {
			if err := lr.value(depth + 1); err != nil {
				return err
			}
		}
		_, err := lr.dec.Token()
		return err
	case json.Delim('{'):
		return lr.object(depth)
	}
	return nil
}

// object reads an object after its brace. Members that may belong to a log are kept until its end,
// which shows whether it is one; all others are searched for logs.
func (lr *logReader) object(depth int) error {
	fields := logFields{}
	for lr.dec.More() {
		tok, err := lr.dec.Token()
		if err != nil {
			return err
		}
		key, _ := tok.(string)
		if err := lr.member(key, fields, depth); err != nil {
			return err
		}
	}
	if _, err := lr.dec.Token(); err != nil {
		return err
	}
	if _, ok := fields["topics"]; ok {
		return lr.add(fields)
	}
	return lr.header(fields)
}

// member reads the value of one member. JSON-RPC errors and null results stop the reading, because
// their logs are missing from the input.
func (lr *logReader) member(key string, fields logFields, depth int) error {
	name := strings.ToLower(strings.ReplaceAll(key, "_", ""))
	switch name {
	case "topics", "blockrange", "error":
		var raw json.RawMessage
		if err := lr.dec.Decode(&raw); err != nil {
			return err
		}
		if name == "error" && string(raw) != "null" {
			return fmt.Errorf("an error instead of logs: %.200s", raw)
		}
		fields[name] = member{key, raw}
		return nil
	}
	tok, err := lr.dec.Token()
	if err != nil {
		return err
	}
	if name == "result" && tok == nil {
		return errors.New("result is null")
	}
	if _, nested := tok.(json.Delim); nested {
		return lr.rest(tok, depth+1)
	}
	fields[name] = member{key, tok}
	return nil
}

// add appends the log that consists of an object's members.
func (lr *logReader) add(fields logFields) error {
	if len(lr.found.Logs) >= lr.max {
		return fmt.Errorf("more than %d logs", lr.max)
	}
	l, err := fields.log()
	if err != nil {
		return err
	}
	lr.found.Logs = append(lr.found.Logs, recordedLog{Log: l, Line: lr.in.line(lr.dec.InputOffset())})
	return nil
}

// header reads the chain id and the range from an object around logs.
func (lr *logReader) header(fields logFields) error {
	if fields["chainid"].value != nil {
		id, err := fields.below("chainid", 1<<63)
		if err != nil {
			return err
		}
		if lr.found.ChainID != 0 && lr.found.ChainID != id {
			return fmt.Errorf("chainId %d after %d", id, lr.found.ChainID)
		}
		lr.found.ChainID = id
	}
	if raw, ok := fields["blockrange"].value.(json.RawMessage); ok {
		if err := lr.blockRange(raw); err != nil {
			return fields.wrong("blockrange", err)
		}
	}
	return nil
}

// blockRange reads the range that the input claims to cover. It refuses one that ends before it
// begins or beyond any block number.
func (lr *logReader) blockRange(raw json.RawMessage) error {
	var members struct{ From, To any }
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&members); err != nil {
		return err
	}
	from, err := quantity(members.From)
	to, err2 := quantity(members.To)
	if err := errors.Join(err, err2); err != nil || from > to {
		return fmt.Errorf("%.80s is no range", raw)
	}
	if to >= blocksEnd {
		return fmt.Errorf("%d is beyond any block", to)
	}
	lr.found.Range = &repute.BlockRange{From: from, To: to}
	return nil
}
