package wallet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/rpc"

	"repute"
)

// A request to an endpoint may take so long: less where there are others to ask.
const (
	callTimeout   = 20 * time.Second
	othersTimeout = 6 * time.Second
)

// endpoint is a node. Where it is, and what its transport says, is for the log alone: errors
// reach agents, who learn its name.
type endpoint struct {
	name   string   // its place among the chain's endpoints
	host   string   // for the log
	secret []string // parts of the URL that no text may show
	log    *slog.Logger
	rpc    *rpc.Client
	eth    *ethclient.Client
	others bool // there are more

	silent atomic.Int64 // when it last gave no newest block, seconds since 1970; 0: it gives them
	known  atomic.Bool  // it is of the chain
	looked atomic.Int64 // when that was asked in vain, seconds since 1970
}

func (e *endpoint) timeout() time.Duration {
	if e.others {
		return othersTimeout
	}
	return callTimeout
}

func dial(ctx context.Context, field, raw string) (*endpoint, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, repute.Invalid(field, "is no address", "an http or https URL")
	}
	client, err := dialRPC(ctx, raw)
	if err != nil {
		return nil, repute.Invalid(field, "cannot be used", "an http or https URL")
	}
	return &endpoint{name: field, host: u.Host, secret: secretsOf(u), log: slog.New(slog.DiscardHandler), rpc: client, eth: ethclient.NewClient(client)}, nil
}

// secretsOf lists what of a URL may be a key, or tells where it leads: all but the scheme.
func secretsOf(u *url.URL) (out []string) {
	for _, s := range []string{u.String(), u.RequestURI(), u.Path, u.RawQuery, u.User.String(), u.Host, u.Hostname()} {
		if len(s) > 1 {
			out = append(out, s)
		}
	}
	if p, set := u.User.Password(); set && p != "" {
		out = append(out, p)
	}
	parts := strings.Split(u.Path, "/")
	for _, values := range u.Query() {
		parts = append(parts, values...)
	}
	for _, p := range parts {
		if len(p) >= 8 {
			out = append(out, p)
		}
	}
	return out
}

// clean is an error's text without secrets, on one line and not long.
func (e *endpoint) clean(err error) string {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	text := err.Error()
	for _, s := range e.secret {
		text = strings.ReplaceAll(text, s, "…")
	}
	return plain(text)
}

// plain makes foreign text fit for an error: one line of printable characters.
func plain(text string) string {
	if len(text) > 300 {
		text = text[:300] + "…"
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == utf8.RuneError { // also what reverses the direction of text
			return ' '
		}
		return r
	}, text)
}

// failed makes an error of an endpoint that did not answer as it should. The log has what it
// said.
func (e *endpoint) failed(doing string, err error) error {
	if !errors.Is(err, context.Canceled) {
		e.log.Warn("transactions: an endpoint did not answer", "endpoint", e.name, "host", e.host, "asked", doing, "error", e.clean(err))
	}
	return &downError{fmt.Sprintf("%s of %s: no answer", doing, e.name)}
}

// downError tells an endpoint that gives no answer from one that gives a wrong one.
type downError struct{ text string }

// Error says what was asked of whom.
func (e *downError) Error() string { return e.text + ": " + repute.ErrUnavailable.Error() }

// Unwrap makes it a repute.ErrUnavailable.
func (e *downError) Unwrap() error { return repute.ErrUnavailable }

func (e *endpoint) chainID(ctx context.Context) (*big.Int, error) {
	ctx, cancel := context.WithTimeout(ctx, e.timeout())
	defer cancel()
	id, err := e.eth.ChainID(ctx)
	if err != nil {
		return nil, e.failed("chain id", err)
	}
	return id, nil
}

// head is what is needed of a block's header. The hash is the endpoint's own word: chains
// differ in how it is computed.
type head struct {
	Number  hexutil.Uint64 `json:"number"`
	Hash    common.Hash    `json:"hash"`
	Time    hexutil.Uint64 `json:"timestamp"`
	BaseFee *hexutil.Big   `json:"baseFeePerGas"`
}

func (h *head) base() *big.Int {
	if h.BaseFee == nil {
		return new(big.Int)
	}
	return h.BaseFee.ToInt()
}

