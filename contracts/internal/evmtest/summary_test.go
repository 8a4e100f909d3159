package evmtest

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"repute"
)

func big10(s string) *big.Int {
	v, ok := new(big.Int).SetString(s, 10)
	if !ok {
		panic(s)
	}
	return v
}

// The known results of getSummary: a mean in the most frequent decimals, cut off
// toward zero twice, then to 128 bits.
func TestSummaryVectors(t *testing.T) {
	w := newWorld(t)
	huge := "100000000000000000000000000000000000000"
	type given struct {
		value    string
		decimals uint8
	}
	for _, c := range []struct {
		items    []given
		value    string
		decimals uint8
	}{
		{[]given{{"80", 0}, {"90", 0}, {"100", 0}}, "90", 0},
		{[]given{{"-1", 0}, {"-2", 0}}, "-1", 0},
		{[]given{{"1", 0}, {"2", 0}}, "1", 0},
		{[]given{{"9977", 2}, {"87", 0}}, "93", 0},
		{[]given{{"9977", 2}, {"9950", 2}, {"87", 0}}, "9542", 2},
		{[]given{{"9977", 2}, {"87", 0}, {"88", 0}}, "91", 0},
		{[]given{{"-32", 1}, {"15", 1}}, "-8", 1},
		{[]given{{"1", 18}, {"2", 18}}, "1", 18},
		{[]given{{huge, 0}, {"1", 18}, {"1", 18}, {"1", 18}}, "84405691410724684722613637093456347136", 18},
		{[]given{{"-" + huge, 0}, {"1", 18}, {"1", 18}, {"1", 18}}, "-84405691410724684722613637093456347135", 18},
		{[]given{{huge, 0}, {"5", 1}, {"5", 1}}, "-6949033587605130130041274098434878120", 1},
	} {
		t.Run(fmt.Sprint(c.items), func(t *testing.T) {
			at := *w
			at.t = t
			id := at.register(owner, "")
			for _, g := range c.items {
				at.rate(client, id, opinion{big10(g.value), g.decimals, "", ""})
			}
			count := uint64(len(c.items))
			at.wantSummary(at.summary(id, "", "", client.addr), count, big10(c.value), c.decimals)
			// A client listed twice counts twice.
			at.wantSummary(at.summary(id, "", "", client.addr, client.addr), 2*count, big10(c.value), c.decimals)
		})
	}
}

func TestSummaryFilters(t *testing.T) {
	w := newWorld(t)
	id := w.register(owner, "")
	w.wantRevert("clientAddresses required", owner, w.reputation, reputationABI.PackGetSummary(id, nil, "", ""))
	w.rate(client, id, opinion{n(10), 0, "a", "x"})
	w.rate(client, id, opinion{n(20), 0, "a", "y"})
	w.rate(client, id, opinion{n(90), 0, "b", "x"})
	w.rate(stranger, id, opinion{n(-40), 0, "", ""})
	c, s := client.addr, stranger.addr
	for _, f := range []struct {
		tag1, tag2 string
		clients    []common.Address
		count      uint64
		value      int64
	}{
		{"", "", []common.Address{c}, 3, 40},
		{"", "", []common.Address{c, s}, 4, 20},
		{"", "", []common.Address{s, c, s}, 5, 8},
		{"a", "", []common.Address{c, s}, 2, 15},
		{"", "x", []common.Address{c, s}, 2, 50},
		{"a", "y", []common.Address{c, s}, 1, 20},
		{"A", "", []common.Address{c, s}, 0, 0},
		{"", "", []common.Address{wallet.addr}, 0, 0},
	} {
		w.wantSummary(w.summary(id, f.tag1, f.tag2, f.clients...), f.count, n(f.value), 0)
	}
	w.send(client, w.reputation, reputationABI.PackRevokeFeedback(id, 3))
	w.wantSummary(w.summary(id, "", "", c), 2, n(15), 0)
	w.wantSummary(w.summary(n(999), "", "", c), 0, n(0), 0)
}

// Of several most frequent decimals the smallest counts, whatever came first.
func TestSummaryMode(t *testing.T) {
	w := newWorld(t)
	id := w.register(owner, "")
	w.rate(client, id, opinion{n(500), 2, "", ""})
	w.rate(client, id, opinion{n(50), 1, "", ""})
	w.wantSummary(w.summary(id, "", "", client.addr), 2, n(50), 1)
	w.rate(client, id, opinion{n(500), 2, "", ""})
	w.wantSummary(w.summary(id, "", "", client.addr), 3, n(500), 2)
}

// The arithmetic of package repute gives what the contract gives, for values of
// every size and sign in any mix of decimals.
func TestSummaryEqualsTheContract(t *testing.T) {
	w := newWorld(t)
	random := rand.New(rand.NewPCG(1, 2))
	for range 12 {
		id := w.register(owner, "")
		var tallies []repute.Tally
		for range 1 + random.IntN(7) {
			o := opinion{value: anyValue(random), decimals: uint8(random.IntN(4)) * 6}
			w.rate(client, id, o)
			tallies = append(tallies, repute.Tally{Decimals: o.decimals, Count: 1, Sum: o.value})
		}
		got := repute.Summarize(tallies)
		w.wantSummary(w.summary(id, "", "", client.addr), got.Count, got.Value, got.Decimals)
	}
}

// anyValue gives a value up to 10^38 of either sign, small ones as likely as huge.
func anyValue(random *rand.Rand) *big.Int {
	v := new(big.Int).Exp(n(10), n(random.Int64N(38)), nil)
	v.Mul(v, n(random.Int64N(11)))
	if random.IntN(2) == 0 {
		v.Neg(v)
	}
	return v
}
