package trust_test

import (
	"fmt"
	"log"

	"github.com/ethereum/go-ethereum/common"

	"repute/trust"
)

// Trust starts at a root and reaches the rater that the root rates well. A rater that no
// root leads to has no weight.
func ExampleGraph_Walk() {
	root, rater, stranger := common.HexToAddress("0x01"), common.HexToAddress("0x02"), common.HexToAddress("0x03")
	b := trust.NewGraphBuilder()
	b.Vouch(b.Add(root), b.Add(rater), trust.One)
	b.Add(stranger)

	params, err := trust.DefaultParams()
	if err != nil {
		log.Fatal(err)
	}
	weights := b.Build().Walk([]trust.Root{{Address: root, Weight: trust.One}}, params)
	for _, a := range []common.Address{rater, stranger} {
		_, weight := weights.Rater(a)
		fmt.Println(weight > 0)
	}
	// Output:
	// true
	// false
}
