package missing_test

import (
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/indexer/verify/missing"
)

// A registry counts five ratings of a client, and four are stored: the gap says which event is
// missing, and the searches ask a node for the logs of that agent and client.
func Example() {
	chain := repute.Chain{ID: 1, Reputation: common.HexToAddress("0x02")}
	client := common.HexToAddress("0xc1")
	var agent repute.TokenID
	agent.SetUint64(7)
	gap := missing.OfClient(repute.KindNewFeedback, agent, client, repute.BlockRange{From: 100, To: 200},
		"getLastIndex is 5, stored 4")
	fmt.Println(gap.Kind, gap.Subject, gap.Blocks)
	for _, s := range missing.Searches(chain, gap) {
		fmt.Println(len(s.Addresses), "address,", len(s.Topics), "places of topics")
	}
	// Output:
	// NewFeedback 7/0x00000000000000000000000000000000000000C1 {100 200}
	// 1 address, 3 places of topics
}
