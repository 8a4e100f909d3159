package indexer_test

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/contracts"
	"repute/indexer"
	"repute/indexer/node"
	"repute/store"
)

// Follow a chain over one endpoint until its head is stored.
func ExampleFollower_Run() {
	ctx := context.Background()
	db, err := store.Open(ctx, "postgres://localhost/repute", store.Options{Decode: contracts.Read})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	endpoint, err := node.New("http://localhost:8545", node.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer endpoint.Close()
	chain := repute.Chain{ID: 31337, Name: "local", StartBlock: 1,
		Identity:   common.HexToAddress("0x8004A169FB4a3325136EB29fA0ceB6D2e539a432"),
		Reputation: common.HexToAddress("0x8004BAa17C55a88189AE136b182e5fdA19dE9b63")}
	follower := indexer.NewFollower(db, chain, endpoint, indexer.Options{Once: true, Log: slog.Default()})
	if err := follower.Run(ctx); err != nil {
		fmt.Println(err)
	}
}
