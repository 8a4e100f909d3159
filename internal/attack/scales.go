package attack

import (
	"math/big"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/trust"
	"repute/trust/fixed"
	"repute/trust/flow"
	"repute/trust/graph"
	"repute/trust/rating"
)

// ScaleLoss is what an agent with twelve honest ratings loses by six more of raters of full weight who praise it on
// another scale than the tag's: the most that any such way of writing takes, in points. Below 0 all of them add.
type ScaleLoss struct {
	Inferred  float64 `json:"inferred"`
	AsWritten float64 `json:"as_written"` // if all values were on the tag's own scale
}

// Scales measures T20.
func (b *Bench) Scales() (loss ScaleLoss) {
	who := b.fullRaters(18)
	engine := NewEngine(b.World, b.Params)
	loss = ScaleLoss{-200, -200}
	for _, praise := range []struct {
		tag    string
		amount repute.Amount
	}{
		{"starred", repute.Amount{Value: big.NewInt(5)}},
		{"starred", repute.Amount{Value: big.NewInt(10)}},
		{"starred", repute.Amount{Value: big.NewInt(1)}},
		{"successRate", repute.Amount{Value: big.NewInt(1)}},
		{"successRate", repute.Amount{Value: big.NewInt(98), Decimals: 2}},
	} {
		for _, others := range []int{0, 10} { // ratings of each by which its scale may be known
			e := engine.Evidence(b.World.Next())
			for i, p := range who[:12] {
				e.Rows = append(e.Rows, RowOf(i, Rating{p, 0, 0.85, b.World.Now}))
			}
			r := graph.NewReader(e.Block, []flow.Root{{Address: Address(who[0]), Weight: fixed.One}}, nil, b.Params)
			var more []rating.Row
			for i, p := range who[12:] {
				row := RowOf(100+i, Rating{p, 0, 1, b.World.Now})
				row.Tag1, row.Amount = praise.tag, praise.amount
				more = append(more, row)
				for n := range others {
					token := repute.TokenID{uint64(n)}
					r.Agent(token, 0, Address(n), common.Address{})
					r.Rating(token, row)
				}
			}
			r.Build()
			e.Scales = r.Scales()
			before := trust.Score(e, b.Params).Mean
			e.Rows = append(e.Rows, more...)
			loss.Inferred = max(loss.Inferred, points(before-trust.Score(e, b.Params).Mean))
			e.Scales = nil
			loss.AsWritten = max(loss.AsWritten, points(before-trust.Score(e, b.Params).Mean))
		}
	}
	return loss
}
