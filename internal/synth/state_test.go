package synth

import (
	"bytes"
	"math/big"
	"reflect"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"pgregory.net/rapid"
)

// TestStateOfRatings: counts of an agent are those of its ratings, whatever was given and withdrawn in which order.
func TestStateOfRatings(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := newState()
		for range 3 {
			s.mint(owners+1, point{1, 0})
		}
		for n := range rapid.IntRange(1, 60).Draw(t, "steps") {
			at := point{uint32(2 + n), 1}
			var live []int
			for i, r := range s.ratings {
				if r.Revoked == (point{}) {
					live = append(live, i)
				}
			}
			if len(live) > 0 && rapid.IntRange(0, 2).Draw(t, "revoke") == 0 {
				s.revoke(rapid.SampledFrom(live).Draw(t, "rating"), at)
				continue
			}
			p := pair{uint32(rapid.IntRange(0, 2).Draw(t, "agent")), clients + party(rapid.IntRange(1, 3).Draw(t, "client"))}
			s.rate(rating{Token: p.token, Client: p.client, Index: s.nextIndex(p), At: at})
		}
		given := map[pair]uint32{}
		for token, a := range s.agents {
			var feedback, revoked uint32
			of := map[party]bool{}
			for _, r := range s.ratings {
				if r.Token != uint32(token) {
					continue
				}
				if given[pair{r.Token, r.Client}]++; r.Index != given[pair{r.Token, r.Client}] {
					t.Fatalf("indexes of a client are not 1, 2, 3: %+v", r)
				}
				if r.Revoked != (point{}) {
					revoked++
					continue
				}
				feedback++
				of[r.Client] = true
			}
			if a.Feedback != feedback || a.Revoked != revoked || a.Clients != uint32(len(of)) {
				t.Fatalf("agent %d: %+v with %d live ratings of %d clients, %d revoked", token, a, feedback, len(of), revoked)
			}
		}
	})
}

// TestHistoriesAreContiguous: the versions of an agent follow each other without gaps and without two that are the
// same, the last one is its state, and each key and operator has one open row at most.
func TestHistoriesAreContiguous(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := newState()
		for block := uint32(1); block < 20; block++ {
			for n := range rapid.IntRange(0, 4).Draw(t, "changes") {
				at := point{block, uint32(n)}
				if len(s.agents) == 0 || rapid.IntRange(0, 5).Draw(t, "mint") == 0 {
					s.mint(owners+1, at)
				}
				token := uint32(rapid.IntRange(0, len(s.agents)-1).Draw(t, "agent"))
				to := party(rapid.IntRange(0, 2).Draw(t, "party"))
				switch rapid.IntRange(0, 3).Draw(t, "kind") {
				case 0:
					s.transfer(token, owners+to)
					if now := s.agents[token].Now; now.Wallet != 0 || now.Approved != 0 {
						t.Fatal("a transfer keeps the wallet or the approval")
					}
				case 1:
					s.change(token).Wallet = to
				case 2:
					s.setMetadata(token, uint32(to), rapid.Uint32Range(0, 2).Draw(t, "value"), at)
				case 3:
					s.approveAll(owners+1, operators+to, rapid.Bool().Draw(t, "yes"))
				}
			}
			s.endBlock(block)
		}
		s.sort()
		for i, v := range s.versions {
			last := i == len(s.versions)-1 || s.versions[i+1].Token != v.Token
			switch {
			case v.From >= v.To:
				t.Fatalf("%+v is empty", v)
			case last && (v.To != open || v.State != s.agents[v.Token].Now):
				t.Fatalf("%+v is not the newest state %+v", v, s.agents[v.Token].Now)
			case !last && (s.versions[i+1].From != v.To || s.versions[i+1].State == v.State):
				t.Fatalf("%+v is followed by %+v", v, s.versions[i+1])
			}
		}
		for i, e := range s.entries {
			if i > 0 && s.entries[i-1].Token == e.Token && s.entries[i-1].Key == e.Key && s.entries[i-1].To != e.From ||
				e.From >= e.To {
				t.Fatalf("%+v after %+v", e, s.entries[max(i-1, 0)])
			}
		}
		for i, x := range s.spans {
			same := i > 0 && s.spans[i-1].Owner == x.Owner && s.spans[i-1].Operator == x.Operator
			if same && s.spans[i-1].To >= x.From || x.From >= x.To {
				t.Fatalf("%+v after %+v", x, s.spans[max(i-1, 0)])
			}
			if x.To == open && !s.approved[operatorSlot{x.Owner, x.Operator}] {
				t.Fatalf("%+v is open and refused", x)
			}
		}
	})
}

