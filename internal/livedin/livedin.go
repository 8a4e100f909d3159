// Package livedin starts a real chain on which every event of the registries happened, for tests that compare an index
// with a node. It is apart from package rpctest, whose scripted chains do not need the whole of go-ethereum.
package livedin

import (
	"fmt"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"repute/devnet"
)

// New starts a chain on which every event the registries emit happens at least three times, in blocks with other events
// and alone. It ends with the test. Six empty blocks follow, more than FinalizedDepth, so that every event is final.
// The chain takes seconds to make: tests of a package should share one.
func New(t *testing.T) *devnet.Devnet {
	t.Helper()
	dn, err := devnet.Start(t.Context(), devnet.Options{SafeDepth: 2, FinalizedDepth: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dn.Close() })
	mine := func(fill func(b *devnet.Batch)) {
		t.Helper()
		b := dn.Batch()
		fill(b)
		if _, err := b.Mine(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	owner, client := func(i int) devnet.Account { return dn.Account(i) },
		func(i int) devnet.Account { return dn.Account(20 + i) }
	rate := func(b *devnet.Batch, c int, agent uint64, value int64) {
		b.GiveFeedback(client(c), devnet.Rating{Agent: agent, Value: big.NewInt(value), Decimals: uint8(value % 3),
			Tag1: "t", Tag2: "u"})
	}
	for i := range 4 {
		mine(func(b *devnet.Batch) {
			b.Register(owner(i), fmt.Sprintf("https://a/%d", i), devnet.Metadata{Key: "k", Value: []byte{byte(i)}})
			b.RegisterBare(owner(i))
		})
	}
	for round := range 3 {
		for i := range 3 {
			mine(func(b *devnet.Batch) {
				b.SetAgentURI(owner(i), uint64(2*i), fmt.Sprintf("https://b/%d/%d", i, round))
				rate(b, round, uint64(2*i), int64(10*round+i))
				rate(b, 5, uint64(2*i), int64(7*round+i))
			})
			mine(func(b *devnet.Batch) { b.SetMetadata(owner(i), uint64(2*i), "k", []byte{1, byte(round), byte(i)}) })
			mine(func(b *devnet.Batch) { b.Approve(owner(i), uint64(2*i), client(round).Address) })
			mine(func(b *devnet.Batch) { b.ApproveAll(owner(i), client(9).Address, round != 1) })
			hash := common.BigToHash(big.NewInt(int64(1 + 10*round + i)))
			mine(func(b *devnet.Batch) {
				b.ValidationRequest(owner(i), client(7).Address, uint64(2*i), "https://job", hash)
			})
			mine(func(b *devnet.Batch) {
				b.ValidationResponse(client(7),
					devnet.ValidationAnswer{Request: hash, Response: uint8(40 + i), Tag: "soft"})
				b.AppendResponse(client(8), uint64(2*i), client(5).Address, uint64(round+1), "https://r",
					common.Hash{1})
			})
			mine(func(b *devnet.Batch) {
				b.ValidationResponse(client(7),
					devnet.ValidationAnswer{Request: hash, Response: uint8(60 + i), Tag: "hard"})
			})
		}
		mine(func(b *devnet.Batch) { b.RevokeFeedback(client(5), 0, uint64(round+1)) })
		mine(func(b *devnet.Batch) { b.Transfer(owner(round), uint64(2*round+1), owner(round+1).Address) })
	}
	mine(func(b *devnet.Batch) { b.Transfer(owner(1), 1, owner(2).Address) })
	for range 6 {
		mine(func(*devnet.Batch) {})
	}
	return dn
}
