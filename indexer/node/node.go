package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
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

// Options bound what one endpoint may cost. Zero values are replaced by the
// defaults named.
type Options struct {
	Timeout  time.Duration // of one HTTP request, 30 s
	MaxBytes int64         // of one answer, 32 MiB; a WebSocket's message at most 12 MiB
	MaxBatch int           // calls in one JSON-RPC batch, 50; endpoints that refuse so many get fewer
	// Concurrency is how many requests may be under way at most, 8. It begins with
	// two and follows what the endpoint takes.
	Concurrency int
	// An endpoint that keeps failing is left alone for OpenMin, 500 ms, and twice as
	// long each time it fails again, up to OpenMax, 15 s.
	OpenMin, OpenMax time.Duration
	// Header is sent with every request, e.g. an API key.
	Header http.Header
	// Count, when not nil, is told of every call: its method and its error.
	Count func(method string, err error)
}

// Node is a Source behind one JSON-RPC endpoint (http, https, ws or wss). It
// connects when first asked and is safe for concurrent use.
type Node struct {
	url     string
	host    string            // for errors: the URL may hold a key
	witness string            // see Host
	name    string            // the host, or more of it where a Pool has several of one host
	kind    string            // http or ws
	secrets *strings.Replacer // blanks what of the URL may be a key
	opts    Options
	http    *jsonrpc.Client // nil for ws and wss

	limiter *limit.Limiter
	meter   *meter      // nil: not measured
	batches batches     // how many calls in one batch the endpoint takes
	doubted atomic.Bool // the last answer may have meant an outage

	mu     sync.Mutex
	client *rpc.Client // of ws and wss, once connected
}

// New makes a Node; the error is an ErrInvalid for an unusable URL.
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
	n := &Node{url: rawURL, host: u.Host, witness: witnessOf(u), name: u.Host, kind: "ws", secrets: secretsOf(u),
		opts: o, limiter: limit.New(o.Concurrency, o.OpenMin, o.OpenMax),
		batches: batches{now: o.MaxBatch, most: o.MaxBatch}}
	if strings.HasPrefix(u.Scheme, "http") {
		n.kind, n.http = "http", jsonrpc.NewClient(rawURL, o.Header, o.MaxBytes)
	}
	return n, nil
}

// minSecret is the shortest path segment taken for a key: v3 and rpc are none.
const minSecret = 4

// secretsOf blanks path segments, query values and user info, as written and
// decoded.
func secretsOf(u *url.URL) *strings.Replacer {
	var found []string
	add := func(least int, parts ...string) {
		for _, s := range parts {
			if len(s) >= least {
				found = append(found, s)
			}
		}
	}
	add(minSecret, strings.Split(u.Path, "/")...)
	add(minSecret, strings.Split(u.EscapedPath(), "/")...)
	for _, pair := range strings.Split(u.RawQuery, "&") {
		name, value, _ := strings.Cut(pair, "=")
		if value == "" {
			value = name // ?KEY
		}
		plain, _ := url.QueryUnescape(value)
		add(1, value, plain)
	}
	if u.User != nil {
		password, _ := u.User.Password()
		add(1, u.User.Username(), password, u.User.String())
	}
	// The longest first: what holds another one must not leave its rest behind.
	slices.SortFunc(found, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, s := range found {
		pairs = append(pairs, s, "…")
	}
	return strings.NewReplacer(pairs...)
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

// witnessOf returns the host of a URL in lower case, without port and trailing dot. Other
// notations of an IP address count as the same address.
func witnessOf(u *url.URL) string {
	name := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if ip, err := netip.ParseAddr(name); err == nil {
		return ip.Unmap().String()
	}
	return name
}

// disconnect ends a ws connection; the next question makes a new one.
func (n *Node) disconnect() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.client != nil {
		n.client.Close()
		n.client = nil
	}
}

// maxMessage bounds one message of a WebSocket. The library holds a message in one piece
// and its results wait in memory until they are decoded: eight of 12 MiB stay below the
// 250 MB that a process may take, of 30 MiB they took 360 MB.
const maxMessage = 12 << 20

// dial gives the connection of a ws endpoint.
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

// maxReason bounds what an error repeats of an endpoint's words, in bytes.
const maxReason = 200

// wrap names the call and the host. Errors of net/http quote the whole URL,
// which may hold a key: only their cause is kept. Answers may repeat the path,
// so keys are blanked in every text before it leaves the node.
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
	said := n.secrets.Replace(err.Error())
	if len(said) > maxReason {
		said = strings.ToValidUTF8(said[:maxReason], "") + "…"
	}
	return &nodeError{what: what, host: n.host, said: said, cause: err}
}

// nodeError says what went wrong without the endpoint's keys. The cause is for
// telling failures apart, never for showing.
type nodeError struct {
	what, host, said string
	cause            error
}

// Error is fit for logs and answers.
func (e *nodeError) Error() string { return e.what + " of " + e.host + ": " + e.said }

// Reason returns what an endpoint answered, without the name of the endpoint and without its
// keys. Of an error that no Node returned it is the text.
func Reason(err error) string {
	var known *nodeError
	if errors.As(err, &known) {
		return known.said
	}
	return err.Error()
}

// Unwrap gives the cause, whose own text may hold a key.
func (e *nodeError) Unwrap() error { return e.cause }

