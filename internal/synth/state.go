package synth

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"slices"
)

// point is a position on the chain.
type point struct{ Block, Log uint32 }

// open is the end of a row that still holds.
const open = math.MaxUint32

// agentState is what a transfer, an update or an approval changes.
type agentState struct {
	Owner, Wallet, Approved party
	URI                     text
}

// agent is the newest state of one token.
type agent struct {
	Now                                               agentState
	Registered, Updated                               point
	Feedback, Revoked, Clients, Responses, Validation uint32
}

// version is a state from block From until before block To.
type version struct {
	Token, From, To uint32
	State           agentState
}

// entry is a metadata key's value from block From until before block To.
type entry struct {
	Token, Key    uint32 // Key counts in metadataKeys
	From, To, Log uint32
	Value         uint32
}

// span is how long Operator acts for Owner.
type span struct {
	Owner, Operator party
	From, To        uint32
}

// rating is one feedback.
type rating struct {
	Token      uint32
	Client     party
	Index      uint32
	At         point
	Revoked    point // zero while live
	Tag1, Tag2 uint16
	Value      amount
	Decimals   uint8
	URI        text
	Endpoint   text
	Hash       digest
}

// response answers a rating.
type response struct {
	Token     uint32
	Client    party
	Index     uint32
	At        point
	Responder party
	URI       text
	Hash      digest
}

// request asks for a validation; Hash names it.
type request struct {
	Hash      digest
	Token     uint32
	Validator party
	URI       text
	At        point
}

// answer is a validator's.
type answer struct {
	Request  digest
	At       point
	Response uint8
	URI      text
	Hash     digest
	Tag      uint16
}

// pair is a client of an agent.
type pair struct {
	token  uint32
	client party
}

// opinion counts the ratings of a client.
type opinion struct{ last, live uint32 }

// A metadataSlot is one key of one agent, an operatorSlot one operator of one owner: each has at most one open row.
type metadataSlot struct{ token, key uint32 }
type operatorSlot struct{ owner, operator party }

// tables are what an index of a history holds. Rows are structs of numbers.
type tables struct {
	agents    []agent // by token
	versions  []version
	entries   []entry
	spans     []span
	ratings   []rating
	responses []response
	requests  []request
	answers   []answer
}

// save writes all rows, each table with their number first.
func (t *tables) save(w io.Writer) error {
	return errors.Join(saveRows(w, t.agents), saveRows(w, t.versions), saveRows(w, t.entries), saveRows(w, t.spans),
		saveRows(w, t.ratings), saveRows(w, t.responses), saveRows(w, t.requests), saveRows(w, t.answers))
}

// load reads what save wrote.
func (t *tables) load(r io.Reader) error {
	return errors.Join(loadRows(r, &t.agents), loadRows(r, &t.versions), loadRows(r, &t.entries), loadRows(r, &t.spans),
		loadRows(r, &t.ratings), loadRows(r, &t.responses), loadRows(r, &t.requests), loadRows(r, &t.answers))
}

// saveRows writes a table: its length, then its rows as they are in memory, which are numbers only.
func saveRows[T any](w io.Writer, rows []T) error {
	return errors.Join(binary.Write(w, binary.LittleEndian, uint64(len(rows))),
		binary.Write(w, binary.LittleEndian, rows))
}

// loadRows reads what saveRows wrote. The length is believed: a file is whole where its description is there.
func loadRows[T any](r io.Reader, rows *[]T) error {
	var n uint64
	if err := binary.Read(r, binary.LittleEndian, &n); err != nil {
		return err
	}
	*rows = make([]T, n)
	return binary.Read(r, binary.LittleEndian, *rows)
}

// state is what the events so far amount to. It follows the contracts, not any
// index of them: histories change at the end of a block, however often something
// changed within it.
type state struct {
	tables

	pairs    map[pair]*opinion
	slots    map[metadataSlot]int // index of the open entry
	acting   map[operatorSlot]int // index of the open span
	approved map[operatorSlot]bool

	newest   []int           // by agent: its open version, -1 before the first
	touched  []uint32        // agents that changed in this block
	toggled  []operatorSlot  // pairs that were approved or refused in this block, some twice
	answered map[digest]bool // requests with an answer
}

// newState is the state before the first event.
func newState() *state {
	return &state{pairs: map[pair]*opinion{}, slots: map[metadataSlot]int{}, acting: map[operatorSlot]int{},
		approved: map[operatorSlot]bool{}, answered: map[digest]bool{}}
}

// mint adds the next agent.
func (s *state) mint(owner party, at point) uint32 {
	s.agents = append(s.agents, agent{Now: agentState{Owner: owner}, Registered: at, Updated: at})
	s.newest = append(s.newest, -1)
	token := uint32(len(s.agents) - 1)
	s.touched = append(s.touched, token)
	return token
}

// change returns the state of an agent for changing it.
func (s *state) change(token uint32) *agentState {
	s.touched = append(s.touched, token)
	return &s.agents[token].Now
}

// transfer clears wallet and approval, as the registry does.
func (s *state) transfer(token uint32, to party) {
	now := s.change(token)
	now.Owner, now.Wallet, now.Approved = to, 0, 0
}

// setMetadata ends the row that holds and begins another. Of several values in one block only the last has a row,
// because the others never held at the end of a block.
func (s *state) setMetadata(token, key, value uint32, at point) {
	slot := metadataSlot{token, key}
	e := entry{Token: token, Key: key, From: at.Block, To: open, Log: at.Log, Value: value}
	if i, ok := s.slots[slot]; ok {
		if s.entries[i].From == at.Block {
			s.entries[i] = e
			return
		}
		s.entries[i].To = at.Block
	}
	s.slots[slot] = len(s.entries)
	s.entries = append(s.entries, e)
}

