package source

import (
	"bytes"
	"encoding/binary"
	"errors"
	"maps"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
	"repute/trust/fixed"
)

func shipped(t testing.TB) *Policy {
	t.Helper()
	p, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestDefaultPerChain(t *testing.T) {
	t.Parallel()
	p := shipped(t)
	for chain, want := range map[uint64]string{
		8453:   "coinbase-account coinbase-business agentbook human-passport farcaster-score basename farcaster-pro x402-spend",
		56:     "bab x402-spend",
		42220:  "self-agent-id x402-spend",
		100:    "proof-of-humanity x402-spend",
		1:      "proof-of-humanity ens x402-spend",
		10:     "human-passport x402-spend",
		42161:  "human-passport x402-spend",
		59144:  "human-passport x402-spend",
		534352: "human-passport x402-spend",
		137:    "coinbase-account coinbase-business agentbook bab x402-spend",
	} {
		var ids []string
		for _, s := range p.On(chain) {
			ids = append(ids, s.ID)
			if chain != 137 && s.ReadOn(chain) != chain {
				t.Errorf("chain %d: %s is not read there", chain, s.ID)
			}
		}
		if got := strings.Join(ids, " "); got != want {
			t.Errorf("chain %d: %s, want %s", chain, got, want)
		}
	}
}

// TestSelectors compares what is asked with the published selectors of the contracts.
func TestSelectors(t *testing.T) {
	t.Parallel()
	p := shipped(t)
	for id, want := range map[string][]uint32{
		"coinbase-account":  {0xab2717dd, 0xa3112a64},
		"coinbase-business": {0xab2717dd, 0xa3112a64},
		"agentbook":         {0x451a02f4},
		"human-passport":    {0xd47875d0},
		"bab":               {0x70a08231, 0x773c02d4},
		"self-agent-id":     {0xbc936c52, 0x7d08e2f3, 0x5b0ad7ca},
		"proof-of-humanity": {0xf72c436f, 0xe274f78f},
		"farcaster-score":   {0x20a84c2e, 0x0e1af57b},
		"basename":          {0x0178b8bf, 0x691f3431, 0xd6e4fa86, 0x6352211e, 0x0178b8bf, 0x3b3b57de},
		"ens":               {0x0178b8bf, 0x691f3431, 0xd6e4fa86, 0x6352211e, 0x0178b8bf, 0x3b3b57de},
		"farcaster-pro":     {},
	} {
		s := p.Source(id)
		got := make([]uint32, 0, len(want))
		for _, step := range s.plan.steps {
			got = append(got, binary.BigEndian.Uint32(step.call.selector[:]))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s asks %x, want %x", id, got, want)
		}
	}
	topics := map[string][]string{
		"agentbook": {"d1b844701695237443dd884ed7193d9c8788f3befd35adc0910472eb166f3306"},
		"bab": {"e9274a84b19e9428826de6bae8c48329354f8f0e73f771b97cae2d9dccd45a27",
			"ec9ab91322523c899ede7830ec9bfc992b5981cdcc27b91162fb23de5791117b",
			"cc16f5dbb4873280815c1ee09dbd06736cffcc184412cf7a71a0fdb75d397ca5"},
		"basename": {"ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef",
			"ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"},
		"ens": {"ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef",
			"ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"},
		"farcaster-pro": {"793544f1eebcd80eaa24d7c6e32b707488daf4303d0ec3349b34ea9d05323285"},
	}
	for _, s := range p.Sources {
		var got []string
		for _, e := range s.plan.events {
			got = append(got, common.Bytes2Hex(e.topic[:]))
		}
		if !slices.Equal(got, topics[s.ID]) {
			t.Errorf("%s asks for logs %s, want %s", s.ID, got, topics[s.ID])
		}
		if s.Read.Payments == nil && s.Home(s.Homes[0].Chain) == nil {
			t.Errorf("%s has no home", s.ID)
		}
	}
}

func TestHashIgnoresComments(t *testing.T) {
	t.Parallel()
	text := DefaultFile()
	p := shipped(t)
	again, err := Parse(append([]byte("# a comment\n"), text...))
	if err != nil || again.Hash() != p.Hash() {
		t.Errorf("with a comment more: %s, %v; want %s", again.Hash(), err, p.Hash())
	}
	other, err := Parse([]byte(strings.Replace(string(text), "weight: 0.25", "weight: 0.2", 1)))
	if err != nil || other.Hash() == p.Hash() {
		t.Errorf("another weight has the same hash: %v", err)
	}
}

// TestRefused changes the shipped file in one place, and wants the error to name it.
func TestRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ old, text, want string }{
		"unknown member": {"    ageDays: 365", "    ageInDays: 365",
			`sources[0].ageInDays: line 44: there is no member "ageInDays"`},
		"unknown member on top": {"others: [", "extra: 1\nothers: [", `extra: line 31: there is no member "extra"`},
		"unknown in a call": {"      holds: [{value: fid", "      hold: [{value: fid",
			"sources[7].read.calls[0].hold: "},
		"member twice":    {"    class: C\n", "    class: C\n    class: C\n", "class"},
		"second document": {"  - name: Virtuals", "---\nversion: \"1\"\n#", "second document"},
		"version":         {`version: "1"`, `version: "2"`, "version:"},
		"weight above the price": {"weight: 0.1\n    price: {usd: 9", "weight: 0.15\n    price: {usd: 9",
			"sources[2].weight"},
		"weight without a price": {"weight: 0.25 # no published price", "weight: 0.3", "sources[1].weight"},
		"weight above the class": {"usd: 50", "usd: 500", ""},
		"weight":                 {"weight: 0.5\n    # An", "weight: 0.55\n    # An", "sources[0].weight"},
		"class":                  {"    class: A", "    class: D", "sources[0].class"},
		"date":                   {`date: "2021-10-19"`, `date: "October"`, "sources[0].price"},
		"bounds": {"bounds: {praise: 2.7, blame: 2}", "bounds: {praise: 30, blame: 2}",
			"sources[0].bounds.praise"},
		"age before maturity": {"ageDays: 365", "ageDays: 7", "sources[0].ageDays"},
		"age without a time":  {"    ageDays: 0\n", "    ageDays: 100\n", "sources[7].ageDays"},
		"carry with a time": {"    ageDays: 365\n", "    ageDays: 365\n    carryDays: 3\n",
			"sources[0].carryDays"},
		"id":       {"id: coinbase-account", "id: Coinbase", "sources[0].id"},
		"id twice": {"id: coinbase-business", "id: coinbase-account", "sources[1].id"},
		"default":  {"sources: [bab,", "sources: [bob,", "defaults[1].sources[0]"},
		"others":   {"agentbook, bab,", "agentbook, babel,", "others[3]"},
		"schema": {"text: bool verifiedAccount", "text: bool verified",
			"sources[0].read.eas.schema.id"},
		"contract": {"contract: book", "contract: books", "sources[2].homes[0].contracts.books"},
		"argument": {"arguments: [agent]", "arguments: [nobody]",
			"sources[5].read.calls[1].arguments[0]"},
		"argument's type": {"arguments: [fid]", "arguments: [rater, fid]", "sources[7].read.calls[1].arguments"},
		"function": {"lookupHuman(address) returns (uint256 humanId)", "lookupHuman(address",
			"sources[2].read.calls[0].function"},
		"type": {"returns (uint24 score)", "returns (uint25 score)",
			"sources[7].read.calls[1].function"},
		"person": {"person: humanId", "person: human", "sources[2].read.person"},
		"condition": {"atLeast: \"200000\"", "atLeast: \"many\"",
			"sources[3].read.calls[0].holds[0].atLeast"},
		"two conditions": {"{value: fid, notZero: true}", "{value: fid, notZero: true, atLeast: \"2\"}",
			"holds[0]"},
		"target's type":     {"at: reverseResolver", "at: rater.reverse", "sources[8].read.calls[1].at"},
		"target of nowhere": {"at: reverseResolver", "at: forwardResolver", "sources[8].read.calls[1].at"},
		"target and contract": {"at: reverseResolver", "at: reverseResolver\n          contract: registry",
			"calls[1].among"},
		"any target": {"          among: [resolver1, resolver2]\n", "", "sources[8].read.calls[1].among"},
		"unknown target": {"among: [resolver1, resolver2]", "among: [resolver1, resolver3]",
			"contracts.resolver3"},
		"among without at": {"at: reverseResolver", "contract: registry", "sources[8].read.calls[1].contract"},
		"name of a string": {"value: name.parent", "value: name", "sources[8].read.calls[1].holds[0].value"},
		"gas":              {"gas: 10000", "gas: 100", "sources[8].read.calls[0].gas"},
		"two strings": {"returns (string name)", "returns (string name, string other)",
			"sources[8].read.calls[1].function"},
		"future of an address": {"{value: owner, equals: [rater]}", "{value: owner, future: true}",
			"calls[3].holds[0].future"},
		"future of an event": {"{value: forDays, atLeast: \"365\"}", "{value: forDays, future: true}",
			"events[0].holds[0].future"},
		"error": {"no: [AttestationNotFound()", "no: [AttestationNotFound",
			"sources[3].read.calls[0].no[0]"},
		"implementation": {"[first-seen]}\n          registry", "[last-seen]}\n          registry",
			"implementations[0]"},
		"address": {`multicall: "0xcA11bde05977b3631167028862bE2a173976CA11"`, `multicall: "0xcA11"`,
			"multicall"},
		"relay twice": {`"0xaaca1ba9d2627cbc0739ba69890c30f95de046e4"`, `"0x80c08de1a05df2bd633cf520754e40fde3c794d3"`,
			"relays[2].addresses[1]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := string(DefaultFile())
			if !strings.Contains(text, c.old) {
				t.Fatalf("the file has no %q", c.old)
			}
			_, err := Parse([]byte(strings.Replace(text, c.old, c.text, 1)))
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !errors.Is(err, repute.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want an error with %q", err, c.want)
			}
		})
	}
}

