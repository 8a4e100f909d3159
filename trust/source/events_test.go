package source

import (
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"pgregory.net/rapid"
)

// eventLog is a log of a contract with indexed values alone.
func eventLog(contract common.Address, block uint64, index uint, event string, values ...common.Hash) *types.Log {
	return &types.Log{Address: contract, BlockNumber: block, Index: index,
		Topics: append([]common.Hash{crypto.Keccak256Hash([]byte(event))}, values...)}
}

func number64(n uint64) common.Hash { return common.BytesToHash(word(n)) }

// signsOf reads logs as a reader does.
func signsOf(t *testing.T, s *Source, home *Home, logs ...*types.Log) (out []Sign) {
	t.Helper()
	for _, l := range logs {
		signs, err := s.Signs(home, l)
		if err != nil {
			t.Fatal(err)
		}
		for _, sign := range signs {
			if sign.Rater == rater {
				out = append(out, sign)
			}
		}
	}
	return out
}

// heldNames is a source for which any name that an address owns counts.
func heldNames(t *testing.T) *Source {
	t.Helper()
	text := string(DefaultFile())
	from, to := strings.Index(text, "  - id: basename\n"), strings.Index(text, "  - id: farcaster-pro\n")
	text = text[:from] + `  - id: names
    version: 1
    name: Name
    issuer: the test
    meaning: owns a name
    class: C
    weight: 0.1
    maturityDays: 365
    bounds: {praise: 1, blame: 0.5}
    homes: [{chain: 8453, contracts: {registrar: {address: "0x03c4738ee98ae44591e1a4a4f3cab6641d95dd9a"}}}]
    read:
      calls: [{contract: registrar, function: balanceOf(address) returns (uint256 names), arguments: [rater],
        holds: [{value: names, notZero: true}]}]
      events:
        - &gained
          contract: registrar
          event: Transfer(address indexed from, address indexed to, uint256 indexed tokenId)
          rater: to
          person: tokenId
          means: issued
        - {<<: *gained, rater: from, means: revoked}
` + text[to:]
	p, err := Parse([]byte(strings.NewReplacer(" basename,", "", " ens,", "").Replace(text)))
	if err != nil {
		t.Fatal(err)
	}
	return p.Source("names")
}

// A name counts from when its present owner got it, no matter who owned it before; a sale and a purchase do not join.
func TestTenureOfNames(t *testing.T) {
	t.Parallel()
	s := heldNames(t)
	home := s.Home(8453)
	registrar, other := home.Contracts["registrar"].Address, hashOf(attester)
	moved := func(block uint64, from, to common.Hash, name uint64) *types.Log {
		return eventLog(registrar, block, 0, "Transfer(address,address,uint256)", from, to, number64(name))
	}
	me := hashOf(rater)
	for name, c := range map[string]struct {
		logs    []*types.Log
		subject uint64 // 0: none
		issued  uint64
	}{
		"held": {[]*types.Log{moved(5, other, me, 1)}, 1, 5},
		"sold": {[]*types.Log{moved(5, other, me, 1), moved(9, me, other, 1)}, 0, 0},
		"bought back": {[]*types.Log{moved(5, other, me, 1), moved(9, me, other, 1), moved(20, other, me, 1)},
			1, 20},
		"the older of two": {[]*types.Log{moved(5, other, me, 1), moved(6, other, me, 2)}, 1, 5},
		"the older sold": {[]*types.Log{moved(5, other, me, 1), moved(6, other, me, 2), moved(7, me, other, 1)},
			2, 6},
		"sent to itself":   {[]*types.Log{moved(5, other, me, 1), moved(6, me, me, 1)}, 1, 5},
		"of somebody else": {[]*types.Log{moved(5, me, other, 1)}, 0, 0},
	} {
		got, tells := s.Tenure(nil, common.Hash{}, signsOf(t, s, home, c.logs...))
		if (tells == Tells) != (c.subject != 0) || tells == Tells &&
			(got.Subject != number64(c.subject) || got.Issued.Block != c.issued) {
			t.Errorf("%s: %+v, %d", name, got, tells)
		}
	}
	known := &Credential{Subject: number64(1), Issued: 77}
	if got, tells := s.Tenure(known, common.Hash{}, nil); tells != Tells || got.Issued.Time != 77 {
		t.Errorf("nothing new: %+v, %d", got, tells)
	}
	sold := signsOf(t, s, home, moved(6, other, me, 2), moved(7, me, other, 1))
	if _, tells := s.Tenure(known, common.Hash{}, sold); tells != TellsLess {
		t.Errorf("the known one is sold: %d, an older one than what is known to be held may be left", tells)
	}
}

