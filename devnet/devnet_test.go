package devnet_test

import (
	"context"
	"errors"
	"math/big"
	"net/url"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/rpc"

	"repute"
	"repute/devnet"
)

func start(t *testing.T, o devnet.Options) *devnet.Devnet {
	t.Helper()
	dn, err := devnet.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dn.Close(); err != nil {
			t.Error(err)
		}
	})
	return dn
}

// ok fails the test on an error and passes on the value.
func ok[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// logs are all logs of the registries, as JSON-RPC gives them.
func logs(t *testing.T, dn *devnet.Devnet) []types.Log {
	t.Helper()
	c := dn.Chain()
	list, err := dn.Client().FilterLogs(t.Context(), ethereum.FilterQuery{
		FromBlock: new(big.Int).SetUint64(c.StartBlock),
		Addresses: append([]common.Address{c.Identity, c.Reputation}, c.Validations...),
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// register mines the registration of n agents by as many accounts.
func register(t *testing.T, dn *devnet.Devnet, n int) devnet.Mined {
	t.Helper()
	b := dn.Batch()
	for i := range n {
		b.Register(dn.Account(i), "https://a.example")
	}
	return ok(b.Mine(t.Context()))(t)
}

func TestStartDeploysRegistries(t *testing.T) {
	t.Parallel()
	dn := start(t, devnet.Options{ChainID: 4242})
	c := dn.Chain()
	if c.ID != 4242 || c.StartBlock != 1 || len(c.Validations) != 1 {
		t.Errorf("chain: %+v", c)
	}
	if id := ok(dn.Client().ChainID(t.Context()))(t); id.Uint64() != 4242 {
		t.Errorf("eth_chainId: %d", id)
	}
	for _, a := range []common.Address{c.Identity, c.Reputation, c.Validations[0]} {
		if code := ok(dn.Client().CodeAt(t.Context(), a, nil))(t); len(code) != 130 {
			t.Errorf("%s has %d bytes of code, not a proxy's 130", a, len(code))
		}
		if code := ok(dn.Client().CodeAt(t.Context(), a, new(big.Int).SetUint64(c.StartBlock-1)))(t); len(code) != 0 {
			t.Errorf("%s exists before the start block", a)
		}
	}
	if n := len(logs(t, dn)); n != 15 { // Upgraded, OwnershipTransferred, Initialized, Upgraded, Initialized each
		t.Errorf("%d deployment logs, want 15", n)
	}
	if ids := register(t, dn, 3).Registered(); len(ids) != 3 || ids[0] != 0 || ids[2] != 2 {
		t.Errorf("registered %v", ids)
	}
	if n := ok(dn.View().AgentCount(t.Context()))(t); n != 3 {
		t.Errorf("agent count %d", n)
	}
}

func TestJSONRPC(t *testing.T) {
	t.Parallel()
	dn := start(t, devnet.Options{})
	for _, url := range []string{dn.RPCURL(), dn.WSURL()} {
		client := ok(rpc.DialContext(t.Context(), url))(t)
		defer client.Close()
		var raw []struct {
			BlockNumber    string
			BlockTimestamp string
		}
		query := map[string]any{"fromBlock": "0x1", "address": dn.Chain().Identity}
		if err := client.CallContext(t.Context(), &raw, "eth_getLogs", query); err != nil {
			t.Fatal(err)
		}
		if len(raw) != 5 || raw[0].BlockTimestamp == "" || raw[0].BlockTimestamp == "0x0" {
			t.Errorf("%s: logs %+v", url, raw)
		}
	}
}

func TestFinalityTags(t *testing.T) {
	t.Parallel()
	dn := start(t, devnet.Options{SafeDepth: 2, FinalizedDepth: 5})
	for dn.Head().Number < 9 {
		ok(dn.Mine(t.Context()))(t)
	}
	for tag, want := range map[rpc.BlockNumber]uint64{
		rpc.LatestBlockNumber: 9, rpc.SafeBlockNumber: 7, rpc.FinalizedBlockNumber: 4,
	} {
		h := ok(dn.Client().HeaderByNumber(t.Context(), big.NewInt(int64(tag))))(t)
		if h.Number.Uint64() != want {
			t.Errorf("%s is block %d, want %d", tag, h.Number, want)
		}
	}
}

func TestNewHeadsOverWebSocket(t *testing.T) {
	t.Parallel()
	dn := start(t, devnet.Options{})
	client := ok(ethclient.DialContext(t.Context(), dn.WSURL()))(t)
	defer client.Close()
	heads := make(chan *types.Header, 8)
	sub := ok(client.SubscribeNewHead(t.Context(), heads))(t)
	defer sub.Unsubscribe()
	block := ok(dn.Mine(t.Context()))(t)
	select {
	case h := <-heads:
		if h.Hash() != block.Hash {
			t.Errorf("head %d %s, mined %d %s", h.Number, h.Hash(), block.Number, block.Hash)
		}
	case <-time.After(time.Minute):
		t.Error("no head arrived")
	}
}

func TestAutomaticBlocksIncludeThePool(t *testing.T) {
	t.Parallel()
	dn := start(t, devnet.Options{})
	faucet, to := dn.Faucet(), common.Address{1}
	client := ok(ethclient.DialContext(t.Context(), dn.RPCURL()))(t)
	defer client.Close()
	signer := types.LatestSignerForChainID(new(big.Int).SetUint64(dn.Chain().ID))
	tx := types.MustSignNewTx(faucet.Key, signer, &types.DynamicFeeTx{
		ChainID: signer.ChainID(), To: &to, Value: big.NewInt(7), Gas: 21000,
		GasFeeCap: big.NewInt(1e11), GasTipCap: big.NewInt(1e9),
	})
	if err := client.SendTransaction(t.Context(), tx); err != nil {
		t.Fatal(err)
	}
	dn.SetPeriod(20 * time.Millisecond)
	deadline := time.Now().Add(time.Minute)
	for {
		if _, err := client.TransactionReceipt(t.Context(), tx.Hash()); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the transaction was not mined")
		}
		time.Sleep(10 * time.Millisecond)
	}
	dn.SetPeriod(0)
	if balance := ok(client.BalanceAt(t.Context(), to, nil))(t); balance.Int64() != 7 {
		t.Errorf("balance %d", balance)
	}
}

func TestReorgReplacesBlocksAndLogs(t *testing.T) {
	t.Parallel()
	dn := start(t, devnet.Options{})
	kept := register(t, dn, 2)
	lost := register(t, dn, 3)
	removed := make(chan types.Log, 64)
	sub := ok(dn.Client().SubscribeFilterLogs(t.Context(), ethereum.FilterQuery{}, removed))(t)
	defer sub.Unsubscribe()
	before := len(logs(t, dn))
	if err := dn.Reorg(t.Context(), 1, 2); err != nil {
		t.Fatal(err)
	}
	head := dn.Head()
	if head.Number != lost.Number+1 {
		t.Errorf("head is %d, want one above %d", head.Number, lost.Number)
	}
	sibling := ok(dn.Client().HeaderByNumber(t.Context(), new(big.Int).SetUint64(lost.Number)))(t)
	if sibling.Hash() == lost.Hash || sibling.ParentHash != kept.Hash {
		t.Errorf("block %d is %s on %s", lost.Number, sibling.Hash(), sibling.ParentHash)
	}
	if after := len(logs(t, dn)); after != before-3*4 {
		t.Errorf("%d logs after %d, three registrations should be gone", after, before)
	}
	if n := ok(dn.View().AgentCount(t.Context()))(t); n != 2 {
		t.Errorf("%d agents", n)
	}
	awaitRemoval(t, removed, lost.Hash)
	// What was undone waits in the pool and comes back.
	ok(dn.Mine(t.Context()))(t)
	if n := ok(dn.View().AgentCount(t.Context()))(t); n != 5 {
		t.Errorf("%d agents after the pool's block", n)
	}
}

// TestForgottenTransactionsStayAway: what devnet_forget undoes does not come back with the pool.
func TestForgottenTransactionsStayAway(t *testing.T) {
	t.Parallel()
	dn := start(t, devnet.Options{})
	register(t, dn, 2)
	lost := register(t, dn, 3)
	client := ok(rpc.DialContext(t.Context(), dn.RPCURL()))(t)
	defer client.Close()
	if err := client.CallContext(t.Context(), nil, "devnet_forget", 1, 2); err != nil {
		t.Fatal(err)
	}
	if head := dn.Head(); head.Number != lost.Number+1 {
		t.Errorf("head is %d, want one above %d", head.Number, lost.Number)
	}
	ok(dn.Mine(t.Context()))(t)
	if n := ok(dn.View().AgentCount(t.Context()))(t); n != 2 {
		t.Errorf("%d agents after the pool's block", n)
	}
	register(t, dn, 1)
}

// awaitRemoval skips logs that were announced late.
func awaitRemoval(t *testing.T, logs <-chan types.Log, block common.Hash) {
	t.Helper()
	timeout := time.After(time.Minute)
	for {
		select {
		case l := <-logs:
			if l.Removed && l.BlockHash == block {
				return
			}
		case <-timeout:
			t.Fatal("no removed log was announced")
		}
	}
}

func TestForkWithOtherTransactions(t *testing.T) {
	t.Parallel()
	dn := start(t, devnet.Options{})
	register(t, dn, 1)
	if err := dn.Fork(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if err := dn.Publish(t.Context()); err == nil {
		t.Error("a shorter branch was published")
	}
	b := dn.Batch()
	b.Register(dn.Account(7), "ipfs://other")
	ok(b.Mine(t.Context()))(t)
	if owner := ok(dn.View().OwnerOf(t.Context(), 0))(t); owner != dn.Account(0).Address {
		t.Error("the branch is visible before it is published")
	}
	ok(dn.Mine(t.Context()))(t)
	if err := dn.Publish(t.Context()); err != nil {
		t.Fatal(err)
	}
	if owner := ok(dn.View().OwnerOf(t.Context(), 0))(t); owner != dn.Account(7).Address {
		t.Errorf("agent 0 belongs to %s after the fork", owner)
	}
	if err := dn.DropPool(); err != nil {
		t.Fatal(err)
	}
	ok(dn.Mine(t.Context()))(t)
	if n := ok(dn.View().AgentCount(t.Context()))(t); n != 1 {
		t.Errorf("%d agents: the dropped registration came back", n)
	}
}

func TestForkBelowFinality(t *testing.T) {
	t.Parallel()
	for _, unsafe := range []bool{false, true} {
		dn := start(t, devnet.Options{FinalizedDepth: 3, SafeDepth: 1, UnsafeForks: unsafe})
		for range 8 {
			ok(dn.Mine(t.Context()))(t)
		}
		before := dn.Finalized()
		err := dn.Reorg(t.Context(), 5, 6)
		if unsafe {
			h := ok(dn.Client().HeaderByNumber(t.Context(), new(big.Int).SetUint64(before.Number)))(t)
			if err != nil || h.Hash() == before.Hash {
				t.Errorf("unsafe reorganization: %v, finalized block stayed", err)
			}
		} else if !errors.Is(err, repute.ErrFinalized) {
			t.Errorf("reorganization below finality: %v", err)
		}
	}
}

func TestClockIsDeterministic(t *testing.T) {
	t.Parallel()
	genesis := time.Date(2026, 1, 29, 0, 0, 0, 0, time.UTC)
	var heads []repute.Block
	for range 2 {
		dn := start(t, devnet.Options{GenesisTime: genesis, Seed: "clock"})
		register(t, dn, 5)
		late := ok(dn.AdjustTime(t.Context(), time.Hour))(t)
		if want := genesis.Add(2*devnet.BlockTime + time.Hour); !late.Time.Equal(want) {
			t.Errorf("time %s, want %s", late.Time, want)
		}
		heads = append(heads, dn.Head())
	}
	if heads[0] != heads[1] {
		t.Errorf("the same calls gave %+v and %+v", heads[0], heads[1])
	}
}

func TestRevertIsReported(t *testing.T) {
	t.Parallel()
	dn := start(t, devnet.Options{})
	b := dn.Batch()
	b.Register(dn.Account(0), "")
	b.SetAgentURI(dn.Account(1), 0, "not mine")
	m, err := b.Mine(t.Context())
	if !errors.Is(err, devnet.ErrReverted) || m.Receipts[0].Status != 1 || m.Receipts[1].Status != 0 {
		t.Errorf("%v %+v", err, m)
	}
}

func TestNoBlocksAfterClose(t *testing.T) {
	t.Parallel()
	dn := start(t, devnet.Options{})
	if err := dn.Close(); err != nil {
		t.Fatal(err)
	}
	if b, err := dn.Mine(t.Context()); err == nil {
		t.Errorf("mined %+v", b)
	}
	dn.SetPeriod(time.Second) // must not block
}

// An empty batch takes the pool's block, in which somebody else's transaction
// may revert.
func TestEmptyBatchTakesThePool(t *testing.T) {
	t.Parallel()
	dn := start(t, devnet.Options{})
	b := dn.Batch()
	b.RegisterBare(dn.Account(0))
	b.SetAgentURI(dn.Account(1), 0, "not mine")
	if _, err := b.Mine(t.Context()); !errors.Is(err, devnet.ErrReverted) {
		t.Fatal(err)
	}
	if err := dn.Reorg(t.Context(), 1, 2); err != nil {
		t.Fatal(err)
	}
	m, err := dn.Batch().Mine(t.Context())
	if !errors.Is(err, devnet.ErrReverted) || len(m.Receipts) != 2 {
		t.Errorf("%v, %d receipts", err, len(m.Receipts))
	}
}

func TestHundredsOfTransactionsInABlock(t *testing.T) {
	t.Parallel()
	dn := start(t, devnet.Options{})
	b := dn.Batch()
	b.Register(dn.Account(0), "")
	for i := range 400 {
		b.GiveFeedback(dn.Account(1+i%20), devnet.Rating{Value: big.NewInt(int64(i)), Tag1: "starred"})
	}
	ok(b.Mine(t.Context()))(t)
	if n := len(ok(dn.View().AllFeedback(t.Context(), 0))(t)); n != 400 {
		t.Errorf("%d ratings", n)
	}
}

func TestStartFailsWhenThePortIsTaken(t *testing.T) {
	t.Parallel()
	first := start(t, devnet.Options{})
	port := ok(strconv.Atoi(ok(url.Parse(first.RPCURL()))(t).Port()))(t)
	if dn, err := devnet.Start(t.Context(), devnet.Options{Port: port}); err == nil {
		t.Error("two nodes on one port", dn.Close())
	}
	register(t, first, 1)
}

func TestCloseLeavesNoGoroutines(t *testing.T) {
	cycle := func() {
		dn, err := devnet.Start(context.Background(), devnet.Options{})
		if err != nil {
			t.Fatal(err)
		}
		dn.SetPeriod(time.Millisecond)
		docs := ok(devnet.StartDocuments(""))(t)
		reader := ok(ethclient.Dial(dn.WSURL()))(t)
		defer reader.Close()
		// Somebody still reads when the node goes down.
		ok(reader.SubscribeNewHead(context.Background(), make(chan *types.Header, 64)))(t)
		if err := errors.Join(dn.Close(), dn.Close(), docs.Close(), docs.Close()); err != nil {
			t.Fatal(err)
		}
	}
	cycle() // what the process keeps until its end starts here
	before := len(goroutines())
	for range 5 {
		cycle()
	}
	deadline := time.Now().Add(time.Minute)
	for {
		after := goroutines()
		if len(after) <= before {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, %d before\n%s", len(after), before, strings.Join(after, "\n\n"))
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// goroutines are the stacks of all goroutines but those that go-ethereum loses:
// a subscription that ends after the loop of its event system has ended waits for that loop forever (eth/filters,
// Subscription.Unsubscribe), and which of the two ends first is the scheduler's choice.
func goroutines() []string {
	buf := make([]byte, 8<<20)
	all := strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n")
	return slices.DeleteFunc(all, func(stack string) bool {
		return strings.Contains(stack, "filters.(*Subscription).Unsubscribe")
	})
}

func TestResponseCounts(t *testing.T) {
	t.Parallel()
	dn := start(t, devnet.Options{})
	client, other := dn.Account(1), dn.Account(2)
	b := dn.Batch()
	b.Register(dn.Account(0), "")
	b.GiveFeedback(client, devnet.Rating{Value: common.Big1})
	b.AppendResponse(other, 0, client.Address, 1, "ipfs://a", common.Hash{})
	b.AppendResponse(other, 0, client.Address, 1, "ipfs://b", common.Hash{})
	ok(b.Mine(t.Context()))(t)
	if n := ok(dn.View().ResponseCount(t.Context(), 0, client.Address, 1))(t); n != 2 {
		t.Errorf("%d responses", n)
	}
	if n := len(ok(dn.ViewAt(1).Clients(t.Context(), 0))(t)); n != 0 {
		t.Errorf("%d clients before there was an agent", n)
	}
}
