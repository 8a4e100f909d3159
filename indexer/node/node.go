package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"

	"repute"
	"repute/indexer/node/jsonrpc"
	"repute/indexer/node/limit"
)

// Options bound the use of one endpoint. Zero values are replaced by the named defaults.
type Options struct {
	Timeout  time.Duration // of one HTTP request, 30 s
	MaxBytes int64         // of one answer, 32 MiB; a WebSocket's message at most 12 MiB
	MaxBatch int           // calls in one JSON-RPC batch, 50; reduced for endpoints that refuse so many
	// Concurrency is the largest number of simultaneous requests, 8. A new node starts with two and
	// adapts to the endpoint.
	Concurrency int
	// After five failures in a row no request is sent for OpenMin, 500 ms. Then one request probes the
	// endpoint. The pause doubles with each probe that fails up to OpenMax, 15 s.
	OpenMin, OpenMax time.Duration
	// Header is sent with every request, e.g. an API key.
	Header http.Header
}

// Node is a Source behind one JSON-RPC endpoint (http, https, ws or wss). It connects at the first
// request and is safe for concurrent use.
type Node struct {
	url     string
	host    string            // for errors: the URL may contain a key
	witness string            // see Host
	name    string            // the host, with more detail where a Pool has several endpoints of one host
	kind    string            // http or ws
	secrets *strings.Replacer // replaces parts of the URL that may be a key
	opts    Options
	http    *jsonrpc.Client // nil for ws and wss

	limiter *limit.Limiter
	meter   *meter         // nil: not measured
	batches *limit.Batches // calls that the endpoint accepts in one batch
	doubted atomic.Bool    // the last refusal was ambiguous between a range too large and an outage

	mu     sync.Mutex
	client *rpc.Client // of ws and wss, once connected
}

// New returns a Node. An unusable URL is repute.ErrInvalid.
func New(rawURL string, o Options) (*Node, error) {
	u, err := url.Parse(rawURL)
	if err != nil || u.Host == "" {
		return nil, repute.Invalid("rpc", "not an endpoint URL", "e.g. https://host/key or wss://host/key")
	}
	switch u.Scheme {
	case "http", "https", "ws", "wss":
	default:
		return nil, repute.Invalid("rpc", "scheme "+u.Scheme+" is not supported", "http, https, ws or wss")
	}
	setDefault(&o.Timeout, 30*time.Second)
	setDefault(&o.MaxBytes, 32<<20)
	setDefault(&o.MaxBatch, 50)
	setDefault(&o.Concurrency, 8)
	setDefault(&o.OpenMin, 500*time.Millisecond)
	setDefault(&o.OpenMax, 15*time.Second)
	n := &Node{url: rawURL, host: u.Host, witness: jsonrpc.HostOf(u), name: u.Host, kind: "ws", secrets: jsonrpc.Redactor(u),
		opts: o, limiter: limit.New(o.Concurrency, o.OpenMin, o.OpenMax),
		batches: limit.NewBatches(o.MaxBatch)}
	if strings.HasPrefix(u.Scheme, "http") {
		n.kind, n.http = "http", jsonrpc.NewClient(rawURL, o.Header, o.MaxBytes)
	}
	return n, nil
}

// Close ends the connections.
func (n *Node) Close() {
	if n.http != nil {
		n.http.Close()
	}
	n.disconnect()
}

// Host returns the host name or the IP address of the endpoint in its normal form, without the
// port: endpoints with the same Host count as one witness.
func (n *Node) Host() string { return n.witness }

// disconnect closes a WebSocket connection; the next request opens a new one.
func (n *Node) disconnect() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.client != nil {
		n.client.Close()
		n.client = nil
	}
}

// maxMessage bounds one WebSocket message. The library reads a message into memory as a whole, and
// results stay there until they are decoded: eight messages of 12 MiB stay below the 250 MB that a
// process may use, while eight of 30 MiB used 360 MB.
const maxMessage = 12 << 20