// The first person who bound an address counts, no matter who binds it later, and only that person renews it.
func TestTenureOfBook(t *testing.T) {
	t.Parallel()
	s := shipped(t).Source("agentbook")
	home := s.Home(8453)
	bound := func(block, human uint64) *types.Log {
		return eventLog(home.Contracts["book"].Address, block, 0, "AgentRegistered(address,uint256)", hashOf(rater),
			number64(human))
	}
	got, tells := s.Tenure(nil, number64(66),
		signsOf(t, s, home, bound(5, 1), bound(8, 66), bound(9, 1), bound(10, 66)))
	if tells != Tells || got.Subject != number64(1) || got.Issued.Block != 5 || got.Renewed.Block != 9 {
		t.Errorf("%+v, %d", got, tells)
	}
	if _, tells := s.Tenure(nil, number64(66), nil); tells != TellsNone {
		t.Errorf("without a log: %d", tells)
	}
}

// A token that is revoked and minted anew counts from the mint.
func TestTenureOfTokens(t *testing.T) {
	t.Parallel()
	s := shipped(t).Source("bab")
	home := s.Home(56)
	token := home.Contracts["token"].Address
	log := func(block uint64, name string, id uint64) *types.Log {
		return eventLog(token, block, 0, name+"(address,uint256)", hashOf(rater), number64(id))
	}
	logs := []*types.Log{log(5, "Attest", 1), log(7, "Revoke", 1), log(9, "Attest", 2), log(11, "Burn", 2),
		log(12, "Attest", 3)}
	if got, tells := s.Tenure(nil, number64(3), signsOf(t, s, home, logs...)); tells != Tells ||
		got.Issued.Block != 12 {
		t.Errorf("%+v, %d", got, tells)
	}
	if _, tells := s.Tenure(nil, number64(2), signsOf(t, s, home, logs...)); tells != TellsNone {
		t.Errorf("a burnt token: %d", tells)
	}
	if f := s.Filters(home, []common.Address{rater}); len(f) != 1 || len(f[0].Topics[0]) != 3 || len(f[0].Topics) != 2 {
		t.Errorf("filters %+v: want one for the three events", f)
	}
}

// What is known and the logs since then tell the same as all logs.
func TestTenureByParts(t *testing.T) {
	t.Parallel()
	p, names := shipped(t), heldNames(t)
	rapid.Check(t, func(t *rapid.T) {
		s := names
		if id := rapid.SampledFrom([]string{"", "basename", "agentbook", "bab", "farcaster-pro"}).Draw(t,
			"source"); id != "" {
			s = p.Source(id)
		}
		var signs []Sign
		for i := range rapid.IntRange(0, 12).Draw(t, "signs") {
			signs = append(signs, Sign{Rater: rater, Key: number64(rapid.Uint64Range(1, 3).Draw(t, "key")),
				Revoked: s.ID != "agentbook" && s.ID != "farcaster-pro" && rapid.Bool().Draw(t, "revoked"),
				Block:   uint64(i + 1)})
		}
		cut := rapid.IntRange(0, len(signs)).Draw(t, "cut")
		person := number64(rapid.Uint64Range(1, 3).Draw(t, "person"))
		before, tells := s.Tenure(nil, person, signs[:cut])
		if tells != Tells {
			return
		}
		known := &Credential{Subject: before.Subject, Issued: before.Issued.Block, Renewed: before.Renewed.Block}
		whole, want := s.Tenure(nil, person, signs)
		parts, got := s.Tenure(known, person, signs[cut:])
		if got == TellsLess {
			return // the reader asks for all
		}
		time := func(m Moment) uint64 { return m.Block + m.Time }
		if got != want || parts.Subject != whole.Subject || time(parts.Issued) != time(whole.Issued) ||
			time(parts.Renewed) != time(whole.Renewed) {
			t.Fatalf("%s by parts %+v, whole %+v", s.ID, parts, whole)
		}
	})
}