// approveAll notes an approval. Its row is written at the end of the block: a pair that is approved and refused
// within one leaves no trace.
func (s *state) approveAll(owner, operator party, yes bool) {
	slot := operatorSlot{owner, operator}
	s.approved[slot] = yes
	s.toggled = append(s.toggled, slot)
}

// nextIndex is the index that the client's next feedback gets.
func (s *state) nextIndex(p pair) uint32 {
	if o := s.pairs[p]; o != nil {
		return o.last + 1
	}
	return 1
}

// rate adds a rating that is live. A client counts for an agent while it has one.
func (s *state) rate(r rating) {
	p := pair{r.Token, r.Client}
	o := s.pairs[p]
	if o == nil {
		o = &opinion{}
		s.pairs[p] = o
	}
	a := &s.agents[r.Token]
	o.last = r.Index
	if o.live++; o.live == 1 {
		a.Clients++
	}
	a.Feedback++
	s.ratings = append(s.ratings, r)
}

// revoke withdraws the rating at position i, which must be live.
func (s *state) revoke(i int, at point) {
	r := &s.ratings[i]
	r.Revoked = at
	a, o := &s.agents[r.Token], s.pairs[pair{r.Token, r.Client}]
	if o.live--; o.live == 0 {
		a.Clients--
	}
	a.Feedback--
	a.Revoked++
}

// respond adds a response. Responses are never withdrawn.
func (s *state) respond(r response) {
	s.responses = append(s.responses, r)
	s.agents[r.Token].Responses++
}

func (s *state) request(r request) { s.requests = append(s.requests, r) }

// answer adds a validator's answer. A request counts as answered once, however often it is.
func (s *state) answer(token uint32, a answer) {
	if !s.answered[a.Request] {
		s.answered[a.Request] = true
		s.agents[token].Validation++
	}
	s.answers = append(s.answers, a)
}

// endBlock writes the histories of what differs from the end of the block before.
func (s *state) endBlock(block uint32) {
	for _, token := range s.touched {
		now := s.agents[token].Now
		v := s.newest[token]
		if v >= 0 && s.versions[v].State == now {
			continue // changed and changed back, or written already
		}
		if v >= 0 {
			s.versions[v].To = block
		}
		s.newest[token] = len(s.versions)
		s.versions = append(s.versions, version{Token: token, From: block, To: open, State: now})
	}
	for _, slot := range s.toggled {
		s.endOperator(slot, block)
	}
	s.touched, s.toggled = s.touched[:0], s.toggled[:0]
}

// endOperator begins or ends the row of a pair, if that changed since the block before.
func (s *state) endOperator(slot operatorSlot, block uint32) {
	i, acting := s.acting[slot]
	switch yes := s.approved[slot]; {
	case yes && !acting:
		s.acting[slot] = len(s.spans)
		s.spans = append(s.spans, span{Owner: slot.owner, Operator: slot.operator, From: block, To: open})
	case !yes && acting:
		s.spans[i].To = block
		delete(s.acting, slot)
	}
}

// sort brings every table into the order of its natural key.
func (s *state) sort() {
	slices.SortFunc(s.versions, func(a, b version) int {
		return cmp.Or(cmp.Compare(a.Token, b.Token), cmp.Compare(a.From, b.From))
	})
	keys := make([][32]byte, len(metadataKeys))
	for i, k := range metadataKeys {
		keys[i] = sha256.Sum256([]byte(k))
	}
	slices.SortFunc(s.entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.Token, b.Token), bytes.Compare(keys[a.Key][:], keys[b.Key][:]),
			cmp.Compare(a.From, b.From))
	})
	slices.SortFunc(s.spans, func(a, b span) int {
		return cmp.Or(compareParties(a.Owner, b.Owner), compareParties(a.Operator, b.Operator),
			cmp.Compare(a.From, b.From))
	})
	slices.SortFunc(s.ratings, func(a, b rating) int {
		return cmp.Or(cmp.Compare(a.Token, b.Token), compareParties(a.Client, b.Client), cmp.Compare(a.Index, b.Index))
	})
	slices.SortFunc(s.responses, func(a, b response) int {
		return cmp.Or(cmp.Compare(a.Token, b.Token), compareParties(a.Client, b.Client), cmp.Compare(a.Index, b.Index),
			comparePoints(a.At, b.At))
	})
	slices.SortFunc(s.requests, func(a, b request) int { return compareDigests(a.Hash, b.Hash) })
	slices.SortFunc(s.answers, func(a, b answer) int {
		return cmp.Or(compareDigests(a.Request, b.Request), comparePoints(a.At, b.At))
	})
}

// compareParties orders by address.
func compareParties(a, b party) int {
	if a == b {
		return 0
	}
	if a == 0 || b == 0 {
		return cmp.Compare(a, b)
	}
	x, y := a.address(), b.address()
	return bytes.Compare(x[:], y[:])
}

// compareDigests and comparePoints order by hash, and by place on the chain.
func compareDigests(a, b digest) int {
	if a == b {
		return 0
	}
	x, y := a.hash(), b.hash()
	return bytes.Compare(x[:], y[:])
}

func comparePoints(a, b point) int {
	return cmp.Or(cmp.Compare(a.Block, b.Block), cmp.Compare(a.Log, b.Log))
}