// dial returns the connection of a WebSocket endpoint, and opens it if there is none.
func (n *Node) dial(ctx context.Context) (*rpc.Client, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.client != nil {
		return n.client, nil
	}
	c, err := rpc.DialOptions(ctx, n.url, rpc.WithWebsocketMessageSizeLimit(min(n.opts.MaxBytes, maxMessage)),
		rpc.WithHeaders(n.opts.Header))
	if err != nil {
		return nil, err
	}
	n.client = c
	return c, nil
}

// maxReason bounds how many bytes of an endpoint's message an error repeats.
const maxReason = 200

// wrap adds the call and the host to an error. Errors of net/http quote the whole URL, which may
// contain a key, so that only their cause is kept. Answers may repeat the path; therefore keys are
// replaced in every text that leaves this package.
func (n *Node) wrap(what string, err error) error {
	var known *nodeError
	if errors.As(err, &known) {
		return err
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = &jsonrpc.ConnError{Err: u.Err, Timeout: u.Timeout()}
	}
	// Blank before cutting: half a key would not be found.
	text := n.secrets.Replace(err.Error())
	if len(text) > maxReason {
		text = strings.ToValidUTF8(text[:maxReason], "") + "…"
	}
	return &nodeError{what: what, host: n.host, text: text, cause: err}
}

// nodeError is an error without the keys of the endpoint. Its cause serves errors.Is and errors.As;
// its text MUST NOT be shown.
type nodeError struct {
	what, host, text string
	cause            error
}

// Error is safe for logs and answers.
func (e *nodeError) Error() string { return e.what + " of " + e.host + ": " + e.text }

// Reason returns the message of an endpoint without the name of the endpoint and without keys. For
// an error of another origin it is the text of the error.
func Reason(err error) string {
	var known *nodeError
	if errors.As(err, &known) {
		return known.text
	}
	return err.Error()
}

// Unwrap returns the cause, whose own text may contain a key.
func (e *nodeError) Unwrap() error { return e.cause }

// block checks that a header is whole.
func block(h *jsonrpc.Header) (repute.Block, error) {
	if h == nil {
		return repute.Block{}, jsonrpc.ErrNoBlock
	}
	if h.Number == nil || h.Hash == nil || h.Parent == nil || h.Timestamp == nil {
		return repute.Block{}, errors.New("block without number, hash, parentHash or timestamp")
	}
	return repute.Block{Number: *h.Number, Hash: *h.Hash, Parent: *h.Parent,
		Time: time.Unix(int64(*h.Timestamp), 0).UTC()}, nil
}

// byTag returns the request for the header of a named block such as "finalized".
func byTag(tag string, into **jsonrpc.Header) rpc.BatchElem {
	return rpc.BatchElem{Method: "eth_getBlockByNumber", Args: []any{tag, false}, Result: into}
}

// byNumber returns the request for the header of a block without its transactions.
func byNumber(number uint64, into **jsonrpc.Header) rpc.BatchElem {
	return byTag(hexutil.EncodeUint64(number), into)
}

// Heads requests the chain id and the three named blocks in one batch. Nodes without finality
// answer null or an error for safe and finalized, or return their newest block: both are 0 then. Neither
// exceeds the newest block, whatever the node says.
func (n *Node) Heads(ctx context.Context) (Heads, error) {
	var id *hexutil.Uint64
	var latest, safe, finalized *jsonrpc.Header
	batch := []rpc.BatchElem{
		{Method: "eth_chainId", Result: &id},
		byTag("latest", &latest), byTag("safe", &safe), byTag("finalized", &finalized),
	}
	if err := n.BatchCallContext(ctx, batch); err != nil {
		return Heads{}, err
	}
	if err := errors.Join(batch[0].Error, batch[1].Error); err != nil {
		return Heads{}, n.wrap("heads", err)
	}
	head, err := block(latest)
	if err != nil || id == nil {
		return Heads{}, n.wrap("latest block", errors.Join(err, jsonrpc.ErrNoBlock))
	}
	h := Heads{ChainID: uint64(*id), Latest: head, Sealed: latest.Own == head.Hash, SeenAt: time.Now(),
		Safe: min(number(batch[2], safe), head.Number), Finalized: number(batch[3], finalized)}
	if h.Finalized > 0 && h.Finalized >= head.Number {
		h.HeadFinal, h.Safe, h.Finalized = true, 0, 0
	}
	return h, nil
}