// A credential that was lost and issued again does not hide an older one that only the earlier logs show.
func TestLostAndIssuedAgain(t *testing.T) {
	t.Parallel()
	s := heldNames(t)
	sign := func(block, key uint64, revoked bool) Sign {
		return Sign{Rater: rater, Key: number64(key), Revoked: revoked, Block: block}
	}
	signs := []Sign{sign(1, 3, false), sign(2, 1, false), sign(3, 3, true), sign(4, 1, false), sign(5, 3, false)}
	known := &Credential{Subject: number64(3), Issued: 1}
	if _, tells := s.Tenure(known, common.Hash{}, signs[2:]); tells != TellsLess {
		t.Errorf("the later logs alone tell %d", tells)
	}
	if got, _ := s.Tenure(nil, common.Hash{}, signs); got.Subject != number64(1) || got.Issued.Block != 2 {
		t.Errorf("all logs tell %+v", got)
	}
}

// byLogs is the shipped policy with Coinbase's attestations read by logs alone.
func byLogs(t *testing.T) *Policy {
	t.Helper()
	text := string(DefaultFile())
	text = strings.ReplaceAll(text,
		"          indexer: {address: \"0x2c7eE1E5f416dfF40054c27A62f7B357C4E8619C\", implementations: [first-seen]}\n", "")
	p, err := Parse([]byte(strings.ReplaceAll(text, "      eas:\n", "      eas:\n        logs: true\n")))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Without an indexer the logs of the registry name the latest attestation of the schema that is not revoked.
func TestEASByLogs(t *testing.T) {
	t.Parallel()
	s := byLogs(t).Source("coinbase-account")
	home := s.Home(8453)
	filters := s.Filters(home, []common.Address{rater})
	if len(filters) != 1 || !slices.Equal(filters[0].Topics[0], []common.Hash{
		common.HexToHash("0x8bf46bf4cfd674fa735a3d63ec1c9ad4153f033c290341f3a588b75685141b35"),
		common.HexToHash("0xf930a6e2523c9cc298691873087a740550b8fc85a0680830414c148ed927f615")}) ||
		filters[0].Topics[2][0] != hashOf(attester) || filters[0].Topics[3][0] != schema {
		t.Fatalf("filters %+v", filters)
	}
	log := func(block uint64, topic int, uid uint64) *types.Log {
		return &types.Log{Address: filters[0].Contract, BlockNumber: block, Data: word(uid),
			Topics: []common.Hash{filters[0].Topics[0][topic], hashOf(rater), hashOf(attester), schema}}
	}
	signs := signsOf(t, s, home, log(1, 0, 11), log(2, 0, 12), log(3, 0, 13), log(4, 1, 13))
	got, tells := s.Tenure(nil, common.Hash{}, signs)
	if tells != Tells || got.Subject != number64(12) {
		t.Fatalf("%+v, %d", got, tells)
	}
	q := s.Ask(home, rater, got.Subject, 0)
	if next := q.Next(); !slices.Equal(next.Data[4:], word(12)) {
		t.Errorf("asks for %x", next.Data)
	}
	err := q.Answer(true, attestation(number64(12), schema, number64(100), number64(0), number64(0), number64(0),
		hashOf(rater), hashOf(attester), number64(1)))
	if err != nil || q.Verdict != Holds || q.Credential(9, common.Hash{}, 1000).Issued != 100 {
		t.Errorf("%d, %v", q.Verdict, err)
	}
}

// FuzzLog: no log makes the reader of logs panic.
func FuzzLog(f *testing.F) {
	p := shipped(f)
	f.Add("bab", uint8(3), []byte{1})
	f.Add("farcaster-pro", uint8(4), word(365))
	f.Fuzz(func(t *testing.T, id string, topics uint8, data []byte) {
		s := p.Source(id)
		if s == nil || len(s.Homes) == 0 {
			return
		}
		home := &s.Homes[0]
		for _, e := range s.plan.events {
			l := &types.Log{Address: home.Contracts[e.contract].Address, Data: data}
			for i := range topics % 6 {
				l.Topics = append(l.Topics, common.BytesToHash(data[:min(len(data), int(i))]))
			}
			if len(l.Topics) > 0 {
				l.Topics[0] = e.topic
			}
			_, _ = s.Signs(home, l)
		}
	})
}
