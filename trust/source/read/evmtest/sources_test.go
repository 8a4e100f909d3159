package evmtest

import (
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/accounts/abi/bind/v2"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
	"repute/contracts/bindings/fixtures"
	"repute/devnet"
	"repute/indexer/node"
	"repute/trust/source"
	"repute/trust/source/read"
)

const policyText = `
version: "1"
multicall: "$multicall"
classes:
  A: {weight: 0.5, praise: 6, blame: 3}
  B: {weight: 0.5, praise: 3, blame: 2}
  C: {weight: 0.1, inAll: true, praise: 1, blame: 0.5}
all: {praise: 7, blame: 3}
budget: {agents: 20, days: 90}
defaults: [{chain: 31337, sources: [indexed, logged, book, token, names]}]
sources:
  - &one
    id: indexed
    version: 1
    name: Attestations by an indexer
    issuer: the test
    meaning: was attested
    class: A
    weight: 0.25
    maturityDays: 1
    ageDays: 30
    keepDays: 1
    bounds: {praise: 3, blame: 2}
    homes:
      - chain: 31337
        contracts: {indexer: {address: "$registry"}, registry: {address: "$registry"}}
    read:
      eas: &eas
        attester: ["$attester"]
        schema: {id: "$schema", text: bool member, resolver: "$registry", revocable: true}
  - <<: *one
    id: logged
    homes: [{chain: 31337, contracts: {registry: {address: "$registry"}}}]
    read: {eas: {<<: *eas, logs: true}}
  - <<: *one
    id: book
    homes: [{chain: 31337, contracts: {book: {address: "$book", implementations: [first-seen]}}}]
    read:
      calls:
        - contract: book
          function: lookupHuman(address) returns (uint256 humanId)
          arguments: [rater]
          holds: [{value: humanId, notZero: true}]
      person: humanId
      keepFirst: true
      events:
        - contract: book
          event: AgentRegistered(address indexed agent, uint256 indexed humanId)
          rater: agent
          person: humanId
          means: issued
  - <<: *one
    id: token
    homes: [{chain: 31337, contracts: {token: {address: "$token"}}}]
    read:
      calls:
        - contract: token
          function: balanceOf(address) returns (uint256 tokens)
          arguments: [rater]
          holds: [{value: tokens, notZero: true}]
        - contract: token
          function: tokenIdOf(address) returns (uint256 token)
          arguments: [rater]
      person: token
      events:
        - {contract: token, event: "Attest(address indexed to, uint256 indexed id)", rater: to, person: id, means: issued}
        - {contract: token, event: "Revoke(address indexed from, uint256 indexed id)", rater: from, person: id, means: revoked}
        - {contract: token, event: "Burn(address indexed from, uint256 indexed id)", rater: from, person: id, means: revoked}
  - <<: *one
    id: names
    homes: [{chain: 31337, contracts: {names: {address: "$names"}}}]
    read:
      calls:
        - contract: names
          function: balanceOf(address) returns (uint256 count)
          arguments: [rater]
          holds: [{value: count, notZero: true}]
      events:
        - &gained
          contract: names
          event: Transfer(address indexed from, address indexed to, uint256 indexed id)
          rater: to
          person: id
          means: issued
        - {<<: *gained, rater: from, means: revoked}
`

// chain is a node with the contracts of the policy.
type chain struct {
	t        *testing.T
	d        *devnet.Devnet
	from     devnet.Account
	text     string // of the policy
	policy   *source.Policy
	reader   *read.Reader
	schema   common.Hash
	registry common.Address
	book     common.Address
	impl     common.Address // what the book delegates to
	token    common.Address
	names    common.Address
	past     source.Past
}

