package rows

import (
	"math"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store/trustdb"
	"repute/trust/flow"
	"repute/trust/rating"
)

// addressOf returns an address for tests.
func addressOf(n byte) common.Address { return common.Address{19: n} }

// nobody returns the parameters and the weights of a graph without anybody.
func nobody(t *testing.T) (*rating.Params, *flow.Weights) {
	t.Helper()
	p, err := rating.DefaultParams()
	if err != nil {
		t.Fatal(err)
	}
	return p, flow.NewGraphBuilder().Build().Walk(nil, p.Walk)
}

// TestRowOf: a tag that was not read differs from the empty one, times and payments that are unknown are 0, and those
// that are known are seconds and dollars.
func TestRowOf(t *testing.T) {
	t.Parallel()
	row := RowOf(trustdb.Row{Tag1: "", Tag2: "b"})
	if row.Tag1 != "" || row.Tag2 != "b" || row.Time != 0 || row.Paid != 0 || row.PaidAt != 0 {
		t.Errorf("%+v", row)
	}
	if row = RowOf(trustdb.Row{Other: true}); row.Tag1 != rating.UnreadTag {
		t.Errorf("a tag that was not read is %q", row.Tag1)
	}
	at := time.Date(2026, 1, 31, 12, 0, 0, 500, time.UTC)
	row = RowOf(trustdb.Row{Rater: addressOf(1), Via: addressOf(2), Index: 3, Time: at, LogIndex: 4,
		Payment: &repute.Payment{To: addressOf(5), Paid: 1_500_000, Time: at.Add(time.Hour)}})
	if row.Time != at.Unix() || row.PaidAt != at.Unix()+3600 || row.Payee != addressOf(5) ||
		row.Paid.Decimal(2) != "1.50" || row.Client() != addressOf(2) || row.Index != 3 || row.LogIndex != 4 {
		t.Errorf("%+v", row)
	}
	if row = RowOf(trustdb.Row{Payment: &repute.Payment{Paid: 1}}); row.PaidAt != 0 {
		t.Errorf("a payment at an unknown time was at %d", row.PaidAt)
	}
}

// TestEvidenceOf: who chose whom decides whose ratings count, so that the agent's own wallet and the addresses that its
// owner merely named are kept apart, and zero addresses are neither.
func TestEvidenceOf(t *testing.T) {
	t.Parallel()
	_, w := nobody(t)
	owner, wallet, operator := addressOf(1), addressOf(2), addressOf(3)
	s := trustdb.Subject{Owner: owner, Wallet: wallet, Operators: []common.Address{{}, operator},
		Holders: []trustdb.Holder{{From: 7, Owner: owner, Wallet: wallet}},
		Rows:    []trustdb.Row{{Rater: addressOf(9)}}, Gone: []trustdb.Row{{Rater: addressOf(8), LogIndex: 4}}}
	e := EvidenceOf(s, w, nil)
	if !slices.Equal(e.Self, []common.Address{wallet}) || !slices.Equal(e.Named, []common.Address{operator}) {
		t.Errorf("self %v, named %v", e.Self, e.Named)
	}
	if e.Registrar != owner || e.Since != 7 || len(e.Rows) != 1 || e.Rows[0].Rater != addressOf(9) {
		t.Errorf("without events: %+v", e)
	}
	if gone := GoneOf(&s); len(gone) != 1 || gone[0].Rater != addressOf(8) || gone[0].LogIndex != 4 {
		t.Errorf("revoked: %+v", gone)
	}
	s.Wallet, s.Approved, s.Operators = common.Address{}, addressOf(4), nil
	s.Events = []trustdb.OwnerEvent{{Block: 7, Kind: repute.KindTransfer, To: addressOf(5)},
		{Block: 8, Kind: repute.KindTransfer, From: addressOf(5), To: owner}}
	s.Holders = []trustdb.Holder{{From: 7, Owner: addressOf(5)}, {From: 8, Owner: owner}}
	e = EvidenceOf(s, w, nil)
	if e.Registrar != addressOf(5) || len(e.Self) != 0 || !slices.Equal(e.Named, []common.Address{addressOf(4)}) {
		t.Errorf("after a transfer: %+v", e)
	}
	if e.Since != 9 || e.Tenures[0].To != 8 || e.Tenures[1].To != math.MaxUint64 {
		t.Errorf("praise counts from block %d, tenures %+v", e.Since, e.Tenures)
	}
	if e = EvidenceOf(trustdb.Subject{}, w, nil); e.Registrar != (common.Address{}) || e.Self != nil || e.Named != nil {
		t.Errorf("of nothing: %+v", e)
	}
}