// TestTablesRoundTrip: what a history keeps in its file is read as it was; a file that is cut off is an error.
func TestTablesRoundTrip(t *testing.T) {
	t.Parallel()
	s := newState()
	s.mint(owners+1, point{1, 2})
	s.rate(rating{Token: 0, Client: clients + 1, Index: 1, At: point{2, 0}, Value: amount{-5, 3}, Tag1: 7})
	s.respond(response{Token: 0, Client: clients + 1, Index: 1, URI: formResponse | 9})
	s.request(request{Hash: 4, Validator: validators + 1})
	s.answer(0, answer{Request: 4, Response: 80})
	s.answer(0, answer{Request: 4, Response: 90})
	s.setMetadata(0, 1, 2, point{3, 0})
	s.endBlock(3)
	var file bytes.Buffer
	if err := s.save(&file); err != nil {
		t.Fatal(err)
	}
	var back tables
	if err := back.load(bytes.NewReader(file.Bytes())); err != nil || back.agents[0].Validation != 1 ||
		!slices.Equal(back.agents, s.agents) || !slices.Equal(back.versions, s.versions) ||
		!slices.Equal(back.entries, s.entries) || !slices.Equal(back.ratings, s.ratings) ||
		!slices.Equal(back.responses, s.responses) || !slices.Equal(back.requests, s.requests) ||
		!slices.Equal(back.answers, s.answers) || len(back.spans) != 0 {
		t.Errorf("%+v is read as %+v: %v", s.tables, back, err)
	}
	for _, n := range []int{0, 7, file.Len() / 2, file.Len() - 1} {
		var cut tables
		if err := cut.load(bytes.NewReader(file.Bytes()[:n])); err == nil {
			t.Errorf("%d of %d bytes are read", n, file.Len())
		}
	}
}

// TestStoredBlock: a block of the index is read as it was written, in as many bytes as the index counts.
func TestStoredBlock(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := block{offset: rapid.Uint64().Draw(t, "offset"), firstTx: rapid.Uint64().Draw(t, "first"),
			txs: rapid.Uint32().Draw(t, "txs"), logs: rapid.Uint32().Draw(t, "logs")}
		for _, field := range [][]byte{b.hash[:], b.txRoot[:], b.receiptRoot[:], b.bloom[:]} {
			copy(field, rapid.SliceOfN(rapid.Byte(), len(field), len(field)).Draw(t, "field"))
		}
		raw := b.append(nil)
		if len(raw) != blockSize || !reflect.DeepEqual(readBlock(raw), b) {
			t.Fatalf("%d bytes, %+v", len(raw), readBlock(raw))
		}
	})
}

// TestNumbersStandForThemselves: parties, digests and values are told apart by what the chain has of them.
func TestNumbersStandForThemselves(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := party(rapid.Uint32().Draw(t, "a")), party(rapid.Uint32().Draw(t, "b"))
		if (a.address() == b.address()) != (a == b) || (a.address() == common.Address{}) != (a == 0) ||
			(len(a.raw()) == 0) != (a == 0) {
			t.Fatalf("parties %d and %d are %s and %s", a, b, a.address(), b.address())
		}
		x, y := digest(rapid.Uint64().Draw(t, "x")), digest(rapid.Uint64().Draw(t, "y"))
		if (x.hash() == y.hash()) != (x == y) || (x.hash() == common.Hash{}) != (x == 0) {
			t.Fatalf("digests %d and %d are %s and %s", x, y, x.hash(), y.hash())
		}
		if c := compareParties(a, b); c != -compareParties(b, a) || (c == 0) != (a == b) ||
			a != 0 && b != 0 && c != bytes.Compare(a.raw(), b.raw()) {
			t.Fatalf("order of %d and %d is %d", a, b, c)
		}
		v := amount{rapid.Int64().Draw(t, "value"), uint8(rapid.IntRange(0, 18).Draw(t, "exponent"))}
		ten := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(v.Exp)), nil)
		if got := v.big(); got.Cmp(ten.Mul(ten, big.NewInt(v.Value))) != 0 || got.BitLen() > 127 {
			t.Fatalf("%+v is %s", v, got)
		}
	})
}
