package jsonrpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/go-json-experiment/json/jsontext"
)

// callRequest is one call of a batch.
type callRequest struct {
	Version string `json:"jsonrpc"`
	ID      int    `json:"id"`
	Method  string `json:"method"`
	Params  []any  `json:"params"`
}

// encodeCalls encodes a batch with ids from 1. A single call is one object, because some endpoints
// do not support batches.
func encodeCalls(batch []rpc.BatchElem) ([]byte, error) {
	calls := make([]callRequest, len(batch))
	for i, e := range batch {
		calls[i] = callRequest{"2.0", i + 1, e.Method, e.Args}
		if e.Args == nil {
			calls[i].Params = []any{}
		}
	}
	if len(calls) == 1 {
		return json.Marshal(calls[0])
	}
	return json.Marshal(calls)
}

// Refusal is a JSON-RPC error of an endpoint. It has the methods of go-ethereum's rpc.Error and
// rpc.DataError.
type Refusal struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`

	Status int           // of the HTTP response
	Retry  time.Duration // its Retry-After, 0 for none
}

// Error is the message of the endpoint, or its data if the message is empty.
func (r *Refusal) Error() string {
	if r.Message == "" && len(r.Data) > 0 {
		return fmt.Sprintf("error %d: %s", r.Code, r.Data)
	}
	return r.Message
}

// ErrorCode returns the JSON-RPC code.
func (r *Refusal) ErrorCode() int { return r.Code }

// ErrorData returns the data member as encoding/json decodes it.
func (r *Refusal) ErrorData() any {
	var v any
	_ = json.Unmarshal(r.Data, &v) // absent or not JSON: nothing
	return v
}

// readRefusal decodes an error object of JSON-RPC, or a plain text.
func readRefusal(raw []byte) *Refusal {
	var r Refusal
	if json.Unmarshal(raw, &r) == nil {
		return &r
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		text = string(raw)
	}
	return &Refusal{Message: text}
}

// answers reads the answers to one batch into its elements.
type answers struct {
	objectReader
	batch []rpc.BatchElem
	seen  []bool
	whole error // the error of an answer without id, which concerns all calls
}

// readAnswers reads the body of a response once and as a stream. The returned error concerns the
// whole batch; errors of single calls are in the elements.
func readAnswers(body io.Reader, batch []rpc.BatchElem) error {
	a := answers{batch: batch, seen: make([]bool, len(batch))}
	a.dec = jsontext.NewDecoder(body, lenient()...)
	if bounded, ok := body.(*boundedBody); ok {
		bounded.parsed = a.dec.InputOffset
	}
	if err := a.read(); err != nil {
		return malformed(err)
	}
	if a.whole != nil {
		return a.whole
	}
	for i, seen := range a.seen {
		if !seen {
			batch[i].Error = &AnswerError{"no answer to this call"}
		}
	}
	return nil
}

// malformed wraps an error of the JSON syntax. Failures of the connection are returned unchanged.
func malformed(err error) error {
	var syntax *jsontext.SyntacticError
	var known *AnswerError
	switch {
	case errors.As(err, &known):
		return err
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return &AnswerError{"it ends too early"}
	case errors.As(err, &syntax):
		return &AnswerError{"not JSON: " + strings.TrimPrefix(syntax.Error(), "jsontext: ")}
	}
	return err
}

// read decodes the answer to a request or a batch. Each result goes to its call as soon as it is
// decoded, so that a large answer is never held whole.
func (a *answers) read() error {
	switch k := a.dec.PeekKind(); k {
	case '{':
		if err := a.one(); err != nil {
			return err
		}
	case '[':
		if _, err := a.dec.ReadToken(); err != nil {
			return err
		}
		for a.dec.PeekKind() == '{' {
			if err := a.one(); err != nil {
				return err
			}
		}
		if k := a.dec.PeekKind(); k != ']' {
			return a.unexpected("an answer", k)
		}
		if _, err := a.dec.ReadToken(); err != nil {
			return err
		}
	default:
		return a.unexpected("answers", k)
	}
	switch _, err := a.dec.ReadToken(); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return err
	}
	return &AnswerError{"more follows the answers"}
}

// reply is the part of one answer that was read.
type reply struct {
	call   int // index of the element, -1 while the id is not known, -2 for id null
	id     bool
	result bool
	held   []byte // a result that was sent before the id
	failed *Refusal
	other  string // text of an answer that is no JSON-RPC
}

// one reads an answer object. Its members may have any order.
func (a *answers) one() error {
	r := reply{call: -1}
	err := a.object(func(name []byte) error {
		switch string(name) {
		case `"id"`:
			return a.id(&r)
		case `"result"`:
			return a.result(&r)
		case `"error"`:
			raw, err := a.dec.ReadValue()
			if err == nil && raw.Kind() != 'n' {
				r.failed = readRefusal(raw)
			}
			return err
		case `"message"`, `"detail"`, `"msg"`:
			raw, err := a.dec.ReadValue()
			r.other = string(raw)
			return err
		}
		return a.dec.SkipValue()
	})
	if err != nil {
		return err
	}
	return a.take(&r)
}

// take stores a complete answer in its element.
func (a *answers) take(r *reply) error {
	if r.call < 0 && r.failed == nil && r.other != "" {
		r.failed = &Refusal{Message: r.other}
	}
	switch {
	case r.call < 0 && r.failed != nil:
		a.whole = r.failed
		return nil
	case r.call < 0:
		return &AnswerError{"an answer without id"}
	case a.seen[r.call]:
		return &AnswerError{fmt.Sprintf("call %d is answered twice", r.call+1)}
	}
	a.seen[r.call] = true
	e := &a.batch[r.call]
	switch {
	case r.failed != nil:
		e.Error = r.failed
	case r.held != nil:
		held := answers{batch: a.batch}
		held.dec = jsontext.NewDecoder(bytes.NewReader(r.held), lenient()...)
		e.Error = held.value(e.Result)
	case !r.result:
		e.Error = &AnswerError{"neither result nor error"}
	}
	return nil
}

// id finds the call that is answered. Some endpoints repeat the number as text.
func (a *answers) id(r *reply) error {
	raw, err := a.dec.ReadValue()
	switch {
	case err != nil:
		return err
	case r.id:
		return &AnswerError{"an answer with two ids"}
	}
	r.id = true
	if raw.Kind() == 'n' {
		return nil
	}
	n, err := strconv.Atoi(strings.Trim(string(raw), `"`))
	if err != nil || n < 1 || n > len(a.batch) {
		return &AnswerError{"an answer to another call: id " + string(raw)}
	}
	r.call = n - 1
	return nil
}

