package evmtest

import (
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"repute/contracts/bindings/fixtures"
	"repute/trust/source"
)

const namesText = `
  - <<: *one
    id: primary
    homes:
      - chain: 31337
        contracts: {registry: {address: "$service"}, first: {address: "$service"}, second: {address: "$resolver"}}
    read:
      calls:
        - contract: registry
          function: resolver(bytes32) returns (address reverseResolver)
          arguments: [rater.reverse]
        - at: reverseResolver
          among: [first, second]
          function: name(bytes32) returns (string name)
          arguments: [rater.reverse]
          holds: [{value: name.parent, equals: ["0x93cdeb708b7545dc668eb9280176169d1c33cfd8ed6f04690a0bcc88a93fc4ae"]}]
        - contract: registry
          function: nameExpires(uint256) returns (uint256 expiry)
          arguments: [name.label]
          holds: [{value: expiry, future: true}]
        - contract: registry
          function: ownerOf(uint256) returns (address owner)
          arguments: [name.label]
          holds: [{value: owner, equals: [rater]}]
        - contract: registry
          function: resolver(bytes32) returns (address forwardResolver)
          arguments: [name.node]
        - at: forwardResolver
          among: [first, second]
          function: addr(bytes32) returns (address resolved)
          arguments: [name.node]
          holds: [{value: resolved, equals: [rater]}]
      person: name.label
      expires: expiry
      events:
        - &gained
          contract: registry
          event: Transfer(address indexed from, address indexed to, uint256 indexed id)
          rater: to
          person: id
          means: issued
        - {<<: *gained, rater: from, means: revoked}
`

// service is a chain with a name service and a hostile resolver, which the policy lists like the honest one.
type service struct {
	*chain
	calls    *fixtures.NameService
	at       common.Address // of registry, registrar and honest resolver
	resolver common.Address // hostile
}

func startNames(t *testing.T) *service {
	c := start(t)
	s := &service{chain: c, calls: fixtures.NewNameService(), at: c.create(&fixtures.NameServiceMetaData, nil),
		resolver: c.create(&fixtures.HostileResolverMetaData, nil)}
	header, _, _ := strings.Cut(c.text, "sources:\n")
	_, one, _ := strings.Cut(c.text, "sources:\n")
	one, _, _ = strings.Cut(one, "  - <<: *one\n")
	header = strings.Replace(header, "[indexed, logged, book, token, names]", "[primary]", 1)
	var err error
	c.policy, err = source.Parse([]byte(header + "sources:\n" + one + strings.NewReplacer("$service", s.at.Hex(),
		"$resolver", s.resolver.Hex()).Replace(namesText)))
	ok(t, err)
	return s
}

// below returns the namehash of a label below a node.
func below(parent common.Hash, label string) common.Hash {
	return crypto.Keccak256Hash(parent[:], crypto.Keccak256([]byte(label)))
}

func (s *service) reverse(a common.Address) common.Hash {
	return below(below(below(common.Hash{}, "reverse"), "80007a69"), strings.ToLower(a.Hex()[2:])) // 31337 of ENSIP-11
}

func forward(label string) common.Hash { return below(below(common.Hash{}, "eth"), label) }

// give registers a name for an address until a time.
func (s *service) give(a common.Address, label string, until time.Time) time.Time {
	token := crypto.Keccak256Hash([]byte(label)).Big()
	s.send(s.at, s.calls.PackGive(a, token, big.NewInt(until.Unix())))
	return s.d.Head().Time
}

// claim makes a name the primary name of an address, with records at two resolvers.
func (s *service) claim(a common.Address, name string, node common.Hash, reverse, forward, resolved common.Address) {
	s.send(s.at, s.calls.PackSetResolver(s.reverse(a), reverse), s.calls.PackSetName(s.reverse(a), name),
		s.calls.PackSetResolver(node, forward), s.calls.PackSetAddr(node, resolved))
}

