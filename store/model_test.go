package store_test

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/big"
	"math/rand"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"pgregory.net/rapid"

	"repute"
	"repute/internal/rpctest"
)

// The model is a small copy of the three registries: it holds their state as the
// contracts would, knows nothing of the store, and emits the logs they would.

var (
	registries = rpctest.Registries{
		Identity:   common.HexToAddress("0x8004a00000000000000000000000000000000001"),
		Reputation: common.HexToAddress("0x8004b00000000000000000000000000000000001"),
		Validation: common.HexToAddress("0x8004c00000000000000000000000000000000001"),
	}
	foreignValidation = common.HexToAddress("0xf0000000000000000000000000000000000000ff")
	nobody            common.Address
	modelGateways     = []repute.WatchedContract{{Address: rpctest.Gateway, From: firstBlock}}
)

// incompressible is what a plain B-tree key cannot hold.
var incompressible = func() string {
	b := make([]byte, 3<<10)
	rand.New(rand.NewSource(1)).Read(b)
	return string(b)
}()

var (
	words = []string{"", "quality", "a\x00b", "\xff\xfe", "🙂", incompressible}
	uris  = []string{"", "https://a.example/1.json", "ipfs://bafy", "data:application/json,{}", "\x00\xff",
		incompressible}
	limit  = new(big.Int).Exp(big.NewInt(10), big.NewInt(38), nil)
	values = []*big.Int{new(big.Int), big.NewInt(1), big.NewInt(-1), limit, new(big.Int).Neg(limit),
		new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 127), big.NewInt(1)),
		new(big.Int).Neg(new(big.Int).Lsh(big.NewInt(1), 127)),
		big.NewInt(9999), big.NewInt(10000), big.NewInt(-100010000)}
)

type mAgent struct {
	owner, wallet, approved common.Address
	uri                     string
	metadata                map[string]string
}

type mPair struct {
	token  uint64
	client common.Address
}

type mRating struct {
	value      *big.Int
	decimals   uint8
	tag1, tag2 string
	revoked    bool
	responses  int
}

type mRequest struct {
	contract common.Address
	hash     common.Hash
}

type mValidation struct {
	token     uint64
	validator common.Address
	answered  bool
}

// state is what the contracts store.
type state struct {
	agents    []mAgent
	ratings   map[mPair][]mRating
	operators map[[2]common.Address]bool
	requests  map[mRequest]mValidation
	serial    uint64 // makes request hashes distinct
}

func newState() *state {
	return &state{ratings: map[mPair][]mRating{}, operators: map[[2]common.Address]bool{},
		requests: map[mRequest]mValidation{}}
}

func (s *state) clone() *state {
	c := &state{ratings: map[mPair][]mRating{}, operators: maps.Clone(s.operators), requests: maps.Clone(s.requests),
		serial: s.serial}
	for _, a := range s.agents {
		a.metadata = maps.Clone(a.metadata)
		c.agents = append(c.agents, a)
	}
	for k, v := range s.ratings {
		c.ratings[k] = slices.Clone(v)
	}
	return c
}

// emitted is an event of a contract.
type emitted struct {
	repute.Event
	contract common.Address
}

// tx collects the events of one transaction.
type tx struct {
	*state
	t      *rapid.T
	events []emitted
}

func (x *tx) emit(e repute.Event) {
	at := registries.Identity
	switch e.(type) {
	case repute.NewFeedback, repute.FeedbackRevoked, repute.ResponseAppended:
		at = registries.Reputation
	}
	x.events = append(x.events, emitted{e, at})
}

func (x *tx) account() common.Address {
	return rpctest.Account(uint64(rapid.IntRange(1, 5).Draw(x.t, "account")))
}
func (x *tx) word() string           { return words[rapid.IntRange(0, len(words)-1).Draw(x.t, "word")] }
func (x *tx) uri() string            { return uris[rapid.IntRange(0, len(uris)-1).Draw(x.t, "uri")] }
func (x *tx) chance(n int) bool      { return rapid.IntRange(1, n).Draw(x.t, "chance") == 1 }
func (x *tx) agent() uint64          { return uint64(rapid.IntRange(0, len(x.agents)-1).Draw(x.t, "agent")) }
func token(id uint64) repute.TokenID { return rpctest.Token(id) }

// register mints, calls the registrant back where it is a contract, and then
// finishes, as the registry does.
func (x *tx) register() {
	id, owner := uint64(len(x.agents)), x.account()
	x.agents = append(x.agents, mAgent{owner: owner, wallet: owner, metadata: map[string]string{}})
	x.emit(repute.Transfer{To: owner, TokenID: token(id)})
	x.callback(id)
	registered := repute.Registered{TokenID: token(id), Owner: owner}
	if x.chance(2) {
		registered.URI = x.uri()
		x.agents[id].uri = registered.URI
		x.emit(repute.MetadataUpdate{TokenID: token(id)})
	}
	x.emit(registered)
	x.emit(repute.MetadataSet{TokenID: token(id), Key: "agentWallet", Value: owner.Bytes()})
	for x.chance(4) {
		x.setMetadata(id)
	}
}

