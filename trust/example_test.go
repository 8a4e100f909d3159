package trust_test

import (
	"fmt"
	"log"

	"github.com/ethereum/go-ethereum/common"

	"repute/trust/fixed"
	"repute/trust/flow"
	"repute/trust/rating"
)

// Trust starts at a root and reaches the rater that the root rates well. A rater that no
// root leads to has no weight.
func ExampleGraph_Walk() {
	root, rater, stranger := common.HexToAddress("0x01"), common.HexToAddress("0x02"), common.HexToAddress("0x03")
	b := flow.NewGraphBuilder()
	b.Vouch(b.Add(root), b.Add(rater), fixed.One)
	b.Add(stranger)

	params, err := rating.DefaultParams()
	if err != nil {
		log.Fatal(err)
	}
	weights := b.Build().Walk([]flow.Root{{Address: root, Weight: fixed.One}}, params.Walk)
	for _, a := range []common.Address{rater, stranger} {
		_, weight := weights.Rater(a)
		fmt.Println(weight > 0)
	}
	// Output:
	// true
	// false
}