// block reads a header by number or tag.
func (e *endpoint) block(ctx context.Context, at string) (*head, error) {
	ctx, cancel := context.WithTimeout(ctx, e.timeout())
	defer cancel()
	var h *head
	if err := e.rpc.CallContext(ctx, &h, "eth_getBlockByNumber", at, false); err != nil {
		return nil, e.failed("block "+at, err)
	}
	if h == nil {
		return nil, e.failed("block "+at, errors.New("not there"))
	}
	return h, nil
}

// blockByHash reads the header of the block of a hash.
func (e *endpoint) blockByHash(ctx context.Context, hash common.Hash) (*head, error) {
	ctx, cancel := context.WithTimeout(ctx, e.timeout())
	defer cancel()
	var h *head
	if err := e.rpc.CallContext(ctx, &h, "eth_getBlockByHash", hash, false); err != nil {
		return nil, e.failed("block "+hash.Hex(), err)
	}
	if h == nil || h.Hash != hash {
		return nil, e.failed("block "+hash.Hex(), errors.New("not there"))
	}
	return h, nil
}

// readAt calls a view function at a block.
func (e *endpoint) readAt(ctx context.Context, to common.Address, data []byte, at common.Hash) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, e.timeout())
	defer cancel()
	out, err := e.eth.CallContractAtHash(ctx, ethereum.CallMsg{To: &to, Data: data}, at)
	if err == nil {
		return out, nil
	}
	if reason, refused := e.refusal(err); refused {
		return nil, repute.Invalid("call", "the contract refused: "+reason, "arguments that it takes")
	}
	return nil, e.failed("call", err)
}

// nonce is an account's number of transactions at a block or tag.
func (e *endpoint) nonce(ctx context.Context, of common.Address, at string) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, e.timeout())
	defer cancel()
	var n hexutil.Uint64
	if err := e.rpc.CallContext(ctx, &n, "eth_getTransactionCount", of, at); err != nil {
		return 0, e.failed("nonce", err)
	}
	return uint64(n), nil
}

// tip is what the endpoint would give a block's builder, wei per gas.
func (e *endpoint) tip(ctx context.Context) (*big.Int, error) {
	ctx, cancel := context.WithTimeout(ctx, e.timeout())
	defer cancel()
	tip, err := e.eth.SuggestGasTipCap(ctx)
	if err != nil {
		return nil, e.failed("tip", err)
	}
	return tip, nil
}

// receipt is nil where the endpoint knows none.
func (e *endpoint) receipt(ctx context.Context, of common.Hash) (r *receipt, err error) {
	ctx, cancel := context.WithTimeout(ctx, e.timeout())
	defer cancel()
	if err := e.rpc.CallContext(ctx, &r, "eth_getTransactionReceipt", of); err != nil {
		return nil, e.failed("receipt", err)
	}
	return r, nil
}

// send hands signed bytes to the endpoint. What it says against them is no error here but
// a note: only the chain tells what becomes of a transaction.
func (e *endpoint) send(ctx context.Context, raw []byte) (note string, err error) {
	ctx, cancel := context.WithTimeout(ctx, e.timeout())
	defer cancel()
	err = e.rpc.CallContext(ctx, nil, "eth_sendRawTransaction", hexutil.Encode(raw))
	var answer rpc.Error
	switch {
	case err == nil:
		return "", nil
	case errors.As(err, &answer):
		if text := strings.ToLower(answer.Error()); strings.Contains(text, "already known") || strings.Contains(text, "known transaction") {
			return "", nil
		}
		return e.clean(err), nil
	}
	return "", e.failed("send", err)
}

// viewsAt asks at a block, pinned by its hash, in one request.
func (e *endpoint) viewsAt(ctx context.Context, at *head, balanceOf common.Address, views []View) (Seen, error) {
	ctx, cancel := context.WithTimeout(ctx, e.timeout())
	defer cancel()
	pinned := rpc.BlockNumberOrHashWithHash(at.Hash, false)
	balance, answers := new(hexutil.Big), make([]hexutil.Bytes, len(views))
	batch := []rpc.BatchElem{{Method: "eth_getBalance", Args: []any{balanceOf, pinned}, Result: balance}}
	for i, v := range views {
		batch = append(batch, rpc.BatchElem{Method: "eth_call", Args: []any{map[string]any{"to": v.To, "data": hexutil.Bytes(v.Data)}, pinned}, Result: &answers[i]})
	}
	if err := e.rpc.BatchCallContext(ctx, batch); err != nil {
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
