package wallet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"

	"repute"
	"repute/indexer/node"
)

// Timeouts of a call to an endpoint; the shorter one applies if the chain has more endpoints. Both MUST
// exceed five seconds, from which on package node counts them as a failure of the endpoint.
const (
	callTimeout     = 20 * time.Second
	failoverTimeout = 6 * time.Second
)

// endpoint is one JSON-RPC endpoint of a chain. Its URL and the errors of its transport are only
// logged: errors reach agents, which see its name.
type endpoint struct {
	name    string // its place among the chain's endpoints, for errors
	place   int    // the same, from 0
	log     *slog.Logger
	rpc     *node.Node
	timeout time.Duration // of one call
}

// checkURL refuses the URL of an endpoint that is not HTTP; field names it in errors.
func checkURL(field, url string) error {
	if _, err := node.New(url, node.Options{}); err != nil || !strings.HasPrefix(url, "http") {
		return repute.Invalid(field, "is no address", "an http or https URL")
	}
	return nil
}

// plain returns an untrusted text as one line of printable characters, for errors.
func plain(text string) string {
	if len(text) > 300 {
		text = text[:300] + "…"
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == utf8.RuneError { // including characters that reverse the direction of text
			return ' '
		}
		return r
	}, text)
}

// failed returns the error of an endpoint that failed. Only the log contains the endpoint's own text, which may
// have its URL with a key in it, and what the endpoint wants a reader to believe.
func (e *endpoint) failed(doing string, err error) error {
	if !errors.Is(err, context.Canceled) {
		e.log.Warn("transactions: an endpoint did not answer", "endpoint", e.name, "host", e.rpc.Host(), "request",
			doing,
			"error", plain(err.Error()))
	}
	return &downError{fmt.Sprintf("%s of %s: no answer", doing, e.name)}
}

// downError is returned for an endpoint without an answer, as opposed to a wrong answer. with continues
// with the next endpoint after it.
type downError struct{ text string }

// Error names the call and the endpoint.
func (e *downError) Error() string { return e.text + ": " + repute.ErrUnavailable.Error() }

// Unwrap returns repute.ErrUnavailable.
func (e *downError) Unwrap() error { return repute.ErrUnavailable }

// isDown reports whether an endpoint gave no answer, as opposed to a wrong one.
func isDown(err error) bool {
	var down *downError
	return errors.As(err, &down)
}

// call makes one call within the endpoint's timeout.
func (e *endpoint) call(ctx context.Context, result any, method string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	return e.rpc.CallContext(ctx, result, method, args...)
}

// batch makes several calls within the endpoint's timeout.
func (e *endpoint) batch(ctx context.Context, calls []rpc.BatchElem) error {
	ctx, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	return e.rpc.BatchCallContext(ctx, calls)
}

// pinned returns the last argument of calls that use the state after one block. The hash, and not the number, makes
// answers comparable: of a number two endpoints may have different blocks. Nodes answer such a call also for a
// block that was replaced, while they have it.
func pinned(block common.Hash) rpc.BlockNumberOrHash {
	return rpc.BlockNumberOrHashWithHash(block, false)
}

// message returns the argument of eth_call and similar methods. The zero sender means none.
func message(from common.Address, to common.Address, data []byte) map[string]any {
	m := map[string]any{"to": to, "data": hexutil.Bytes(data)}
	if (from != common.Address{}) {
		m["from"] = from
	}
	return m
}

// amount makes a call whose result is a quantity.
func (e *endpoint) amount(ctx context.Context, doing, method string, args ...any) (*big.Int, error) {
	var amount hexutil.Big
	if err := e.call(ctx, &amount, method, args...); err != nil {
		return nil, e.failed(doing, err)
	}
	return amount.ToInt(), nil
}

// head has the needed fields of a block's header. The hash is the endpoint's, because chains
// compute it differently.
type head struct {
	Number  hexutil.Uint64 `json:"number"`
	Hash    common.Hash    `json:"hash"`
	Time    hexutil.Uint64 `json:"timestamp"`
	BaseFee *hexutil.Big   `json:"baseFeePerGas"`
}

// base returns the base fee in wei per gas, 0 on chains without one.
func (h *head) base() *big.Int {
	if h.BaseFee == nil {
		return new(big.Int)
	}
	return h.BaseFee.ToInt()
}