func (x *tx) callback(id uint64) {
	if !x.chance(3) {
		return
	}
	if x.chance(2) {
		x.setURI(id)
	}
	if x.chance(3) {
		x.setWallet(id)
	}
	if x.chance(3) {
		x.setMetadata(id)
	}
	if x.chance(2) {
		x.transfer(id)
	}
}

func (x *tx) setURI(id uint64) {
	uri := x.uri()
	x.agents[id].uri = uri
	x.emit(repute.MetadataUpdate{TokenID: token(id)})
	x.emit(repute.URIUpdated{TokenID: token(id), URI: uri, UpdatedBy: x.agents[id].owner})
}

func (x *tx) setMetadata(id uint64) {
	key, value := x.word(), x.word()
	x.agents[id].metadata[key] = value
	x.emit(repute.MetadataSet{TokenID: token(id), Key: key, Value: []byte(value)})
}

func (x *tx) transfer(id uint64) {
	a := &x.agents[id]
	to := x.account() // sometimes the owner itself
	x.emit(repute.MetadataSet{TokenID: token(id), Key: "agentWallet", Value: []byte{}})
	x.emit(repute.Transfer{From: a.owner, To: to, TokenID: token(id)})
	a.owner, a.wallet, a.approved = to, nobody, nobody
}

func (x *tx) setWallet(id uint64) {
	value := []byte{}
	x.agents[id].wallet = nobody
	if !x.chance(3) {
		wallet := x.account()
		x.agents[id].wallet, value = wallet, wallet.Bytes()
		if x.chance(4) {
			value = common.LeftPadBytes(value, 32)
		}
	}
	x.emit(repute.MetadataSet{TokenID: token(id), Key: "agentWallet", Value: value})
}

func (x *tx) approve(id uint64) {
	a := &x.agents[id]
	a.approved = nobody
	if !x.chance(3) {
		a.approved = x.account()
	}
	x.emit(repute.Approval{Owner: a.owner, Approved: a.approved, TokenID: token(id)})
}

func (x *tx) operate() {
	owner, operator, on := x.account(), x.account(), x.chance(2)
	x.operators[[2]common.Address{owner, operator}] = on
	x.emit(repute.ApprovalForAll{Owner: owner, Operator: operator, Approved: on})
}

func (x *tx) giveFeedback(id uint64) {
	key := mPair{id, x.account()}
	if x.chance(4) {
		key.client = rpctest.Gateway
		x.tickets(id)
		defer x.tickets(id)
	}
	r := mRating{
		value:    rapid.SampledFrom(values).Draw(x.t, "value"),
		decimals: uint8(rapid.IntRange(0, 18).Draw(x.t, "decimals")),
		tag1:     x.word(), tag2: x.word(),
	}
	x.ratings[key] = append(x.ratings[key], r)
	x.emit(repute.NewFeedback{TokenID: token(id), Client: key.client, Index: uint64(len(x.ratings[key])),
		Value:    r.value,
		Decimals: r.decimals,
		Tag1:     r.tag1, Tag2: r.tag2, Endpoint: x.word(), URI: x.uri(),
		FeedbackHash: common.Hash{byte(rapid.IntRange(0, 1).Draw(x.t, "hash"))}})
}

// tickets emits tickets of the gateway, which may or may not be of the rating that is given beside them.
func (x *tx) tickets(id uint64) {
	for x.chance(3) {
		x.events = append(x.events, emitted{repute.TicketConsumed{Payer: x.account(), TokenID: token(id),
			FeedbackHash: common.Hash{byte(rapid.IntRange(0, 1).Draw(x.t, "hash"))}}, rpctest.Gateway})
	}
}

// rating picks a rating, preferring recent ones.
func (x *tx) rating() (key mPair, index uint64, ok bool) {
	pairs := slices.Collect(maps.Keys(x.ratings))
	if len(pairs) == 0 {
		return key, 0, false
	}
	slices.SortFunc(pairs, func(a, b mPair) int {
		return slices.Compare(append(a.client.Bytes(), byte(a.token)), append(b.client.Bytes(), byte(b.token)))
	})
	key = rapid.SampledFrom(pairs).Draw(x.t, "pair")
	return key, uint64(rapid.IntRange(max(1, len(x.ratings[key])-2), len(x.ratings[key])).Draw(x.t, "index")), true
}

func (x *tx) revokeFeedback() {
	key, index, ok := x.rating()
	if !ok || x.ratings[key][index-1].revoked {
		return
	}
	x.ratings[key][index-1].revoked = true
	x.emit(repute.FeedbackRevoked{TokenID: token(key.token), Client: key.client, Index: index})
}

func (x *tx) respond() {
	key, index, ok := x.rating()
	if !ok {
		return
	}
	x.ratings[key][index-1].responses++
	x.emit(repute.ResponseAppended{TokenID: token(key.token), Client: key.client, Index: index, Responder: x.account(),
		URI: "https://answer.example"})
}

