package source

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"pgregory.net/rapid"
)

// The nodes are those that EIP-137, EIP-181 and ENSIP-19 publish, or that follow from them.
func TestNamehash(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"":                 "0x0000000000000000000000000000000000000000000000000000000000000000",
		"eth":              "0x93cdeb708b7545dc668eb9280176169d1c33cfd8ed6f04690a0bcc88a93fc4ae",
		"foo.eth":          "0xde9b09fd7c5f901e23a3f19fecc54828e9c848539801e86591bd9801b019f84f",
		"addr.reverse":     "0x91d1777781884d03a6757a803996e38de2a42967fb37eeaca72729271025a9e2",
		"80002105.reverse": "0x08d9b0993eb8c4da57c37a4b84a6e384c2623114ff4e9370ed51c9b8935109ba",
		"base.eth":         "0xff1e3c0eb00ec714e34b6114125fbde1dea2f24a72fbf672e7b7fd5690328e10",
	} {
		if got, err := namehash(name); err != nil || got.Hex() != want {
			t.Errorf("%q: %s, %v; want %s", name, got, err, want)
		}
	}
	label := crypto.Keccak256([]byte("1111111111111111111111111111111111111111"))
	for chain, parent := range map[uint64]string{1: "addr.reverse", 8453: "80002105.reverse"} {
		space, _ := namehash(parent)
		if got := reverseNode(rater, chain); got != crypto.Keccak256Hash(space[:], label) {
			t.Errorf("chain %d: %s", chain, got)
		}
	}
}

// text encodes a string as a contract returns it.
func text(s string) []byte {
	padded := make([]byte, (len(s)+wordSize-1)/wordSize*wordSize)
	copy(padded, s)
	return slices.Concat(word(wordSize), word(uint64(len(s))), padded)
}

// primary is a rater's path through the calls of a source of names: what each call answers.
type primary struct {
	reverse, forward common.Address // the resolvers
	name             []byte
	expires          uint64
	owner, resolved  common.Address
}

// ask makes all calls of the shipped source of ENS names at time 1000.
func (p primary) ask(t *testing.T, s *Source) (q *Inquiry, asked int, err error) {
	t.Helper()
	answers := [][]byte{hashOf(p.reverse).Bytes(), p.name, word(p.expires), hashOf(p.owner).Bytes(),
		hashOf(p.forward).Bytes(), hashOf(p.resolved).Bytes()}
	q = s.Ask(s.Home(1), rater, common.Hash{}, 1000)
	for q.Verdict == Open {
		_ = q.Next()
		err = q.Answer(true, answers[asked])
		asked++
	}
	return q, asked, err
}

// A name counts only when the registry, both resolvers, the expiry and the owner agree about it.
func TestPrimaryName(t *testing.T) {
	t.Parallel()
	s := shipped(t).Source("ens")
	home := s.Home(1).Contracts
	for name, c := range map[string]struct {
		change func(*primary)
		want   Verdict
		asked  int
	}{
		"holds":                    {func(*primary) {}, Holds, 6},
		"old reverse resolver":     {func(p *primary) { p.reverse = home["reverse1"].Address }, Holds, 6},
		"no reverse record":        {func(p *primary) { p.reverse = common.Address{} }, Denied, 1},
		"unknown reverse resolver": {func(p *primary) { p.reverse = attester }, Denied, 1},
		"no name":                  {func(p *primary) { p.name = text("") }, Denied, 2},
		"of another parent":        {func(p *primary) { p.name = text("alice.xyz") }, Denied, 2},
		"a name below a name":      {func(p *primary) { p.name = text("pay.alice.eth") }, Denied, 2},
		"the parent itself":        {func(p *primary) { p.name = text("eth") }, Denied, 2},
		"no UTF-8":                 {func(p *primary) { p.name = text("al\xffice.eth") }, Denied, 2},
		"an empty label":           {func(p *primary) { p.name = text("alice..eth") }, Denied, 2},
		"a dot first":              {func(p *primary) { p.name = text(".eth") }, Denied, 2},
		"too long":                 {func(p *primary) { p.name = text(strings.Repeat("a", 252) + ".eth") }, Denied, 2},
		"10 MB": {func(p *primary) { p.name = text(strings.Repeat("a", 10<<20) + ".eth") },
			Denied, 2},
		"a word and no string":      {func(p *primary) { p.name = word(1) }, Unreadable, 2},
		"cut off":                   {func(p *primary) { p.name = p.name[:len(p.name)-1] }, Unreadable, 2},
		"longer than it says":       {func(p *primary) { p.name = append(p.name, word(0)...) }, Unreadable, 2},
		"a length beyond the bytes": {func(p *primary) { p.name = slices.Concat(word(32), slices.Repeat([]byte{255}, 32)) }, Unreadable, 2},
		"expired":                   {func(p *primary) { p.expires = 1000 }, Denied, 3},
		"never registered":          {func(p *primary) { p.expires = 0 }, Denied, 3},
		"owned by another":          {func(p *primary) { p.owner = attester }, Denied, 4},
		"no forward record":         {func(p *primary) { p.forward = common.Address{} }, Denied, 5},
		"unknown forward resolver":  {func(p *primary) { p.forward = attester }, Denied, 5},
		"a resolver without addr":   {func(p *primary) { p.forward = home["reverse1"].Address }, Denied, 5},
		"wrong forward record":      {func(p *primary) { p.resolved = attester }, Denied, 6},
	} {
		p := primary{home["reverse2"].Address, home["resolver2"].Address, text("alice.eth"), 1001, rater, rater}
		c.change(&p)
		q, asked, err := p.ask(t, s)
		if q.Verdict != c.want || asked != c.asked || (err != nil) != (c.want == Unreadable) {
			t.Errorf("%s: verdict %d after %d calls, %v; want %d after %d", name, q.Verdict, asked, err, c.want,
				c.asked)
		}
		if q.Verdict != Holds {
			continue
		}
		got := q.Credential(9, common.Hash{}, 1000)
		if got.Subject != crypto.Keccak256Hash([]byte("alice")) || got.Expires != 1001 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// Every string decodes to a name whose node follows from its label and its parent, or is refused as no name.
func TestDecodeName(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(rapid.StringMatching(`[a-z]{0,4}(\.[a-zé]{0,4}){0,4}`), rapid.String()).Draw(t, "name")
		words, err := decodeName(text(name))
		if err != nil {
			if !errors.Is(err, errName) {
				t.Fatalf("%q: %v", name, err)
			}
			return
		}
		if name != "" && words[0] != crypto.Keccak256Hash(words[2][:], words[1][:]) {
			t.Fatalf("%q: node %s, label %s, parent %s", name, words[0], words[1], words[2])
		}
	})
}

// FuzzDecodeName: no answer makes the decoder panic or allocate beyond the answer.
func FuzzDecodeName(f *testing.F) {
	f.Add(text("alice.eth"))
	f.Add(slices.Concat(word(32), slices.Repeat([]byte{255}, 32)))
	f.Fuzz(func(t *testing.T, data []byte) {
		if words, err := decodeName(data); err == nil && len(words) != 3 {
			t.Errorf("%d words", len(words))
		}
	})
}