// block reads a header by number or tag.
func (e *endpoint) block(ctx context.Context, at string) (*head, error) {
	var h *head
	if err := e.call(ctx, &h, "eth_getBlockByNumber", at, false); err != nil {
		return nil, e.failed("block "+at, err)
	}
	if h == nil {
		return nil, e.failed("block "+at, errors.New("not there"))
	}
	return h, nil
}

// blockByHash reads the header of the block of a hash.
func (e *endpoint) blockByHash(ctx context.Context, hash common.Hash) (*head, error) {
	var h *head
	if err := e.call(ctx, &h, "eth_getBlockByHash", hash, false); err != nil {
		return nil, e.failed("block "+hash.Hex(), err)
	}
	if h == nil || h.Hash != hash {
		return nil, e.failed("block "+hash.Hex(), errors.New("not there"))
	}
	return h, nil
}

// readAt calls a view function at a block.
func (e *endpoint) readAt(ctx context.Context, to common.Address, data []byte, at common.Hash) ([]byte, error) {
	var out hexutil.Bytes
	err := e.call(ctx, &out, "eth_call", message(common.Address{}, to, data), pinned(at))
	if err == nil {
		return out, nil
	}
	if reason, refused := e.refusal(err); refused {
		return nil, repute.Invalid("call", "the contract refused: "+reason, "arguments that it takes")
	}
	return nil, e.failed("call", err)
}

// nonce returns an account's number of transactions at a block or tag.
func (e *endpoint) nonce(ctx context.Context, of common.Address, at string) (uint64, error) {
	var n hexutil.Uint64
	if err := e.call(ctx, &n, "eth_getTransactionCount", of, at); err != nil {
		return 0, e.failed("nonce", err)
	}
	return uint64(n), nil
}

// tip returns the priority fee that the endpoint suggests, in wei per gas.
func (e *endpoint) tip(ctx context.Context) (*big.Int, error) {
	return e.amount(ctx, "tip", "eth_maxPriorityFeePerGas")
}

// receipt returns nil if the endpoint knows no receipt.
func (e *endpoint) receipt(ctx context.Context, of common.Hash) (r *receipt, err error) {
	if err := e.call(ctx, &r, "eth_getTransactionReceipt", of); err != nil {
		return nil, e.failed("receipt", err)
	}
	return r, nil
}

// send sends signed bytes to the endpoint. A refusal is returned as a note and not as an error,
// because only the chain decides about a transaction.
func (e *endpoint) send(ctx context.Context, raw []byte) (note string, err error) {
	err = e.call(ctx, nil, "eth_sendRawTransaction", hexutil.Encode(raw))
	var answer rpc.Error
	switch {
	case err == nil:
		return "", nil
	case errors.As(err, &answer):
		if text := strings.ToLower(answer.Error()); strings.Contains(text, "already known") ||
			strings.Contains(text, "known transaction") {
			return "", nil
		}
		return plain(node.Reason(err)), nil
	}
	return "", e.failed("send", err)
}

// viewsAt reads a balance and calls view functions at a block, pinned by its hash, in one request. If the contract
// refuses one of them the whole result is a refusal.
func (e *endpoint) viewsAt(ctx context.Context, at *head, balanceOf common.Address, views []View) (Seen, error) {
	balance, answers := new(hexutil.Big), make([]hexutil.Bytes, len(views))
	batch := []rpc.BatchElem{{Method: "eth_getBalance", Args: []any{balanceOf, pinned(at.Hash)}, Result: balance}}
	for i, v := range views {
		batch = append(batch,
			rpc.BatchElem{Method: "eth_call", Args: []any{message(v.From, v.To, v.Data), pinned(at.Hash)},
				Result: &answers[i]})
	}
	if err := e.batch(ctx, batch); err != nil {
		return Seen{}, e.failed("views", err)
	}
	out := Seen{Block: uint64(at.Number), BlockHash: at.Hash, Time: uint64(at.Time), Balance: balance.ToInt()}
	for i, b := range batch {
		if reason, refused := e.refusal(b.Error); refused {
			return Seen{}, repute.Invalid("call", "the contract refused: "+reason, "arguments that it takes")
		}
		if b.Error != nil {
			return Seen{}, e.failed("views", b.Error)
		}
		if i > 0 {
			out.Answers = append(out.Answers, answers[i-1])
		}
	}
	return out, nil
}