// block checks that a header is whole.
func block(h *jsonrpc.Header) (repute.Block, error) {
	if h == nil {
		return repute.Block{}, jsonrpc.ErrNoBlock
	}
	if h.Number == nil || h.Hash == nil || h.Parent == nil || h.Timestamp == nil {
		return repute.Block{}, errors.New("block without number, hash, parentHash or timestamp")
	}
	return repute.Block{Number: uint64(*h.Number), Hash: *h.Hash, Parent: *h.Parent,
		Time: time.Unix(int64(*h.Timestamp), 0).UTC()}, nil
}

func byTag(tag string, into **jsonrpc.Header) rpc.BatchElem {
	return rpc.BatchElem{Method: "eth_getBlockByNumber", Args: []any{tag, false}, Result: into}
}

func byNumber(number uint64, into **jsonrpc.Header) rpc.BatchElem {
	return byTag(hexutil.EncodeUint64(number), into)
}

// Heads asks for chain id and the three tags in one batch. Nodes without
// finality answer null or an error for safe and finalized, or name their newest
// block: both are then 0.
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
	h := Heads{ChainID: uint64(*id), Latest: head, Sealed: latest.Own == head.Hash, Safe: number(batch[2], safe),
		Finalized: number(batch[3], finalized), SeenAt: time.Now()}
	if h.Finalized > 0 && h.Finalized >= head.Number {
		h.HeadFinal, h.Safe, h.Finalized = true, 0, 0
	}
	return h, nil
}

func number(e rpc.BatchElem, h *jsonrpc.Header) uint64 {
	if e.Error != nil || h == nil || h.Number == nil {
		return 0
	}
	return uint64(*h.Number)
}

// Span asks for headers and logs in one batch. The headers come first: logs of
// another fork then carry other hashes, or their absence shows at the next step,
// when the stored header is no parent. The last header is read at the end, for
// nodes that answer a batch from several backends. A short linked query asks for
// the headers first and then for the logs of each block by its hash.
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

// hashedRange is up to how many blocks are asked for by hash, one question each.
// Longer ones are a backfill, which the head does not wait for.
const hashedRange = 8

func (n *Node) span(ctx context.Context, q Query) (Span, error) {
	if q.Linked && q.To-q.From < hashedRange {
		return n.linked(ctx, q)
	}
	asked := q.numbers()
	if !q.Linked {
		asked = asked[:1] // the blocks are final: once is enough
	}
	headers := make([]*jsonrpc.Header, len(asked)+1)
	filters := q.filters(map[string]any{"fromBlock": hexutil.EncodeUint64(q.From), "toBlock": hexutil.EncodeUint64(q.To)})
	logs := make([][]types.Log, len(filters))
	batch := make([]rpc.BatchElem, 0, len(asked)+len(filters)+1)
	for i, number := range asked {
		batch = append(batch, byNumber(number, &headers[i]))
	}
	for i, filter := range filters {
		batch = append(batch, byFilter(filter, &logs[i]))
	}
	batch = append(batch, byNumber(q.To, &headers[len(asked)]))
	size, err := n.exchange(ctx, batch)
	if err != nil {
		return Span{}, err
	}
	blocks, err := n.blocks(append(asked, q.To), headers, batch)
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

// knownCaps are the numbers of logs at which some providers cut answers off
// without saying so.
func knownCaps() []int { return []int{1_000, 10_000, 20_000, 50_000} }

// capped refuses answers that may have been cut off, as long as a shorter range
// can tell.
func capped(q Query, lists [][]types.Log) error {
	for _, logs := range lists {
		if err := Capped(repute.BlockRange{From: q.From, To: q.To}, len(logs)); err != nil {
			return err
		}
	}
	return nil
}

// Capped refuses so many logs of a range, where they may have been cut off and a shorter range can tell.
func Capped(r repute.BlockRange, logs int) error {
	if r.From < r.To && slices.Contains(knownCaps(), logs) {
		return &capError{logs}
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

// joined puts lists of logs together; null instead of a list is no answer.
func (n *Node) joined(lists [][]types.Log) ([]types.Log, error) {
	if slices.ContainsFunc(lists, func(l []types.Log) bool { return l == nil }) {
		return nil, n.wrap("eth_getLogs", &jsonrpc.AnswerError{What: "null"})
	}
	if len(lists) == 1 {
		return lists[0], nil
	}
	return slices.Concat(lists...), nil
}

// estimate is about how many bytes an answer was as JSON.
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

// filters are the questions of eth_getLogs about the blocks named by where: one
// of the registries, and one of any contract where that is wanted.
func (q Query) filters(where map[string]any) []map[string]any {
	registries := maps.Clone(where)
	registries["address"], registries["topics"] = q.Addresses, [][]common.Hash{q.Topics}
	if len(q.Anywhere) == 0 {
		return []map[string]any{registries}
	}
	anywhere := maps.Clone(where)
	anywhere["topics"] = [][]common.Hash{q.Anywhere}
	return []map[string]any{registries, anywhere}
}

func byFilter(filter map[string]any, into *[]types.Log) rpc.BatchElem {
	return rpc.BatchElem{Method: "eth_getLogs", Args: []any{filter}, Result: into}
}

// refused is the error of the first call that was refused; a call that only
// stayed without an answer says less than another one's refusal.
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

// blocks checks every element of a batch and that each header is the one asked.
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

// capError is an answer that holds exactly as many logs as some providers answer
// at most, silently.
type capError struct{ logs int }

// Error names the number.
func (e *capError) Error() string {
	return fmt.Sprintf("the answer may be cut off: it holds exactly %d logs", e.logs)
}

// Verdict implements jsonrpc.Judged.
func (e *capError) Verdict() jsonrpc.Verdict { return jsonrpc.Verdict{Fault: jsonrpc.FaultRange} }