// word encodes a number.
func word(n uint64) []byte {
	return common.BigToHash(new(big.Int).SetUint64(n)).Bytes()
}

// attestation encodes a record as the registry returns it.
func attestation(words ...common.Hash) []byte {
	out := slices.Concat(word(32))
	for _, w := range words {
		out = append(out, w[:]...)
	}
	return slices.Concat(out, word(320), word(32), word(1))
}

func hashOf(a common.Address) common.Hash { return common.BytesToHash(a[:]) }

var (
	rater    = common.HexToAddress("0x1111111111111111111111111111111111111111")
	schema   = common.HexToHash("0xf8b05c79f090979bf4a80270aba232dff11a10d9ca55c4f88de95317970f0de9")
	attester = common.HexToAddress("0x357458739F90461b99789350868CD7CF330Dd7EE")
	uid      = common.HexToHash("0x77")
)

func TestEAS(t *testing.T) {
	t.Parallel()
	s := shipped(t).Source("coinbase-account")
	record := func(change func(words []common.Hash)) []byte {
		words := []common.Hash{uid, schema, common.HexToHash("0x64"), {}, {}, {}, hashOf(rater), hashOf(attester),
			common.HexToHash("0x1")}
		change(words)
		return attestation(words...)
	}
	whole := record(func([]common.Hash) {})
	for name, c := range map[string]struct {
		data []byte
		want Verdict
	}{
		"holds":             {whole, Holds},
		"revoked":           {record(func(w []common.Hash) { w[4] = common.HexToHash("0x65") }), Holds},
		"another schema":    {record(func(w []common.Hash) { w[1] = common.HexToHash("0x1") }), Denied},
		"another attester":  {record(func(w []common.Hash) { w[7] = hashOf(rater) }), Denied},
		"another recipient": {record(func(w []common.Hash) { w[6] = hashOf(attester) }), Denied},
		"another uid":       {record(func(w []common.Hash) { w[0] = common.Hash{} }), Denied},
		"wide time":         {record(func(w []common.Hash) { w[2] = schema }), Unreadable},
		"cut off":           {whole[:len(whole)-32], Unreadable},
		"longer":            {append(slices.Clone(whole), 0), Unreadable},
		"nothing":           {nil, Unreadable},
		"huge length":       {slices.Concat(whole[:352], slices.Repeat([]byte{0xff}, 32), whole[384:]), Unreadable},
	} {
		q := s.Ask(s.Home(8453), rater, common.Hash{}, 0)
		first := q.Next()
		if want := slices.Concat(crypto.Keccak256([]byte("getAttestationUid(address,bytes32)"))[:4],
			hashOf(rater).Bytes(), schema[:]); !slices.Equal(first.Data, want) {
			t.Fatalf("first call %x, want %x", first.Data, want)
		}
		if err := q.Answer(true, uid[:]); err != nil || q.Verdict != Open {
			t.Fatalf("after the uid: %v, %v", q.Verdict, err)
		}
		if next := q.Next(); next.To != common.HexToAddress("0x4200000000000000000000000000000000000021") ||
			!slices.Equal(next.Data[4:], uid[:]) {
			t.Fatalf("second call %x", next.Data)
		}
		err := q.Answer(true, c.data)
		if q.Verdict != c.want || (err != nil) != (c.want == Unreadable) {
			t.Errorf("%s: verdict %d, %v; want %d", name, q.Verdict, err, c.want)
		}
		if q.Verdict == Holds {
			cred := q.Credential(9, common.Hash{}, 1000)
			if cred.Subject != uid || cred.Issued != 100 || (cred.Revoked == 101) != (name == "revoked") {
				t.Errorf("%s: %+v", name, cred)
			}
		}
	}
}