// number returns the number of a named block; 0 where the node returned none.
func number(e rpc.BatchElem, h *jsonrpc.Header) uint64 {
	if e.Error != nil || h == nil || h.Number == nil {
		return 0
	}
	return *h.Number
}

// Span requests headers and logs in one batch. The headers come first: logs of another fork then
// have other hashes, or the next step notices because the stored header is not the parent. The last
// header is read at the end, for nodes that answer a batch from several backends. A short linked
// query requests the headers first and then the logs of each block by its hash.
func (n *Node) Span(ctx context.Context, q Query) (Span, error) {
	span, err := n.span(ctx, q)
	if err != nil {
		return Span{}, err
	}
	span.From = n.name
	if span.Bytes == 0 {
		span.Bytes = estimate(span)
	}
	return span, nil
}

// hashedRange is the largest range, in blocks, that is requested by hash with one call per block.
// Longer ranges are a backfill, far below the head.
const hashedRange = 8

// span is Span without the detection of silently truncated answers.
func (n *Node) span(ctx context.Context, q Query) (Span, error) {
	if q.Linked && q.To-q.From < hashedRange {
		return n.linked(ctx, q)
	}
	needed := q.numbers()
	if !q.Linked {
		needed = needed[:1] // the blocks are final: once is enough
	}
	headers := make([]*jsonrpc.Header, len(needed)+1)
	filters := q.filters(map[string]any{"fromBlock": hexutil.EncodeUint64(q.From), "toBlock": hexutil.EncodeUint64(q.To)})
	logs := make([][]types.Log, len(filters))
	batch := make([]rpc.BatchElem, 0, len(needed)+len(filters)+1)
	for i, number := range needed {
		batch = append(batch, byNumber(number, &headers[i]))
	}
	for i, filter := range filters {
		batch = append(batch, byFilter(filter, &logs[i]))
	}
	batch = append(batch, byNumber(q.To, &headers[len(needed)]))
	size, err := n.exchange(ctx, batch)
	if err != nil {
		return Span{}, err
	}
	blocks, err := n.blocks(append(needed, q.To), headers, batch)
	if err != nil {
		return Span{}, err
	}
	if last := len(blocks) - 1; blocks[last].Number == blocks[last-1].Number {
		if blocks[last].Hash != blocks[last-1].Hash {
			return Span{}, n.wrap("span", &jsonrpc.AnswerError{What: fmt.Sprintf("block %d changed while it was read", q.To)})
		}
		blocks = blocks[:last]
	}
	if err := capped(q, logs); err != nil {
		return Span{}, n.wrap("eth_getLogs", err)
	}
	found, err := n.joined(logs)
	if err != nil {
		return Span{}, err
	}
	span := Span{Logs: found, Headers: blocks, Sealed: seals(headers), Bytes: size}
	return span, n.addBusy(ctx, q, &span)
}

// knownCaps returns the numbers of logs at which some providers truncate answers silently.
func knownCaps() []int { return []int{1_000, 10_000, 20_000, 50_000} }

// capped refuses an answer that may be truncated, while a shorter range can show whether it is.
func capped(q Query, lists [][]types.Log) error {
	for _, logs := range lists {
		if err := Capped(repute.BlockRange{From: q.From, To: q.To}, len(logs)); err != nil {
			return err
		}
	}
	return nil
}

// Capped returns an error if an answer with so many logs may be truncated and a shorter range can show
// whether it is.
func Capped(r repute.BlockRange, logs int) error {
	if r.From < r.To && slices.Contains(knownCaps(), logs) {
		return fmt.Errorf("the answer may be cut off: it holds exactly %d logs", logs) // a jsonrpc.FaultRange
	}
	return nil
}

