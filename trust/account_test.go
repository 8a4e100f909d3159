package trust

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"repute"
	"repute/trust/fixed"
	"repute/trust/flow"
	"repute/trust/rating"
)

// An account to which ratings are added block by block, and from which some are removed, gives the same score as all of
// them together, for raters of any weight, equal words in one block, praise before the owner and rows that do not
// count.
func TestAccountGrows(t *testing.T) {
	t.Parallel()
	p, err := rating.DefaultParams()
	if err != nil {
		t.Fatal(err)
	}
	b := flow.NewGraphBuilder()
	for i := range 6 {
		b.Vouch(b.Add(address(i)), b.Add(address(i+1)), fixed.One)
	}
	for i := 7; i < 14; i++ {
		b.Rates(b.Add(address(i))) // without weight
	}
	walked := b.Build().Walk([]flow.Root{{Address: address(0), Weight: fixed.One},
		{Address: address(2), Weight: fixed.One}}, p.Walk)
	credits := map[flow.Node][]flow.Credit{}
	for i := 5; i < 10; i++ {
		credits[walked.Graph().Node(address(i))] = []flow.Credit{{Source: i % 4, Weight: fixed.One / 2,
			Person: uint32(i / 8)}}
	}
	credited := walked.WithCredits(testRules, credits)
	crowds, removed := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		w := rapid.SampledFrom([]*flow.Weights{walked, credited}).Draw(t, "weights")
		s := NewScorer(w, p)
		all := Evidence{Owner: address(20), Weights: w, Since: rapid.Uint64Range(0, 3).Draw(t, "since")}
		all.Named = append(all.Named, address(5))
		var account *Account
		grown := 0
		for block := uint64(1); block <= 12; block++ {
			at := time.Unix(1_750_000_000+int64(block)*86_400, 0)
			var rows []rating.Row
			for i := range rapid.IntRange(0, 5).Draw(t, "ratings") {
				tag := rapid.SampledFrom([]string{"starred", "uptime", "nobody knows"}).Draw(t, "tag")
				rows = append(rows, rating.Row{Block: block, LogIndex: uint32(9 - i), Time: at.Unix(),
					Index: block*10 + uint64(i),
					Rater: address(rapid.IntRange(0, 20).Draw(t, "rater")), Tag1: tag,
					Amount: repute.Amount{Value: bigInt(rapid.SampledFrom([]int64{0, 20, 60, 90, 100}).Draw(t,
						"value"))}})
			}
			view := all
			view.Block, view.Rows = repute.Block{Number: block, Time: at}, rows
			all.Block, all.Rows = view.Block, append(all.Rows, rows...)
			switch {
			case account == nil && len(rows) > 0:
				account = s.NewAccount(&view)
			case account != nil && rapid.Bool().Draw(t, "again"): // else with the rows of the next block
				late := view
				late.Rows = all.Rows[grown:]
				if !account.Continues(&late) {
					t.Fatal("the account does not continue")
				}
				account.Add(&late)
			default:
				continue
			}
			if account != nil && rapid.IntRange(0, 2).Draw(t, "revoke") == 0 {
				switch gone := revocable(t, all.Rows); {
				case gone < 0:
				case account.Remove(&view, all.Rows[gone:gone+1]):
					all.Rows, removed = slices.Concat(all.Rows[:gone], all.Rows[gone+1:]), removed+1
				default:
					all.Rows = slices.Concat(all.Rows[:gone], all.Rows[gone+1:])
					account = s.NewAccount(&all)
				}
			}
			grown = len(all.Rows)
			if got, want := s.ScoreAccount(account, view), s.Score(all); !reflect.DeepEqual(got, want) {
				t.Fatalf("got %+v\nwant %+v", got, want)
			}
		}
		if account != nil && grown > 0 && lenOf(account) != grown {
			t.Fatalf("%d rows, want %d", lenOf(account), grown)
		}
		if account != nil && account.crowd.size > 0 && len(account.crowd.lone) > account.crowd.size {
			crowds++ // a rater left it
		}
	})
	if crowds == 0 || removed == 0 {
		t.Errorf("raters of %d crowds rated again, and %d ratings were removed: the test shows less than it should",
			crowds, removed)
	}
}

// revocable draws a row that has other words than all others of its block, -1 for none.
func revocable(t *rapid.T, rows []rating.Row) int {
	if len(rows) == 0 {
		return -1
	}
	at := rapid.IntRange(0, len(rows)-1).Draw(t, "gone")
	for i, r := range rows {
		one := &rows[at]
		if i != at && r.Block == one.Block && r.Tag1 == one.Tag1 && r.Content == one.Content &&
			r.Amount.Value.Cmp(one.Amount.Value) == 0 {
			return -1
		}
	}
	return at
}

// lenOf returns the number of rows of an account, including rows that do not count.
func lenOf(a *Account) int { return a.account.rows() + a.account.excluded }