func TestReverts(t *testing.T) {
	t.Parallel()
	s := shipped(t).Source("human-passport")
	for text, want := range map[string]Verdict{"AttestationNotFound()": Denied, "AttestationExpired(uint64)": Denied,
		"Paused()": Unknown} {
		q := s.Ask(s.Home(10), rater, common.Hash{}, 0)
		err := q.Answer(false, slices.Concat(crypto.Keccak256([]byte(text))[:4], word(5)))
		if q.Verdict != want || (err == nil) != (want == Denied) {
			t.Errorf("%s: verdict %d, %v; want %d", text, q.Verdict, err, want)
		}
	}
	for name, data := range map[string][]byte{"no data": nil, "three bytes": {1, 2, 3}} {
		q := s.Ask(s.Home(10), rater, common.Hash{}, 0)
		if err := q.Answer(false, data); q.Verdict != Unknown || err == nil {
			t.Errorf("%s: verdict %d, %v", name, q.Verdict, err)
		}
	}
	for score, want := range map[uint64]Verdict{200_000: Holds, 199_999: Denied} {
		q := s.Ask(s.Home(10), rater, common.Hash{}, 0)
		if err := q.Answer(true, word(score)); err != nil || q.Verdict != want {
			t.Errorf("score %d: verdict %d, %v", score, q.Verdict, err)
		}
	}
}