// storeOf returns a store of one block with a plain agent and one with a history, whose ratings are by address 9.
func storeOf(block repute.Block) *Store {
	s := New(nil, 8453)
	s.at, s.registry, s.numbers = block, addressOf(100), newNumbers()
	n := &s.numbers
	owner, rater := n.addresses.Add(addressOf(1)), n.addresses.Add(addressOf(9))
	n.values = []repute.Amount{{Value: big.NewInt(80)}}
	n.tags = []trustdb.SnapshotTag{{Text: "starred"}, {}, {Other: true}}
	n.kinds = []kind{{tag2: 1}, {tag1: 2, tag2: 1, via: owner + 1}}
	rows := []rating.PackedRow{{Writer: rater, Block: 5, Time: 50}, {Writer: rater, Block: 6, Kind: 1, Content: 1<<24 + 2}}
	s.agents = []agent{{token: tokenOf(1), owner: owner, isOwn: true, from: 3, began: 30, ratings: rows},
		{token: tokenOf(2), owner: owner, from: 3, ratings: rows[:1], subject: &trustdb.Subject{Owner: addressOf(2),
			Holders: []trustdb.Holder{{From: 3, Owner: addressOf(1)}, {From: 4, Owner: addressOf(2)}}}},
		{token: tokenOf(3), owner: owner, from: 4}}
	n.addresses.Add(addressOf(2))
	s.operators = map[common.Address][]common.Address{addressOf(1): {addressOf(7)}, addressOf(2): {addressOf(8)}}
	return s
}

// TestEvidenceOfAStore: an agent in memory is that of the database, single rows are what packed ones stand for, and
// there is none for another block, an unknown agent, one without ratings, or while the store is being changed.
func TestEvidenceOfAStore(t *testing.T) {
	t.Parallel()
	p, w := nobody(t)
	block := repute.Block{Number: 6, Hash: common.Hash{6}}
	s := storeOf(block)
	subject, e, ok := s.Evidence(block, tokenOf(1), p, w, nil, false)
	if !ok || e.Packing != nil || len(e.Rows) != 2 || e.Nodes != nil {
		t.Fatalf("%t, %+v", ok, e)
	}
	if subject.Owner != addressOf(1) || subject.Wallet != addressOf(1) || subject.Block != block ||
		subject.Agent.ChainID != 8453 || subject.Agent.Registry != addressOf(100) ||
		!slices.Equal(subject.Operators, []common.Address{addressOf(7)}) || subject.Holders[0].Time.Unix() != 30 {
		t.Errorf("%+v", subject)
	}
	first, second := e.Rows[0], e.Rows[1]
	if first.Rater != addressOf(9) || first.Time != 50 || first.Tag1 != "starred" || first.Amount.Decimal() != "80" ||
		first.Via != (common.Address{}) || s.numbers.addresses.At(first.Writer-1) != addressOf(9) {
		t.Errorf("%+v", first)
	}
	if second.Tag1 != rating.UnreadTag || second.Via != addressOf(1) || second.Time != 0 ||
		second.Content != (common.Hash{0: 1, 28: 1, 31: 2}) || first.Content == (common.Hash{}) {
		t.Errorf("%+v", second)
	}
	if subject, e, ok = s.Evidence(block, tokenOf(2), p, w, nil, true); !ok || e.Since != 5 ||
		!slices.Equal(subject.Operators, []common.Address{addressOf(8)}) || s.agents[1].subject.Operators != nil {
		t.Errorf("an agent with a history: %+v", e)
	}
	for name, b := range map[string]repute.Block{"another block": {Number: 7, Hash: block.Hash},
		"another hash": {Number: 6, Hash: common.Hash{7}}} {
		if _, _, ok := s.Evidence(b, tokenOf(1), p, w, nil, false); ok {
			t.Errorf("%s has evidence", name)
		}
	}
	for _, token := range []uint64{0, 3, 4} {
		if _, _, ok := s.Evidence(block, tokenOf(token), p, w, nil, false); ok {
			t.Errorf("agent %d has evidence", token)
		}
	}
	s.mu.Lock()
	if _, _, ok := s.Evidence(block, tokenOf(1), p, w, nil, false); ok {
		t.Error("a store that is being changed has evidence")
	}
	s.Collect() // does not wait either
	s.mu.Unlock()
}

