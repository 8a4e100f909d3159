package indexer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/indexer/node"
	"repute/internal/rpctest"
	"repute/store"
)

// lostSeeds are runs that once ended wrong.
var lostSeeds = []uint64{1154972546485447687, 2677991627846995575, 2344783749985458589}

// TestSimulation runs a follower through random growth, reorganizations, faults
// and restarts, and compares with a fresh index again and again. The seed is
// printed; REPUTE_SEED repeats a run.
func TestSimulation(t *testing.T) {
	t.Parallel()
	seeds := append([]uint64{rand.Uint64()}, lostSeeds...)
	if s := os.Getenv("REPUTE_SEED"); s != "" {
		seed, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seeds = []uint64{seed}
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprintf("REPUTE_SEED=%d", seed), func(t *testing.T) {
			t.Parallel()
			simulate(t, seed)
		})
	}
	soak(t)
}

// soak goes on with new seeds for as long as REPUTE_SOAK says.
func soak(t *testing.T) {
	d, err := time.ParseDuration(cmp.Or(os.Getenv("REPUTE_SOAK"), "0s"))
	if err != nil {
		t.Fatal(err)
	}
	for until := time.Now().Add(d); time.Now().Before(until) && !t.Failed(); {
		seed := rand.Uint64()
		t.Run(fmt.Sprintf("REPUTE_SEED=%d", seed), func(t *testing.T) { simulate(t, seed) })
	}
}

func simulate(t *testing.T, seed uint64) {
	s := &simulation{seed: seed, world: newWorld(rpctest.New(t, rpctest.Options{NoBlockTime: seed%2 == 0}), seed),
		db: openStore(t)}
	s.second = s.Second(t)
	s.restart(t)
	for range 4 {
		for range 100 {
			s.act(t)
		}
		s.busy.Lock()
		s.heal()
		s.busy.Unlock()
		stepUntilDone(t, s.follower)
		wantCursor(t, s.db, s.Head())
		wantFresh(t, s.db, s.Chain)
	}
	t.Logf("%d blocks, %d reorganizations, %d failed steps", s.Head().Number(), s.reorgs, s.failures)
}

type simulation struct {
	*world
	seed     uint64
	busy     sync.Mutex     // held unless a step runs: faults fork while it does
	second   *rpctest.Chain // another endpoint of it
	db       *store.DB
	follower *Follower
	undo     []func()
	healed   int // how often: a fault that was asked before may act only later
	final    uint64
	reorgs   int
	failures int
	torn     bool // a step was given up, and its commit may be under way
}

func (s *simulation) restart(t *testing.T) {
	if s.follower != nil && s.rnd.IntN(2) == 0 { // as a process that ends, not one that is killed
		s.follower.prefetch.dropAll()
	}
	s.follower = s.followOver(t, Options{StartRange: 1 + s.rnd.Uint64N(60), Ahead: 1 + s.rnd.IntN(4),
		MaxBytes: 32_000 << s.rnd.IntN(8), AnyValidation: s.seed%3 > 0})
}

// followOver follows over one endpoint or over two of the same chain.
func (s *simulation) followOver(t *testing.T, o Options) *Follower {
	f := follow(t, s.db, s.Chain, o)
	if s.rnd.IntN(2) == 0 {
		return f
	}
	var nodes []*node.Node
	for _, c := range []*rpctest.Chain{s.Chain, s.second} {
		nodes = append(nodes,
			newNode(t, c, node.Options{Timeout: 20 * time.Second, OpenMin: 5 * time.Millisecond,
				OpenMax: 50 * time.Millisecond}))
	}
	return NewFollower(s.db, chainOf(s.Chain), node.NewPool(nodes, node.PoolOptions{ChainID: 31337}), f.opts)
}

// trouble makes the second endpoint fail or fall behind.
func (s *simulation) trouble() {
	switch s.rnd.IntN(4) {
	case 0:
		s.second.GoDark(true)
		s.undo = append(s.undo, func() { s.second.GoDark(false) })
	case 1:
		s.second.ServeHead(s.rnd.Uint64N(s.Head().Number() + 1))
		s.undo = append(s.undo, s.second.ServeAll)
	case 2:
		s.undo = append(s.undo,
			s.second.Inject(rpctest.LimitRange(1+s.rnd.Uint64N(30), rpctest.Error{Code: -32005, Message: "too wide"})))
	case 3:
		s.undo = append(s.undo, s.second.Inject(rpctest.Times(3, rpctest.Always(rpctest.Answer{Status: 503}))))
	}
}