func TestCounts(t *testing.T) {
	t.Parallel()
	p := shipped(t)
	base := Credential{Source: "coinbase-account", Version: 1, Class: ClassA, Rater: rater, Issued: 1000 * day}
	for name, c := range map[string]struct {
		change func(c *Credential)
		at     uint64
		want   Why
	}{
		"six days":       {func(*Credential) {}, 1007*day - 1, WhyMaturing},
		"seven days":     {func(*Credential) {}, 1007 * day, ""},
		"a year":         {func(*Credential) {}, 1365 * day, ""},
		"more":           {func(*Credential) {}, 1365*day + 1, WhyAged},
		"of the future":  {func(*Credential) {}, 999 * day, WhyMaturing},
		"before revoke":  {func(c *Credential) { c.Revoked = 1010 * day }, 1010*day - 1, ""},
		"revoked":        {func(c *Credential) { c.Revoked = 1010 * day }, 1010 * day, WhyRevoked},
		"before expiry":  {func(c *Credential) { c.Expires = 1010 * day }, 1010*day - 1, ""},
		"expired":        {func(c *Credential) { c.Expires = 1010 * day }, 1010 * day, WhyExpired},
		"older version":  {func(c *Credential) { c.Version = 2 }, 1010 * day, WhyUnlisted},
		"unknown source": {func(c *Credential) { c.Source = "x" }, 1010 * day, WhyUnlisted},
		"relay": {func(c *Credential) { c.Rater = common.HexToAddress("0x103040545ac5031a11e8c03dd11324c7333a13c7") },
			1010 * day, WhyRelay},
	} {
		cred := base
		c.change(&cred)
		if got := p.Counts(&cred, c.at); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// of makes a credential of the shipped policy that counts at day 2000.
func of(p *Policy, id string, a common.Address, subject uint64) Credential {
	s := p.Source(id)
	return Credential{Source: id, Version: s.Version, Class: s.Class, Weight: s.Weight, Rater: a,
		Subject: common.BytesToHash(word(subject)), Issued: 1900 * day}
}

func TestRaters(t *testing.T) {
	t.Parallel()
	p := shipped(t)
	p.Sources[p.index("basename")].MaturityDays = 7
	other := common.HexToAddress("0x2222222222222222222222222222222222222222")
	credentials := []Credential{
		of(p, "coinbase-account", other, 1),
		of(p, "coinbase-account", rater, 2), of(p, "coinbase-account", rater, 3),
		of(p, "coinbase-business", rater, 4), of(p, "bab", rater, 5), of(p, "self-agent-id", rater, 6),
		of(p, "farcaster-score", rater, 7), of(p, "basename", rater, 8),
	}
	got := p.Raters(credentials, 2000*day)
	if len(got) != 2 || got[0].Address != rater || got[1].Address != other || got[1].Weight != fixed.One/2 {
		t.Fatalf("%+v", got)
	}
	if got[0].Weight != fixed.One || len(got[0].Parts) != 5 {
		t.Errorf("%+v: want weight 1 of five sources: one of class C, since 0.1 is for all of them", got[0])
	}
	slices.Reverse(credentials)
	again := p.Raters(credentials, 2000*day)
	if !slices.EqualFunc(got, again, func(a, b Rater) bool {
		return a.Address == b.Address && a.Weight == b.Weight && slices.Equal(a.Parts, b.Parts)
	}) {
		t.Errorf("the order of credentials changes the weights: %+v, %+v", got, again)
	}
	if left := p.Raters(credentials[:7], 1900*day); len(left) != 0 {
		t.Errorf("before they are mature: %+v", left)
	}
}

func (p *Policy) index(id string) int {
	return slices.IndexFunc(p.Sources, func(s Source) bool { return s.ID == id })
}

// TestManyAttestations: ten thousand attestations for one address weigh as much as one.
func TestManyAttestations(t *testing.T) {
	t.Parallel()
	p := shipped(t)
	credentials := make([]Credential, 10_000)
	for i := range credentials {
		credentials[i] = of(p, "coinbase-account", rater, uint64(i))
	}
	got := p.Raters(credentials, 2000*day)
	if len(got) != 1 || got[0].Weight != fixed.One/2 || len(got[0].Parts) != 1 {
		t.Errorf("%+v", got)
	}
}

func TestEncode(t *testing.T) {
	t.Parallel()
	p := shipped(t)
	list := []Credential{of(p, "bab", rater, 2), of(p, "bab", rater, 1), of(p, "agentbook", rater, 3)}
	list[1].Renewed, list[2].Lapsed = 7, 8
	first, err := Encode(list)
	slices.Reverse(list)
	second, err2 := Encode(list)
	if err != nil || err2 != nil || !bytes.Equal(first, second) {
		t.Errorf("%s and %s: %v, %v", first, second, err, err2)
	}
	back, err := Decode(first)
	if Sort(list); err != nil || !slices.Equal(back, list) {
		t.Errorf("%+v, %v: want %+v", back, err, list)
	}
	list[0].Revoked = 5
	if third, _ := Encode(list); bytes.Equal(third, first) {
		t.Error("a revocation is not encoded")
	}
}

func TestAccepts(t *testing.T) {
	t.Parallel()
	one, two, none := common.HexToAddress("0x1"), common.HexToAddress("0x2"), common.Address{}
	for _, c := range []struct {
		pinned []string
		now    common.Address
		first  *common.Address
		want   bool
	}{
		{nil, none, nil, true},
		{nil, one, nil, false},
		{[]string{FirstSeen}, one, nil, true},
		{[]string{FirstSeen}, one, &one, true},
		{[]string{FirstSeen}, two, &one, false},
		{[]string{FirstSeen}, none, &one, false},
		{[]string{FirstSeen, two.Hex()}, two, &one, true},
		{[]string{one.Hex()}, one, nil, true},
		{[]string{one.Hex()}, two, nil, false},
	} {
		if got := (Contract{Implementations: c.pinned}).Accepts(c.now, c.first); got != c.want {
			t.Errorf("%v of %s, first %v: %t", c.pinned, c.now, c.first, got)
		}
	}
}

// FuzzParse: no file makes the parser panic, and one that is accepted can be asked about a rater.
func FuzzParse(f *testing.F) {
	f.Add(string(DefaultFile()))
	f.Add("")
	f.Add("version: \"1\"\nsources: [{id: x, read: {calls: [{function: f(address) returns (uint256 x)}]}}]")
	f.Add("a: &a [*a]")
	f.Add("classes: {<<: {A: {}}}")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse([]byte(text))
		if err != nil {
			if !errors.Is(err, repute.ErrInvalid) {
				t.Errorf("%v is not an invalid input", err)
			}
			return
		}
		for i := range p.Sources {
			s := &p.Sources[i]
			if s.Read.Payments != nil {
				s.Spent(1, repute.Block{}, []Payment{{Paid: repute.MaxPaid}})
				continue
			}
			q := s.Ask(&s.Homes[0], rater, common.Hash{}, 0)
			if q.Verdict == Open {
				_ = q.Next()
				_ = q.Answer(true, make([]byte, 64))
			}
		}
	})
}

// FuzzAnswer: no answer of a contract makes an inquiry panic.
func FuzzAnswer(f *testing.F) {
	p := shipped(f)
	f.Add("coinbase-account", true, attestation(uid, schema, common.Hash{}))
	f.Add("human-passport", false, []byte{1, 2, 3, 4})
	f.Add("ens", true, hashOf(p.Source("ens").Home(1).Contracts["reverse1"].Address).Bytes())
	f.Fuzz(func(t *testing.T, id string, success bool, data []byte) {
		s := p.Source(id)
		if s == nil || len(s.Homes) == 0 {
			return
		}
		q := s.Ask(&s.Homes[0], rater, common.Hash{}, 0)
		for q.Verdict == Open {
			if to := q.Next().To; !slices.ContainsFunc(slices.Collect(maps.Values(s.Homes[0].Contracts)),
				func(c Contract) bool { return c.Address == to }) {
				t.Fatalf("asks %s, which is not declared", to)
			}
			if len(data) < 64 && q.step == 0 && s.Read.EAS != nil {
				_ = q.Answer(true, uid[:])
				continue
			}
			_ = q.Answer(success, data)
		}
	})
}
