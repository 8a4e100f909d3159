package node

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/rpc"

	"repute/indexer/node/jsonrpc"
	"repute/indexer/node/limit"
)

// CallContext makes one call and decodes its result into result, which may be nil. The error wraps
// an rpc.Error when the endpoint answered with an error, and contains neither the path nor the keys
// of the endpoint.
func (n *Node) CallContext(ctx context.Context, result any, method string, args ...any) error {
	batch := []rpc.BatchElem{{Method: method, Args: args, Result: result}}
	if err := n.BatchCallContext(ctx, batch); err != nil {
		return err
	}
	return batch[0].Error
}

// BatchCallContext makes several calls, in as many requests as the endpoint requires. The error of
// a single call is in its element.
func (n *Node) BatchCallContext(ctx context.Context, batch []rpc.BatchElem) error {
	_, err := n.exchange(ctx, batch)
	return err
}

// exchange sends one batch, in as many requests as the endpoint requires, and returns the size of
// the answers in bytes; 0 where it is not known. All errors, including those in the elements, are
// safe to show.
func (n *Node) exchange(ctx context.Context, batch []rpc.BatchElem) (size int, err error) {
	for len(batch) > 0 {
		part := batch[:min(len(batch), n.batches.Size())]
		more, err := n.request(ctx, part)
		if n.tooMany(part, err) {
			for i := range part {
				part[i].Error = nil
			}
			continue
		}
		if err != nil {
			return size, err
		}
		if !refusesBatch(part, nil) {
			n.batches.Answered()
		}
		size += more
		batch = batch[len(part):]
	}
	return size, nil
}

// request sends calls in one request once the limiter admits it.
func (n *Node) request(ctx context.Context, batch []rpc.BatchElem) (size int, err error) {
	leave, err := n.limiter.Enter(ctx)
	if err != nil {
		return 0, n.wrap("request", err)
	}
	done := n.meter.begin()
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, n.opts.Timeout)
	defer cancel()
	size, err = n.send(limited, batch)
	err = n.doubt(batch, err)
	if err != nil {
		err = n.wrap("batch", err)
	}
	for i := range batch {
		e := &batch[i]
		if e.Error != nil {
			e.Error = n.wrap(e.Method, e.Error)
		}
		n.meter.call(e.Method, err != nil || e.Error != nil)
	}
	o := outcomeOf(ctx, batch, err, time.Since(began))
	leave(o)
	done(o)
	return size, err
}

// send is request without limiter, metrics and removal of keys.
func (n *Node) send(ctx context.Context, batch []rpc.BatchElem) (size int, err error) {
	if n.http != nil {
		return n.http.Send(ctx, batch)
	}
	return 0, n.push(ctx, batch)
}

// fairWait is how long a request must have taken for a deadline of the caller to count as a timeout
// of the endpoint. Shorter deadlines show nothing about the endpoint.
const fairWait = 5 * time.Second

// outcomeOf returns the outcome of a request for the limiter. ctx is that of the caller.
func outcomeOf(ctx context.Context, batch []rpc.BatchElem, err error, took time.Duration) limit.Outcome {
	o := limit.Outcome{Err: err, Took: took}
	if ctx.Err() != nil && (took < fairWait || !errors.Is(ctx.Err(), context.DeadlineExceeded)) {
		o.Err = context.Canceled
	}
	for _, e := range batch {
		o.Dense = o.Dense || e.Method == "eth_getLogs" || e.Method == "eth_getBlockReceipts"
		if o.Err == nil && e.Error != nil && !isRevert(e) && jsonrpc.Diagnose(e.Error).Fault == jsonrpc.FaultRate {
			o.Err = e.Error
		}
	}
	if o.Err != nil {
		o.Text = o.Err.Error()
	}
	return o
}

// tooMany reports whether the endpoint requires fewer calls per request, and reduces the number.
func (n *Node) tooMany(batch []rpc.BatchElem, err error) bool {
	if len(batch) == 1 || !refusesBatch(batch, err) {
		return false
	}
	n.batches.Refused(len(batch))
	return true
}

// refusesBatch reports whether a batch or one of its calls was refused because of the number of
// calls.
func refusesBatch(batch []rpc.BatchElem, err error) bool {
	return isBatchRefusal(err) ||
		slices.ContainsFunc(batch, func(e rpc.BatchElem) bool { return isBatchRefusal(e.Error) && !isRevert(e) })
}

// isRevert reports whether a contract ended the call: the message is then the contract's and not
// the endpoint's.
func isRevert(e rpc.BatchElem) bool {
	return e.Method == "eth_call" && e.Error != nil && jsonrpc.IsRevert(e.Error)
}

// isBatchRefusal reports whether an endpoint refused a batch because of the number of its calls.
func isBatchRefusal(err error) bool {
	var refusal rpc.Error
	var page *jsonrpc.StatusError
	text := ""
	switch {
	case errors.As(err, &refusal):
		text = strings.ToLower(refusal.Error())
	case errors.As(err, &page):
		text = strings.ToLower(page.Body)
	}
	return strings.Contains(text, "batch") && slices.ContainsFunc(
		[]string{"large", "limit", "too many", "more than", "exceed", "size", "not allowed", "not supported", "disabled"},
		func(word string) bool { return strings.Contains(text, word) })
}

// push sends a batch over a websocket connection. A connection that breaks during the call is an
// AnswerError, not a ConnError: the endpoint is up, and the answer may have been larger than it allows.
func (n *Node) push(ctx context.Context, batch []rpc.BatchElem) error {
	client, err := n.dial(ctx)
	if err != nil {
		return &jsonrpc.ConnError{Err: err}
	}
	var refusal rpc.Error
	err = client.BatchCallContext(ctx, batch)
	switch {
	case err == nil, ctx.Err() != nil, errors.As(err, &refusal), errors.Is(err, rpc.ErrClientQuit):
		return err
	}
	return &jsonrpc.AnswerError{What: "connection lost: " + err.Error()}
}

// doubt turns an ambiguous refusal, which may mean a range too large or an outage, into an outage
// if the previous answer of the endpoint was the same.
func (n *Node) doubt(batch []rpc.BatchElem, err error) error {
	doubtful := func(err error) bool {
		var refusal rpc.Error
		return errors.As(err, &refusal) && jsonrpc.IsDoubtful(refusal.Error())
	}
	now := doubtful(err) ||
		slices.ContainsFunc(batch, func(e rpc.BatchElem) bool { return doubtful(e.Error) && !isRevert(e) })
	if before := n.doubted.Swap(now); !before || !now {
		return err
	}
	for i := range batch {
		if doubtful(batch[i].Error) {
			batch[i].Error = jsonrpc.Outage(batch[i].Error)
		}
	}
	if doubtful(err) {
		return jsonrpc.Outage(err)
	}
	return err
}
