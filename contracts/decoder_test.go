package contracts

import (
	"encoding/json"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/math"
	"github.com/ethereum/go-ethereum/core/types"
	"pgregory.net/rapid"

	"repute"
)

// TestRangeOfIntegers: a number is taken exactly where its type holds it, at both ends and beyond them.
func TestRangeOfIntegers(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][2]string{"uint8": {"0", "255"}, "int8": {"-128", "127"},
		"uint256": {"0", new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 256), big.NewInt(1)).String()},
		"int256": {"-" + new(big.Int).Lsh(big.NewInt(1), 255).String(),
			new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 255), big.NewInt(1)).String()}} {
		lowest, highest := Range(name)
		if lowest == nil || lowest.String() != want[0] || highest.String() != want[1] {
			t.Errorf("%s: %s to %s", name, lowest, highest)
		}
	}
	for _, name := range []string{"", "uint", "int", "uint0", "uint257", "uint512", "uint-8", "int8[]", "bytes32",
		"address", "string", "uint256 "} {
		if lowest, highest := Range(name); lowest != nil || highest != nil {
			t.Errorf("%q: %s to %s", name, lowest, highest)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		bits := 8 * rapid.IntRange(1, 32).Draw(t, "bytes")
		name := rapid.SampledFrom([]string{"uint", "int"}).Draw(t, "sign") + strconv.Itoa(bits)
		f, err := ParseFunction("f(" + name + ")")
		if err != nil {
			t.Fatal(err)
		}
		lowest, highest := Range(name)
		n := new(big.Int).Add(rapid.SampledFrom([]*big.Int{lowest, highest}).Draw(t, "end"),
			big.NewInt(rapid.Int64Range(-1, 1).Draw(t, "step")))
		word := common.BigToHash(math.U256(new(big.Int).Set(n)))
		a, err := f.Decode(append(f.Selector[:], word[:]...))
		// Beyond the ends of the widest types a word is another number of the type.
		inside := n.Cmp(lowest) >= 0 && n.Cmp(highest) <= 0
		if bits < 256 && (err == nil) != inside || inside && (err != nil || a.List()[0].Value != n.String()) {
			t.Fatalf("%s of %s: %v, %v", n, name, a, err)
		}
	})
}

// TestPlainForms: decoded values are shown as JSON without loss, since a number of JSON has 53 bits for most readers.
func TestPlainForms(t *testing.T) {
	t.Parallel()
	huge, _ := new(big.Int).SetString("-57896044618658097711785492504343953926634992332820282019728792003956564819968", 10)
	for _, x := range []struct {
		value any
		want  string
	}{
		{huge, `"` + huge.String() + `"`}, {uint8(7), `"7"`}, {uint64(1 << 63), `"9223372036854775808"`}, {true, "true"},
		{"a", `"a"`}, {[]byte{1, 2}, `"0x0102"`}, {[]byte{}, `"0x"`}, {[4]byte{1}, `"0x01000000"`},
		{common.HexToAddress("0x8004a169fb4a3325136eb29fa0ceb6d2e539a432"),
			`"0x8004A169FB4a3325136EB29fA0ceB6D2e539a432"`},
		{[]*big.Int{big.NewInt(1)}, `["1"]`}, {[2]bool{true}, "[true,false]"}, {[][32]byte{}, "[]"},
		{struct {
			To common.Address `json:"to"`
			N  *big.Int       `json:"n"`
		}{N: big.NewInt(5)}, `{"n":"5","to":"0x0000000000000000000000000000000000000000"}`},
	} {
		if got, err := json.Marshal(Plain(x.value)); err != nil || string(got) != x.want {
			t.Errorf("%T: %s, want %s: %v", x.value, got, x.want, err)
		}
	}
}

// third is an address that no test of the package registers.
var third = common.HexToAddress("0x03")

// TestTreasuryLogs: no log of a treasury is lost. One that the ABI does not explain is kept as it is, and an
// OwnershipTransferred is a treasury's where a treasury emits it and a registry's elsewhere.
func TestTreasuryLogs(t *testing.T) {
	t.Parallel()
	treasury := common.HexToAddress("0x7e")
	d := NewDecoder(repute.Chain{Identity: alice, Reputation: bob,
		Treasuries: []repute.WatchedContract{{Address: treasury}, {Address: alice}, {}}})
	if !slices.Equal(d.Addresses, []common.Address{alice, bob, treasury}) {
		t.Errorf("a registry stays one, and the zero address is never followed: %v", d.Addresses)
	}
	owner := types.Log{Topics: []common.Hash{Topic(repute.KindOwnershipTransferred), {31: 1}, {31: 2}}}
	for at, kind := range map[common.Address]repute.EventKind{treasury: repute.KindTreasuryEvent,
		alice: repute.KindOwnershipTransferred, bob: repute.KindOwnershipTransferred} {
		owner.Address = at
		if e, ours := d.Decode(owner); !ours || e.Kind() != kind {
			t.Errorf("at %s: %v, %t", at, e, ours)
		}
	}
	for _, event := range treasuryABI.Events {
		l := types.Log{Address: treasury, Topics: []common.Hash{event.ID}, Data: []byte{7}}
		e, ours := d.Decode(l)
		kept, is := e.(repute.TreasuryEvent)
		if !ours || !is || kept.Name != repute.TreasuryUnreadable || !json.Valid(kept.Fields) ||
			!strings.Contains(string(kept.Fields), `"0x07"`) || !strings.Contains(string(kept.Fields), event.ID.Hex()) {
			t.Errorf("%s, cut: %+v, %t", event.Name, e, ours)
		}
	}
	if e, ours := d.Decode(types.Log{Address: treasury, Topics: []common.Hash{{1}}}); ours {
		t.Errorf("a topic that no treasury has: %v", e)
	}
	if e, ours := d.Decode(types.Log{Address: treasury}); ours {
		t.Errorf("an anonymous log: %v", e)
	}
}