// linked reads the header of every block and then its logs by its hash: logs of
// another block at the same height cannot answer.
func (n *Node) linked(ctx context.Context, q Query) (Span, error) {
	blocks, headers, size, err := n.read(ctx, q.numbers())
	if err != nil {
		return Span{}, err
	}
	var batch []rpc.BatchElem
	logs := make([][]types.Log, 0, 2*len(blocks)) // never grown: elements point into it
	for _, b := range blocks {
		for _, filter := range q.filters(map[string]any{"blockHash": b.Hash}) {
			logs = append(logs, nil)
			batch = append(batch, byFilter(filter, &logs[len(logs)-1]))
		}
	}
	for part := range slices.Chunk(batch, n.opts.MaxBatch) {
		more, err := n.exchange(ctx, part)
		if err == nil {
			err = n.refused(part)
		}
		if err != nil {
			return Span{}, err
		}
		size += more
	}
	found, err := n.joined(logs)
	return Span{Logs: found, Headers: blocks, Sealed: seals(headers), Bytes: size}, err
}

// joined concatenates lists of logs. A null instead of a list is an AnswerError.
func (n *Node) joined(lists [][]types.Log) ([]types.Log, error) {
	if slices.ContainsFunc(lists, func(l []types.Log) bool { return l == nil }) {
		return nil, n.wrap("eth_getLogs", &jsonrpc.AnswerError{What: "null"})
	}
	if len(lists) == 1 {
		return lists[0], nil
	}
	return slices.Concat(lists...), nil
}

// estimate returns about how many bytes an answer had as JSON.
func estimate(s Span) int {
	const perHeader, perLog = 1_600, 700
	size := perHeader*len(s.Headers) + perLog*len(s.Logs)
	for i := range s.Logs {
		size += 2 * len(s.Logs[i].Data)
	}
	return size
}

// numbers lists the headers a query needs.
func (q Query) numbers() []uint64 {
	switch {
	case q.From == q.To:
		return []uint64{q.From}
	case !q.Linked:
		return []uint64{q.From, q.To}
	}
	list := make([]uint64, 0, q.To-q.From+1)
	for n := q.From; n <= q.To; n++ {
		list = append(list, n)
	}
	return list
}

// filters returns the filters of eth_getLogs for the blocks that where names: one for the
// registries, and one for any contract if q has AnyAddress.
func (q Query) filters(where map[string]any) []map[string]any {
	registries := maps.Clone(where)
	registries["address"], registries["topics"] = q.Addresses, [][]common.Hash{q.Topics}
	if len(q.AnyAddress) == 0 {
		return []map[string]any{registries}
	}
	anywhere := maps.Clone(where)
	anywhere["topics"] = [][]common.Hash{q.AnyAddress}
	return []map[string]any{registries, anywhere}
}

// byFilter returns the request for the logs that match a filter.
func byFilter(filter map[string]any, into *[]types.Log) rpc.BatchElem {
	return rpc.BatchElem{Method: "eth_getLogs", Args: []any{filter}, Result: into}
}

// refused returns the error of the first refused call. It prefers a refusal to a call without an
// answer, because a refusal contains the reason.
func (n *Node) refused(batch []rpc.BatchElem) error {
	var first error
	for _, e := range batch {
		var bad *jsonrpc.AnswerError
		switch {
		case e.Error == nil:
		case !errors.As(e.Error, &bad):
			return n.wrap(e.Method, e.Error)
		case first == nil:
			first = n.wrap(e.Method, e.Error)
		}
	}
	return first
}

// blocks checks every element of a batch and that each header has the requested number.
func (n *Node) blocks(numbers []uint64, headers []*jsonrpc.Header, batch []rpc.BatchElem) ([]repute.Block, error) {
	if err := n.refused(batch); err != nil {
		return nil, err
	}
	out := make([]repute.Block, len(numbers))
	for i, h := range headers {
		b, err := block(h)
		if err == nil && b.Number != numbers[i] {
			err = &jsonrpc.AnswerError{What: fmt.Sprintf("block %d instead", b.Number)}
		}
		if err != nil {
			return nil, n.wrap(fmt.Sprintf("block %d", numbers[i]), err)
		}
		out[i] = b
	}
	return out, nil
}

// setDefault sets an option that is not positive, and so was not given, to its default.
func setDefault[T ~int | ~int64 | ~uint64](v *T, to T) {
	if *v <= 0 {
		*v = to
	}
}