// act does one random thing; most often it steps.
func (s *simulation) act(t *testing.T) {
	s.busy.Lock()
	defer s.busy.Unlock()
	switch s.rnd.IntN(17) {
	case 16:
		s.trouble()
	case 0, 1:
		s.grow(1 + s.rnd.IntN(5))
	case 2:
		s.grow(s.rnd.IntN(120))
	case 3, 4:
		s.reorg()
	case 5:
		s.sabotage()
	case 6:
		s.heal()
	case 7:
		s.restart(t)
	case 8:
		s.finalize()
	case 9:
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(s.rnd.Int64N(int64(20*time.Millisecond))))
		s.torn = true
		s.step(t, ctx)
		cancel()
	default:
		s.step(t, t.Context())
	}
}

func (s *simulation) step(t *testing.T, ctx context.Context) {
	s.busy.Unlock()
	err := s.follower.Step(ctx, store.Lease{})
	s.busy.Lock()
	torn := s.torn
	s.torn = torn && ctx.Err() != nil
	switch {
	case errors.Is(err, repute.ErrReorged):
		s.reorgs++
	case errors.Is(err, repute.ErrFenced) && torn: // the commit came after the cursor was read, which fences this step
		s.failures++
	case errors.Is(err, repute.ErrFinalized), errors.Is(err, repute.ErrConflict), errors.Is(err, repute.ErrFenced):
		t.Fatalf("step: %v", err)
	case err != nil && !errors.Is(err, ErrNothingNew) && !errors.Is(err, ErrBehind):
		s.failures++
	}
}

// reorg forks somewhere above the final block, not always to a longer chain.
func (s *simulation) reorg() {
	head := s.Head().Number()
	open := head - s.final
	if open == 0 {
		return
	}
	depth := 1 + s.rnd.IntN(int(min(open, 60)))
	s.fork(head-uint64(depth), max(1, depth-2+s.rnd.IntN(6)))
}

func (s *simulation) finalize() {
	if head := s.Head().Number(); head > s.final+10 {
		s.final += s.rnd.Uint64N(head - s.final - 9)
		s.Finalize(min(s.final+5, head), s.final)
	}
}

func (s *simulation) heal() {
	for _, undo := range s.undo {
		undo()
	}
	s.undo = nil
	s.healed++
}

// sabotage adds one fault. None of them lies in a way that only a comparison with
// another source could show.
func (s *simulation) sabotage() {
	now := func(r rpctest.Rule) { s.undo = append(s.undo, s.Inject(rpctest.Times(1+s.rnd.Int64N(4), r))) }
	every := func(fn func([]types.Log) []types.Log) { s.undo = append(s.undo, s.MapLogs(fn)) }
	odd := func(l types.Log) bool { return l.BlockNumber%2 == 1 }
	switch s.rnd.IntN(13) {
	case 10:
		now(rpctest.On("eth_getLogs", rpctest.Always(rpctest.Answer{Delay: time.Millisecond << s.rnd.IntN(6),
			Honest: true})))
	case 11:
		now(rpctest.Always(rpctest.Answer{Status: 429, Raw: []byte("slow down")}))
	case 12:
		now(rpctest.On("eth_getLogs",
			rpctest.Always(rpctest.Answer{Error: &rpctest.Error{Code: -32005, Message: "rate limit exceeded"}})))
	case 0:
		now(rpctest.Always(rpctest.Answer{Raw: []byte("<html>")}))
	case 1:
		now(rpctest.On("eth_getLogs", rpctest.Always(rpctest.Answer{})))
	case 2:
		now(rpctest.On("eth_getBlockByNumber", rpctest.Always(rpctest.Answer{})))
	case 3:
		now(rpctest.On("eth_getLogs",
			rpctest.Always(rpctest.Answer{Error: &rpctest.Error{Code: -32000, Message: "internal"}})))
	case 4:
		every(rpctest.Duplicate(odd))
	case 5:
		every(oneHash)
	case 6:
		s.GoDark(true)
		s.undo = append(s.undo, func() { s.GoDark(false) })
	case 7:
		s.ServeHead(s.rnd.Uint64N(s.Head().Number() + 1))
		s.undo = append(s.undo, s.ServeAll)
	case 8:
		s.undo = append(s.undo,
			s.Inject(rpctest.LimitRange(1+s.rnd.Uint64N(30), rpctest.Error{Code: -32005, Message: "too wide"})))
	case 9:
		healed := s.healed
		now(rpctest.On("eth_getLogs", func(rpctest.Call) *rpctest.Answer {
			s.busy.Lock()
			defer s.busy.Unlock()
			if s.healed == healed {
				s.reorg()
			}
			return &rpctest.Answer{Honest: true}
		}))
	}
}

// oneHash gives the logs of all blocks the same block hash. Of a single final block
// nothing that comes with the logs could tell.
func oneHash(logs []types.Log) []types.Log {
	if len(logs) == 0 || logs[0].BlockNumber == logs[len(logs)-1].BlockNumber {
		return logs
	}
	return rpctest.Corrupt(rpctest.Every, func(l *types.Log) { l.BlockHash = common.Hash{7} })(logs)
}