// TestForeignValidations: of contracts that are not followed only what the query asked for is an event, because any
// contract may emit anything.
func TestForeignValidations(t *testing.T) {
	t.Parallel()
	d := NewDecoder(repute.Chain{Identity: alice, Reputation: bob})
	other, listed := common.HexToAddress("0x0e"), common.HexToAddress("0x11")
	request := encode(t, repute.KindValidationRequest, third, big.NewInt(7), "u", common.HexToHash("0xaa"))
	asked := d.With([]common.Address{listed, alice})
	if !slices.Equal(asked, []common.Address{alice, bob, listed}) || len(d.Addresses) != 2 {
		t.Errorf("asked for %v of %v", asked, d.Addresses)
	}
	transfer := encode(t, repute.KindTransfer, alice, third, big.NewInt(7))
	for name, x := range map[string]struct {
		at   common.Address
		log  types.Log
		any  []common.Hash
		want bool
	}{
		"by its topic":            {other, request, ValidationTopics()[:1], true},
		"by another topic":        {other, request, ValidationTopics()[1:2], false},
		"by its address":          {listed, request, nil, true},
		"a transfer of it":        {listed, transfer, nil, false},
		"of a followed contract":  {alice, request, nil, false},
		"of nobody asked about":   {other, request, nil, false},
		"cut":                     {listed, types.Log{Topics: request.Topics[:2]}, ValidationTopics()[:1], false},
		"anonymous":               {listed, types.Log{}, ValidationTopics()[:1], false},
		"a transfer by its topic": {other, transfer, []common.Hash{Topic(repute.KindTransfer)}, true},
	} {
		l := x.log
		l.Address = x.at
		if e, ok := d.Foreign(l, x.any, asked); ok != x.want || ok && e == nil {
			t.Errorf("%s: %v, %t", name, e, ok)
		}
	}
}

// TestFollowedTopics: the filter has each topic once, and has all that the chain's contracts emit.
func TestFollowedTopics(t *testing.T) {
	t.Parallel()
	watched := []repute.WatchedContract{{Address: third}}
	for name, c := range map[string]repute.Chain{"registries": {Identity: alice}, "alone": {Treasuries: watched},
		"gateways":   {Identity: alice, Gateways: watched},
		"treasuries": {Identity: alice, Treasuries: watched}, "all": {Identity: alice, Gateways: watched,
			Treasuries: watched}} {
		topics := FollowedTopics(c)
		once := slices.Clone(topics)
		slices.SortFunc(once, common.Hash.Cmp)
		if once = slices.Compact(once); len(once) != len(topics) {
			t.Errorf("%s: %d of %d topics are there twice", name, len(topics)-len(once), len(topics))
		}
		for _, list := range NewDecoder(c).Emits {
			for _, topic := range list {
				if !slices.Contains(topics, topic) {
					t.Errorf("%s: %s is not asked for", name, topic)
				}
			}
		}
		if has := slices.Contains(topics, Topic(repute.KindTransfer)); has != (c.Identity != common.Address{}) {
			t.Errorf("%s: transfers are asked for: %t", name, has)
		}
	}
}

// TestViewsReadAnswers: answers of the registries are read as the ABI writes them; one that is cut off is an error.
func TestViewsReadAnswers(t *testing.T) {
	t.Parallel()
	v := NewViews()
	pack := func(types string, values ...any) []byte {
		var args abi.Arguments
		for _, name := range strings.Split(types, ",") {
			of, err := abi.NewType(name, "", nil)
			if err != nil {
				t.Fatal(err)
			}
			args = append(args, abi.Argument{Type: of})
		}
		raw, err := args.Pack(values...)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	answer := pack("int128,uint8,string,string,bool", big.NewInt(-5), uint8(2), "quality", "", true)
	rating := v.Feedback(token(1), alice, 3)
	r, err := rating.Read(answer)
	if err != nil || r.Value.Int64() != -5 || r.Decimals != 2 || r.Tag1 != "quality" || r.Tag2 != "" || !r.Revoked {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := rating.Read(answer[:len(answer)-64]); err == nil {
		t.Error("an answer that is cut off is a rating")
	}
	hash := [32]byte{9}
	s, err := v.Validation(hash).Read(pack("address,uint256,uint8,bytes32,string,uint256", bob, big.NewInt(7), uint8(80),
		hash, "t", big.NewInt(1_800_000_000)))
	if err != nil || s.Validator != bob || s.Agent.Int64() != 7 || s.Response != 80 || s.Hash != hash || s.Tag != "t" ||
		s.Updated != 1_800_000_000 {
		t.Errorf("%+v, %v", s, err)
	}
	sum, err := v.Summary(token(1), []common.Address{alice}, "", "").Read(pack("uint64,int128,uint8", uint64(4),
		big.NewInt(-9), uint8(1)))
	if err != nil || sum.Count != 4 || sum.Amount.Value.Int64() != -9 || sum.Amount.Decimals != 1 {
		t.Errorf("%+v, %v", sum, err)
	}
	for name, read := range map[string]func([]byte) error{
		"URI":        func(raw []byte) error { _, err := v.TokenURI(token(1)).Read(raw); return err },
		"clients":    func(raw []byte) error { _, err := v.Clients(token(1)).Read(raw); return err },
		"validation": func(raw []byte) error { _, err := v.Validation(hash).Read(raw); return err },
	} {
		for _, raw := range [][]byte{nil, {1}, slices.Repeat([]byte{0xff}, 64)} {
			if err := read(raw); err == nil {
				t.Errorf("%s: %x is an answer", name, raw)
			}
		}
	}
}
