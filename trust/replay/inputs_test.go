package replay

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"pgregory.net/rapid"

	"repute"
)

// The canonical bytes of a set do not depend on the order of its entries and give back
// what counts.
func TestRootsAreCanonical(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var roots []repute.TrustRoot
		for i := range rapid.IntRange(0, 8).Draw(t, "roots") {
			r := repute.TrustRoot{Address: common.Address{19: byte(rapid.IntRange(1, 5).Draw(t, "address")),
				1: byte(i % 2)},
				Weight: rapid.Uint64Range(1, 5*repute.RootUnit).Draw(t, "weight"),
				Reason: rapid.String().Draw(t, "reason")}
			if n := rapid.Int64Range(0, 100).Draw(t, "expires"); n > 50 {
				r.Expires = time.Unix(n, 0).UTC()
			}
			roots = append(roots, r)
		}
		body := EncodeRoots(roots)
		shuffled := slices.Clone(roots)
		rand.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if again := EncodeRoots(shuffled); !bytes.Equal(body, again) {
			t.Fatalf("another order gives\n%s\nnot\n%s", again, body)
		}
		back, err := DecodeRoots(body)
		if err != nil {
			t.Fatal(err)
		}
		if again := EncodeRoots(back); !bytes.Equal(body, again) {
			t.Fatalf("read back it is\n%s\nnot\n%s", again, body)
		}
	})
}

// A list of gateways is named by chain and addresses in any order, and an empty one by nothing.
func TestGatewaysAreCanonical(t *testing.T) {
	a, b := common.Address{1}, common.Address{2}
	one := EncodeGateways(5, []common.Address{a, b})
	if two := EncodeGateways(5, []common.Address{b, a, b}); !bytes.Equal(one, two) ||
		HashInput(one) != HashGateways(5, []common.Address{a, b}) {
		t.Errorf("%s\n%s", one, two)
	}
	if HashGateways(6, []common.Address{a, b}) == HashInput(one) ||
		HashGateways(5, []common.Address{a}) == HashInput(one) {
		t.Error("another chain or list has the same hash")
	}
	if EncodeGateways(5, nil) != nil || HashGateways(5, nil) != (common.Hash{}) {
		t.Error("an empty list is named")
	}
}

// Links have no direction.
func TestLinksAreCanonical(t *testing.T) {
	a, b, c := common.Address{1}, common.Address{2}, common.Address{3}
	one := EncodeLinks([]repute.TrustLink{{A: a, B: b, Reason: "r", Source: "s"},
		{A: c, B: b, Reason: "r", Source: "s"}})
	two := EncodeLinks([]repute.TrustLink{{A: b, B: c, Reason: "r", Source: "s"},
		{A: b, B: a, Reason: "r", Source: "s"},
		{A: a, B: b, Reason: "r", Source: "s"}})
	if !bytes.Equal(one, two) {
		t.Errorf("%s\n%s", one, two)
	}
	back, err := DecodeLinks(one)
	if err != nil || len(back) != 2 || back[1] != (repute.TrustLink{A: b, B: c, Reason: "r", Source: "s"}) {
		t.Errorf("%v, %v", back, err)
	}
	if _, err := DecodeLinks(append(one, '{')); err == nil {
		t.Error("read with something behind it")
	}
	if HashInput(one) == HashInput(EncodeLinks(nil)) {
		t.Error("two sets have one name")
	}
}