// request asks for a validation: at the trusted contract as its rules allow, at
// the foreign one anything, for no agent at all or twice.
func (x *tx) request() {
	q := mRequest{contract: registries.Validation}
	v := mValidation{validator: x.account()}
	if len(x.agents) > 0 {
		v.token = x.agent()
	}
	if len(x.agents) == 0 || x.chance(2) {
		q.contract = foreignValidation
		v.token += uint64(rapid.IntRange(0, 3).Draw(x.t, "beyond"))
	}
	if x.serial++; q.contract == foreignValidation && x.chance(3) {
		x.serial--
	}
	binary.BigEndian.PutUint64(q.hash[:], x.serial)
	if _, known := x.requests[q]; !known {
		x.requests[q] = v
	}
	x.events = append(x.events,
		emitted{repute.ValidationRequest{Validator: v.validator, TokenID: token(v.token), URI: x.uri(),
			RequestHash: q.hash}, q.contract})
}

// answer answers a request; at the foreign contract also falsely.
func (x *tx) answer() {
	q := mRequest{contract: foreignValidation}
	binary.BigEndian.PutUint64(q.hash[:], uint64(rapid.IntRange(0, int(x.serial)+1).Draw(x.t, "request")))
	if trusted := (mRequest{registries.Validation, q.hash}); x.requests[trusted].validator != nobody {
		q = trusted
	}
	v := x.requests[q]
	e := repute.ValidationResponse{Validator: v.validator, TokenID: token(v.token), RequestHash: q.hash,
		Response: uint8(rapid.IntRange(0, 100).Draw(x.t, "response")), URI: x.uri(), Tag: x.word()}
	if q.contract == foreignValidation && x.chance(3) {
		e.Response, e.Validator = 101, x.account()
	}
	if e.Validator == v.validator && e.Response <= 100 && v.validator != nobody {
		v.answered = true
		x.requests[q] = v
	}
	x.events = append(x.events, emitted{e, q.contract})
}

// act does one thing that the present state allows.
func (x *tx) act() {
	actions := []func(){x.register, x.operate, x.request, x.answer,
		func() { x.emit(repute.Upgraded{Implementation: x.account()}) }}
	if len(x.agents) > 0 {
		on := func(f func(uint64)) func() { return func() { f(x.agent()) } }
		give := on(x.giveFeedback)
		actions = append(actions, give, give, give, give, x.revokeFeedback, x.revokeFeedback, x.respond,
			on(x.transfer), on(x.setURI), on(x.setMetadata), on(x.setMetadata), on(x.setWallet), on(x.approve))
	}
	actions[rapid.IntRange(0, len(actions)-1).Draw(x.t, "action")]()
}

// block is a mined block with the state after it.
type block struct {
	repute.Block
	records []repute.Record
	after   *state
}

// ledger is a chain that can fork.
type ledger struct {
	genesis repute.Block
	blocks  []block
	forks   uint64
}

const firstBlock = 10

// secondsPerBlock is so long that the blocks of a chain lie in several hours.
const secondsPerBlock = 1500

func newLedger() *ledger { return &ledger{genesis: repute.Block{Number: firstBlock - 1}} }

func (l *ledger) head() repute.Block {
	if len(l.blocks) == 0 {
		return l.genesis
	}
	return l.blocks[len(l.blocks)-1].Block
}

func (l *ledger) state() *state {
	if len(l.blocks) == 0 {
		return newState()
	}
	return l.blocks[len(l.blocks)-1].after
}

// fork forgets everything above block n.
func (l *ledger) fork(n uint64) {
	l.blocks = l.blocks[:n-l.genesis.Number]
	l.forks++
}

// mine makes one block with up to four transactions.
func (l *ledger) mine(t *rapid.T) {
	parent := l.head()
	b := block{Block: repute.Block{Number: parent.Number + 1, Parent: parent.Hash}, after: l.state().clone()}
	b.Hash = crypto.Keccak256Hash(fmt.Appendf(parent.Hash.Bytes(), "%d %d", b.Number, l.forks))
	b.Time = time.Unix(1_700_000_000+secondsPerBlock*int64(b.Number), 0).UTC()
	for n := range rapid.IntRange(0, 4).Draw(t, "transactions") {
		x := tx{state: b.after, t: t}
		for range rapid.IntRange(1, 3).Draw(t, "actions") {
			x.act()
		}
		b.add(n, x.events)
	}
	l.blocks = append(l.blocks, b)
}

// add puts a transaction's events into the block as logs.
func (b *block) add(n int, events []emitted) {
	for _, e := range events {
		r := registries
		if e.contract == foreignValidation {
			r.Validation = foreignValidation
		}
		log := r.Log(e.Event)
		log.BlockNumber, log.BlockHash = b.Number, b.Hash
		log.TxIndex, log.TxHash = uint(n), crypto.Keccak256Hash(b.Hash[:], []byte{byte(n)})
		log.Index = uint(len(b.records))
		b.records = append(b.records, repute.Record{Log: log, Time: b.Time, Event: e.Event})
	}
}