// result reads a result straight into its element where the id is known.
func (a *answers) result(r *reply) error {
	if r.result {
		return &AnswerError{"an answer with two results"}
	}
	r.result = true
	if r.call < 0 || a.seen[r.call] {
		raw, err := a.dec.ReadValue()
		r.held = bytes.Clone(raw)
		return err
	}
	depth := a.dec.StackDepth()
	_, members := a.dec.StackIndex(depth)
	e := &a.batch[r.call]
	if e.Error = a.value(e.Result); e.Error == nil {
		return nil
	}
	return a.skipTo(depth, members)
}

// skipTo leaves a value in which reading stopped, so that the remaining answers can be read: until
// the object at depth has more than members names and values. A broken stream fails again.
func (a *answers) skipTo(depth int, members int64) error {
	for {
		_, n := a.dec.StackIndex(min(depth, a.dec.StackDepth()))
		if a.dec.StackDepth() < depth || a.dec.StackDepth() == depth && n > members {
			return nil
		}
		var err error
		if k := a.dec.PeekKind(); k == '}' || k == ']' {
			_, err = a.dec.ReadToken()
		} else {
			err = a.dec.SkipValue()
		}
		if err != nil {
			return err
		}
	}
}

// value reads one result. Logs, headers and receipts, which are frequent, are read token by token,
// everything else by encoding/json.
func (a *answers) value(into any) (err error) {
	switch into := into.(type) {
	case *[]types.Log:
		*into, err = a.logs()
	case **Header:
		*into, err = a.header()
	case *[]*ReceiptJSON:
		*into, err = a.receipts()
	case **ReceiptJSON:
		*into, err = a.receipt()
	case nil:
		err = a.dec.SkipValue()
	default:
		var raw jsontext.Value
		if raw, err = a.dec.ReadValue(); err == nil {
			err = json.Unmarshal(raw, into)
		}
	}
	if err != nil {
		return fmt.Errorf("unreadable result: %w", err)
	}
	return nil
}
