package replay

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"pgregory.net/rapid"

	"repute"
	"repute/trust"
	"repute/trust/fixed"
	"repute/trust/rating"
)

// Whatever was entered since, what counted at the time of a manifest is found again.
func TestManifestRestoresPayments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raters := rapid.IntRange(1, 6).Draw(t, "raters")
		entry := rapid.Custom(func(t *rapid.T) repute.RatingPayment {
			return repute.RatingPayment{Client: address(rapid.IntRange(0, raters).Draw(t, "client")),
				Index: uint64(rapid.IntRange(1, 2).Draw(t, "index")),
				Paid:  repute.Micros(rapid.IntRange(0, 3).Draw(t, "paid") * 1e6)}
		})
		ledger := rapid.SliceOfN(entry, 0, 30).Draw(t, "ledger")
		e := trust.Evidence{}
		for i := range raters { // nobody knows a rating of the last one
			e.Rows = append(e.Rows, rating.Row{Rater: address(i), Index: 1}, rating.Row{Rater: address(i), Index: 2})
		}
		var states [][]rating.Row
		var manifests []Manifest
		note := func() {
			states, manifests = append(states, slices.Clone(e.Rows)), append(manifests, ManifestOf(&e))
		}
		note()
		for _, l := range ledger {
			for i := range e.Rows {
				if r := &e.Rows[i]; r.Rater == l.Client && r.Index == l.Index {
					r.Paid = rating.Dollars(l.Paid)
				}
			}
			note()
		}
		now := slices.Clone(e.Rows)
		for i, m := range manifests {
			e.Rows = slices.Clone(now)
			if err := m.Apply(&e, func() ([]repute.RatingPayment, error) { return ledger, nil }); err != nil {
				t.Fatalf("entry %d of %d: %v", i, len(ledger), err)
			}
			if fmt.Sprint(e.Rows) != fmt.Sprint(states[i]) ||
				m.Rebuild(&e).Paid != nil && *m.Rebuild(&e).Paid != *m.Paid {
				t.Fatalf("entry %d of %d: %v, want %v", i, len(ledger), e.Rows, states[i])
			}
		}
	})
}

// A ledger that tells other payments, and one without any, is found out.
func TestManifestFindsOtherPayments(t *testing.T) {
	e := trust.Evidence{Rows: []rating.Row{{Rater: address(1), Index: 1, Paid: fixed.One}}}
	m := ManifestOf(&e)
	e.Rows[0].Paid = 0
	for _, ledger := range [][]repute.RatingPayment{nil, {{Client: address(1), Index: 1, Paid: 2e6}},
		{{Client: address(1), Index: 2, Paid: 1e6}}} {
		var pruned *PrunedError
		if err := m.Apply(&e, func() ([]repute.RatingPayment, error) { return ledger, nil }); !errors.As(err, &pruned) {
			t.Errorf("%v: %v", ledger, err)
		}
	}
	none := Manifest{Paid: &ManifestPaid{}}
	if err := none.Apply(&e, func() ([]repute.RatingPayment, error) { return nil, nil }); err == nil {
		t.Error("a count of no payments was believed")
	}
}

// A manifest from before, which lists its payments, is read, and is the same when it is
// made again.
func TestManifestThatListsPayments(t *testing.T) {
	body := fmt.Sprintf(`{"payments":[{"rater":"%s","index":2,"paid":4294967296}]}`, strings.ToLower(address(3).Hex()))
	m, err := DecodeManifest([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	e := trust.Evidence{Rows: []rating.Row{{Rater: address(3), Index: 1, Paid: fixed.One},
		{Rater: address(3), Index: 2}}}
	if err := m.Apply(&e, nil); err != nil || e.Rows[0].Paid != 0 || e.Rows[1].Paid != fixed.One {
		t.Errorf("%v, %v", e.Rows, err)
	}
	if again := string(m.Rebuild(&e).Encode()); again != body {
		t.Errorf("made again: %s, want %s", again, body)
	}
}

// A thousand payments to one agent, each of which makes a manifest, take no megabyte.
func TestManifestsGrowSlowly(t *testing.T) {
	total, e := 0, trust.Evidence{}
	for i := range 1000 {
		e.Rows = append(e.Rows, rating.Row{Rater: address(i), Index: 1, Paid: fixed.One})
		total += len(ManifestOf(&e).Encode())
	}
	if t.Logf("%d bytes", total); total > 1<<20 {
		t.Errorf("%d bytes of manifests", total)
	}
}

// address is the n-th of the addresses that the tests use.
func address(n int) common.Address { return common.BigToAddress(big.NewInt(int64(n) + 1)) }