// TestPlainReader: the evidence about a plain agent is what Store.Evidence returns, in memory that is used again, and
// there is none for agents with a history or for other parameters.
func TestPlainReader(t *testing.T) {
	t.Parallel()
	p, _ := nobody(t)
	block := repute.Block{Number: 6, Hash: common.Hash{6}}
	s := storeOf(block)
	b := flow.NewGraphBuilderOf(&s.numbers.addresses)
	for i := range s.numbers.addresses.Len() {
		b.Use(uint32(i))
	}
	g := b.Build()
	w := g.Walk(nil, p.Walk)
	s.read = newReadings(&s.numbers, p)
	s.read.find(g)
	if r := s.Plain(block, p, w, nil); r.Evidence(tokenOf(1)) != nil {
		t.Error("ratings that were not judged are packed")
	}
	s.read.packing.Judge(p, nil)
	r := s.Plain(block, p, w, nil)
	got := r.Evidence(tokenOf(1))
	_, want, ok := s.Evidence(block, tokenOf(1), p, w, nil, false)
	if got == nil || !ok || want.Packing != got.Packing || !slices.Equal(want.Packed, got.Packed) {
		t.Fatalf("%+v, want %+v", got, want)
	}
	if got.Agent != want.Agent || got.Owner != want.Owner || got.Wallet != want.Wallet || got.Since != want.Since ||
		got.Registrar != want.Registrar || !slices.Equal(got.Tenures, want.Tenures) ||
		!slices.Equal(got.Self, want.Self) || !slices.Equal(got.Named, want.Named) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if number := got.OwnerNumber; number == 0 || s.numbers.addresses.At(number-1) != got.Owner {
		t.Errorf("the owner has the number %d", number)
	}
	for _, token := range []uint64{0, 2, 3, 4} {
		if e := r.Evidence(tokenOf(token)); e != nil {
			t.Errorf("agent %d is plain: %+v", token, e)
		}
	}
	if r.Evidence(tokenOf(1)) != got {
		t.Error("an agent before the last one has other memory")
	}
	other := *p
	if s.Plain(block, &other, w, nil).Evidence(tokenOf(1)) != nil ||
		s.Plain(repute.Block{Number: 6}, p, w, nil).Evidence(tokenOf(1)) != nil {
		t.Error("other parameters, or another block, have evidence")
	}
}

// TestReadings: kinds that differ only in their gateway have one text, and tags that are divided elsewhere do not.
func TestReadings(t *testing.T) {
	t.Parallel()
	p, _ := nobody(t)
	n := newNumbers()
	n.addresses.Add(addressOf(1))
	n.values = []repute.Amount{{Value: big.NewInt(5)}, {Value: big.NewInt(50), Decimals: 1}}
	n.tags = []trustdb.SnapshotTag{{Text: "a b"}, {Text: "c"}, {Text: "a"}, {Text: "b c"}, {}}
	n.kinds = []kind{{tag1: 0, tag2: 1}, {tag1: 2, tag2: 3}, {tag1: 0, tag2: 1, via: 1}, {value: 1, tag1: 0, tag2: 1},
		{tag1: 4, tag2: 4}}
	r := newReadings(&n, p)
	kinds := r.packing.Kinds
	if kinds[0].Text != kinds[2].Text || kinds[0].Text != kinds[3].Text {
		t.Errorf("the gateway, or how an amount is written, changes the text: %+v", kinds)
	}
	if kinds[0].Text == kinds[1].Text || kinds[0].Text == kinds[4].Text {
		t.Errorf("other tags have the same text: %+v", kinds)
	}
	if kinds[2].Via != 1 || kinds[0].Via != 0 {
		t.Errorf("gateways: %+v", kinds)
	}
	if r.said(0) == nil || r.said(5) != nil {
		t.Error("a kind that is not known means something")
	}
}