func start(t *testing.T) *chain {
	t.Helper()
	d, err := devnet.Start(t.Context(), devnet.Options{})
	ok(t, err)
	t.Cleanup(func() { _ = d.Close() })
	c := &chain{t: t, d: d, from: d.Account(0)}
	multicall := c.create(&fixtures.MulticallMetaData, nil)
	c.registry = c.create(&fixtures.AttestationsMetaData, nil)
	c.impl = c.create(&fixtures.BookMetaData, nil)
	c.book = c.create(&fixtures.OpenProxyMetaData, fixtures.NewOpenProxy().PackConstructor(c.impl))
	c.token = c.create(&fixtures.BoundTokenMetaData, nil)
	c.names = c.create(&fixtures.NamesMetaData, nil)
	c.schema = crypto.Keccak256Hash([]byte("bool member"), c.registry[:], []byte{1})
	c.text = strings.NewReplacer("$multicall", multicall.Hex(), "$registry", c.registry.Hex(),
		"$attester", c.from.Address.Hex(), "$schema", c.schema.Hex(), "$book", c.book.Hex(), "$token", c.token.Hex(),
		"$names",
		c.names.Hex()).Replace(policyText)
	c.policy, err = source.Parse([]byte(c.text))
	ok(t, err)
	n, err := node.New(d.RPCURL(), node.Options{})
	ok(t, err)
	pool := node.NewPool([]*node.Node{n}, node.PoolOptions{ChainID: 31337})
	t.Cleanup(pool.Close)
	c.reader, err = read.New(multicall, map[uint64]*node.Pool{31337: pool})
	ok(t, err)
	return c
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (c *chain) create(meta *bind.MetaData, constructor []byte) common.Address {
	c.t.Helper()
	b := c.d.Batch()
	b.Send(c.from, nil, append(common.FromHex(meta.Bin), constructor...))
	mined, err := b.Mine(c.t.Context())
	ok(c.t, err)
	return mined.Receipts[0].ContractAddress
}

// send makes calls in one block.
func (c *chain) send(to common.Address, calls ...[]byte) devnet.Mined {
	c.t.Helper()
	b := c.d.Batch()
	for _, data := range calls {
		b.Send(c.from, &to, data)
	}
	mined, err := b.Mine(c.t.Context())
	ok(c.t, err)
	return mined
}

// attest attests a rater and returns the attestation's uid.
func (c *chain) attest(a common.Address, expires uint64) common.Hash {
	mined := c.send(c.registry, fixtures.NewAttestations().PackAttest(c.schema, a, expires, []byte{1}))
	return common.BytesToHash(mined.Receipts[0].Logs[0].Data)
}

// read reads all sources at the newest block, and settles them on what was found before.
func (c *chain) read(raters ...common.Address) map[string]source.Reading {
	c.t.Helper()
	at := c.d.Head()
	readings, err := c.reader.Read(c.t.Context(), 31337, at, c.policy.On(31337), raters, c.past)
	ok(c.t, err)
	past, out := source.Past{}, map[string]source.Reading{}
	for _, r := range readings {
		past.States = append(past.States, r.State)
		r.Credentials = c.policy.Settle(c.past.Credentials, &r)
		past.Credentials = append(past.Credentials, r.Credentials...)
		out[r.Source] = r
	}
	c.past = past
	return out
}

// holds compares who has a credential of a source, and since when; a zero time stands for nobody.
func (c *chain) holds(r source.Reading, rater common.Address, since time.Time) {
	c.t.Helper()
	if r.Status != source.StatusOK {
		c.t.Errorf("%s: %s %s", r.Source, r.Status, r.Reason)
	}
	for _, held := range r.Credentials {
		if held.Rater == rater {
			if held.Issued != uint64(since.Unix()) {
				c.t.Errorf("%s: %s since %d, want %d", r.Source, rater, held.Issued, since.Unix())
			}
			return
		}
	}
	if !since.IsZero() {
		c.t.Errorf("%s: %s has nothing", r.Source, rater)
	}
}

// counts compares why a credential gives no weight at the newest block.
func (c *chain) counts(r source.Reading, rater common.Address, want source.Why) {
	c.t.Helper()
	for _, held := range r.Credentials {
		if held.Rater == rater {
			if got := c.policy.Counts(&held, uint64(c.d.Head().Time.Unix())); got != want {
				c.t.Errorf("%s: %s is %q, want %q", r.Source, rater, got, want)
			}
			return
		}
	}
	c.t.Errorf("%s: %s has nothing", r.Source, rater)
}

// later makes a block days after the last one.
func (c *chain) later(days int) {
	c.t.Helper()
	_, err := c.d.MineAt(c.t.Context(), c.d.Head().Time.Add(time.Duration(days)*24*time.Hour))
	ok(c.t, err)
}

// Attestations are found by an indexer and by logs alike: issued, matured, revoked, expired, attested anew.
func TestAttestations(t *testing.T) {
	c := start(t)
	alice, bob, nobody := c.d.Account(1).Address, c.d.Account(2).Address, c.d.Account(3).Address
	uid := c.attest(alice, 0)
	issued := c.d.Head().Time
	c.attest(bob, uint64(issued.Add(3*24*time.Hour).Unix()))
	bobs := c.d.Head().Time
	both := func(f func(r source.Reading)) {
		t.Helper()
		all := c.read(alice, bob, nobody)
		f(all["indexed"])
		f(all["logged"])
	}
	both(func(r source.Reading) {
		c.holds(r, alice, issued)
		c.holds(r, bob, bobs)
		c.holds(r, nobody, time.Time{})
		c.counts(r, alice, source.WhyMaturing)
	})
	c.later(2)
	both(func(r source.Reading) { c.counts(r, alice, ""); c.counts(r, bob, "") })
	c.later(2)
	both(func(r source.Reading) { c.counts(r, alice, ""); c.counts(r, bob, source.WhyExpired) })
	verified, err := c.reader.Verify(t.Context(), 31337, c.d.Head(), c.policy.On(31337), c.past)
	if ok(t, err); verified.Credentials != 4 || len(verified.Differences)+len(verified.Unchecked) != 0 {
		t.Errorf("%+v", verified)
	}
	stored := c.past
	stored.Credentials[0].Issued++
	verified, err = c.reader.Verify(t.Context(), 31337, c.d.Head(), c.policy.On(31337), stored)
	if ok(t, err); len(verified.Differences) != 1 || !strings.Contains(verified.Differences[0].What, "issued at") {
		t.Errorf("a stored time that is wrong: %+v", verified)
	}
	c.send(c.registry, fixtures.NewAttestations().PackRevoke(uid))
	all := c.read(alice, bob)
	c.counts(all["indexed"], alice, source.WhyRevoked)
	c.holds(all["logged"], alice, time.Time{})
	c.attest(alice, 0)
	again := c.d.Head().Time
	both(func(r source.Reading) { c.holds(r, alice, again) })
	verified, err = c.reader.Verify(t.Context(), 31337, c.d.Head(), c.policy.On(31337), c.past)
	if ok(t, err); len(verified.Differences) != 0 {
		t.Errorf("%+v", verified)
	}
}

// Binding, binding by somebody else, an upgrade of the proxy and a way back.
func TestBook(t *testing.T) {
	c := start(t)
	alice := c.d.Account(1).Address
	book := fixtures.NewBook()
	c.send(c.book, book.PackRegister(alice, big.NewInt(7)))
	issued := c.d.Head().Time
	person := func(want int64) {
		t.Helper()
		r := c.read(alice)["book"]
		c.holds(r, alice, issued)
		if len(r.Credentials) == 1 && r.Credentials[0].Subject != common.BigToHash(big.NewInt(want)) {
			t.Errorf("person %s", r.Credentials[0].Subject)
		}
	}
	person(7)
	c.send(c.book, book.PackRegister(alice, big.NewInt(66)))
	person(7)
	c.past = source.Past{States: c.past.States} // another machine, which has the pins
	person(7)
	other := c.create(&fixtures.BookMetaData, nil)
	c.send(c.book, fixtures.NewOpenProxy().PackUpgrade(other))
	for range 2 {
		if r := c.read(alice)["book"]; r.Status != source.StatusOff || !strings.Contains(r.Reason, other.Hex()) ||
			len(r.Credentials) != 0 {
			t.Errorf("upgraded: %+v", r)
		}
	}
	c.send(c.book, fixtures.NewOpenProxy().PackUpgrade(c.impl))
	person(7)
}

// A token that is revoked, minted anew, burnt; and a source whose call reverts for those who have none.
func TestToken(t *testing.T) {
	c := start(t)
	alice, bob := c.d.Account(1).Address, c.d.Account(2).Address
	token := fixtures.NewBoundToken()
	c.send(c.token, token.PackAttest(alice), token.PackAttest(bob))
	issued := c.d.Head().Time
	r := c.read(alice, bob)["token"]
	c.holds(r, alice, issued)
	c.holds(r, bob, issued)
	c.send(c.token, token.PackRevoke(alice))
	r = c.read(alice, bob)["token"]
	c.holds(r, alice, time.Time{})
	c.holds(r, bob, issued)
	c.send(c.token, token.PackAttest(alice))
	again := c.d.Head().Time
	c.holds(c.read(alice, bob)["token"], alice, again)
	c.send(c.token, token.PackRevoke(alice), token.PackAttest(alice))
	c.holds(c.read(alice, bob)["token"], alice, c.d.Head().Time)
}

// A name is as old as its last transfer.
func TestNames(t *testing.T) {
	c := start(t)
	alice, bob := c.d.Account(1).Address, c.d.Account(2).Address
	names := fixtures.NewNames()
	c.send(c.names, names.PackGive(alice, big.NewInt(1)))
	first := c.d.Head().Time
	c.later(1)
	c.send(c.names, names.PackGive(alice, big.NewInt(2)))
	second := c.d.Head().Time
	c.holds(c.read(alice, bob)["names"], alice, first)
	c.later(1)
	c.send(c.names, names.PackGive(bob, big.NewInt(1)))
	r := c.read(alice, bob)["names"]
	c.holds(r, alice, second)
	c.holds(r, bob, c.d.Head().Time)
}

// A block that the chain has left is not read.
func TestReorganised(t *testing.T) {
	c := start(t)
	gone := c.d.Head()
	_, err := c.d.Mine(t.Context())
	ok(t, err)
	ok(t, c.d.Reorg(t.Context(), 3, 5))
	readings, err := c.reader.Read(t.Context(), 31337,
		repute.Block{Number: gone.Number, Hash: gone.Hash, Time: gone.Time},
		c.policy.On(31337), []common.Address{c.from.Address}, source.Past{})
	ok(t, err)
	for _, r := range readings {
		if r.Status != source.StatusIncomplete || len(r.Unknown) != 1 {
			t.Errorf("%+v", r)
		}
	}
}