// A primary name counts since its owner got it, until it expires, is sold, or its records say something else.
func TestPrimaryNames(t *testing.T) {
	s := startNames(t)
	alice, bob, carol := s.d.Account(1).Address, s.d.Account(2).Address, s.d.Account(3).Address
	year := s.d.Head().Time.Add(365 * 24 * time.Hour)
	since := s.give(alice, "alice", year)
	s.claim(alice, "alice.eth", forward("alice"), s.at, s.at, alice)
	s.claim(bob, "alice.eth", forward("alice"), s.at, s.at, alice) // another one's name
	late := s.give(carol, "carol", s.d.Head().Time.Add(48*time.Hour))
	s.claim(carol, "carol.eth", forward("carol"), s.at, s.at, carol)
	check := func(a, c time.Time) {
		t.Helper()
		r := s.read(alice, bob, carol)["primary"]
		s.holds(r, alice, a)
		s.holds(r, carol, c)
		if s.holds(r, bob, time.Time{}); r.Status != source.StatusOK {
			t.Errorf("%s: %s", r.Status, r.Reason)
		}
	}
	check(since, late)
	s.counts(s.read(alice)["primary"], alice, source.WhyMaturing)
	s.later(2)
	check(since, time.Time{}) // ownerOf reverts for the expired name
	s.send(s.at, s.calls.PackSetAddr(forward("alice"), bob))
	check(time.Time{}, time.Time{})
	s.send(s.at, s.calls.PackSetAddr(forward("alice"), alice))
	check(since, time.Time{})
	verified, err := s.reader.Verify(t.Context(), 31337, s.d.Head(), s.policy.On(31337), s.past)
	if ok(t, err); verified.Credentials != 1 || len(verified.Differences)+len(verified.Unchecked) != 0 {
		t.Errorf("%+v", verified)
	}
	sold := s.give(bob, "alice", year)
	check(time.Time{}, time.Time{})
	s.send(s.at, s.calls.PackSetAddr(forward("alice"), bob))
	s.holds(s.read(alice, bob)["primary"], bob, sold)
}

// Bad records deny the rater who chose them. A resolver that is not listed is never called, and a listed one that fails
// leaves only those raters unknown who use it.
func TestHostileNames(t *testing.T) {
	s := startNames(t)
	honest := s.d.Account(1).Address
	since := s.give(honest, "honest", s.d.Head().Time.Add(24*time.Hour))
	s.claim(honest, "honest.eth", forward("honest"), s.at, s.at, honest)
	unlisted := s.create(&fixtures.HostileResolverMetaData, nil)
	s.send(unlisted, fixtures.NewHostileResolver().PackBecome(1)) // would use all gas
	raters := []common.Address{honest}
	for i, c := range []struct {
		name, label       string
		reverse, resolver common.Address
	}{
		{"al\xffice.eth", "al\xffice", s.at, s.at},
		{strings.Repeat("a", 2_000) + ".eth", strings.Repeat("a", 2_000), s.at, s.at},
		{"..eth", "", s.at, s.at},
		{"", "", s.at, s.at},
		{"x.eth", "x", unlisted, s.at},
		{"y.eth", "y", s.at, unlisted},
		{"z.eth", "z", s.at, common.Address{}},
	} {
		a := s.d.Account(2 + i).Address
		s.give(a, c.label, s.d.Head().Time.Add(24*time.Hour))
		s.claim(a, c.name, forward(c.label), c.reverse, c.resolver, a)
		raters = append(raters, a)
	}
	r := s.read(raters...)["primary"]
	if s.holds(r, honest, since); len(r.Credentials) != 1 || len(r.Unknown) != 0 {
		t.Errorf("%+v", r)
	}
	for mode, name := range []string{"reverts", "uses all gas", "10 MB", "bytes that are no string"} {
		s.send(s.resolver, fixtures.NewHostileResolver().PackBecome(uint8(mode)))
		victim := s.d.Account(2).Address
		s.claim(victim, "v.eth", forward("v"), s.resolver, s.at, victim)
		s.past = source.Past{}
		r := s.read(honest, victim)["primary"]
		if mode == 3 { // a listed contract that is not what was declared
			if r.Status != source.StatusOff || !strings.Contains(r.Reason, "first or second") {
				t.Errorf("%s: %s %s", name, r.Status, r.Reason)
			}
			continue
		}
		if r.Status != source.StatusIncomplete || len(r.Unknown) != 1 || r.Unknown[0] != victim ||
			len(r.Credentials) != 1 || r.Credentials[0].Rater != honest {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// A listed resolver without code, as after a self-destruction, turns the source off.
func TestResolverWithoutCode(t *testing.T) {
	s := startNames(t)
	text := strings.ReplaceAll(string(s.policy.Encode()), strings.ToLower(s.resolver.Hex()),
		common.Address{19: 9}.Hex())
	var err error
	s.policy, err = source.Parse([]byte(text))
	ok(t, err)
	if r := s.read(s.from.Address)["primary"]; r.Status != source.StatusOff || !strings.Contains(r.Reason, "second") {
		t.Errorf("%+v", r.State)
	}
}
