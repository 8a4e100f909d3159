package verify

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/indexer/node"
	"repute/indexer/verify/witness"
	"repute/internal/rpctest"
	"repute/store"
)

// ratedOnce is a chain of an agent and a rating, in block 1, both final.
func ratedOnce(t *testing.T) (*rpctest.Chain, *rpctest.Block) {
	t.Helper()
	c := rpctest.New(t, rpctest.Options{})
	b := c.Mine(c.Register(0, rpctest.Account(1), "https://a"), c.Feedback(0, rpctest.Account(2), 1, 5, "x"))
	c.MineEmpty(6)
	c.Finalize(6, 6)
	return c, b
}

// calmDown steps until there is nothing to do, whatever fails on the way.
func calmDown(t *testing.T, v *Verifier) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		err := v.Step(t.Context(), store.Lease{})
		if errors.Is(err, ErrNothingNew) {
			return
		}
		if err != nil {
			time.Sleep(time.Millisecond) // a turn that failed waits
		}
	}
	t.Error("no end")
}

func invented(c *rpctest.Chain) types.Log {
	return c.Feedback(0, rpctest.Account(66), 1, 100, "invented")[0]
}

// A witness that forges receipts, whatever it makes up with them, changes nothing
// while an honest one is asked as well.
func TestForgedReceiptsChangeNothing(t *testing.T) {
	t.Parallel()
	c, b := ratedOnce(t)
	honest := newNode(t, c, node.Options{})
	for name, lie := range map[string]func(rpctest.ProxyCall, map[string]json.RawMessage){
		"indexes that the root says nothing of": rpctest.IndexesPlus(100),
		"an event more, with a root of its own": rpctest.Inventing(t, b, invented(c)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := openStore(t)
			indexFrom(t, db, chainOf(c), honest)
			want := dump(t, db)
			d := rpctest.NewProxyAt(t, "127.0.0.2", c.URL())
			d.Lie = lie
			calmDown(t, verifierOf(db, chainOf(c), nodeAt(t, d.URL), honest))
			wantSame(t, dump(t, db), want)
			wantComplete(t, db)
		})
	}
}

// ownRoots makes a chain's receipts roots ones that nobody can recompute.
func ownRoots(call rpctest.ProxyCall, a map[string]json.RawMessage) {
	if strings.HasPrefix(call.Method, "eth_getBlockBy") && len(a["result"]) > len("null") {
		a["result"] = rpctest.Edited(a["result"], map[string]string{"receiptsRoot": common.Hash{7}.Hex()})
	}
}

// Where no root can be recomputed two witnesses must show an event. What one of
// several shows is a gap, and not in the index.
func TestUnprovenEventsNeedTwoWitnesses(t *testing.T) {
	t.Parallel()
	c, b := ratedOnce(t)
	one, two, three := rpctest.NewProxy(t, c.URL()), rpctest.NewProxyAt(t, "127.0.0.2", c.URL()),
		rpctest.NewProxyAt(t, "127.0.0.3", c.URL())
	one.Lie, two.Lie = ownRoots, ownRoots
	db, short := openStore(t), openStore(t)
	indexFrom(t, db, chainOf(c), nodeAt(t, one.URL))
	want := dump(t, db)
	invent := rpctest.Inventing(t, b, invented(c))
	three.Lie = func(call rpctest.ProxyCall, a map[string]json.RawMessage) {
		invent(call, a)
		ownRoots(call, a)
		if call.Method == "eth_getLogs" && strings.Contains(string(call.Params[0]), b.Hash().Hex()) {
			a["result"] = json.RawMessage("[]")
		}
	}
	calmDown(t, verifierOf(db, chainOf(c), nodeAt(t, one.URL), nodeAt(t, two.URL), nodeAt(t, three.URL)))
	wantSame(t, dump(t, db), want)
	if s := status(t, db); s.Completeness.Status != repute.Incomplete {
		t.Errorf("an event that one of three shows leaves the index %s", s.Completeness.Status)
	}
	one.Lose(func(l types.Log) bool { return l.Address == c.Reputation }, true, true)
	indexFrom(t, short, chainOf(c), nodeAt(t, one.URL))
	three.Lie = ownRoots
	calmDown(t, verifierOf(short, chainOf(c), nodeAt(t, one.URL), nodeAt(t, two.URL), nodeAt(t, three.URL)))
	wantSame(t, dump(t, short), want)
}

// Receipts below headers of a form that cannot be recomputed are believed of two hosts, and
// prove nothing by themselves: all ports of a host are one witness.
func TestForeignHeadersNeedTwoWitnesses(t *testing.T) {
	t.Parallel()
	c, b := ratedOnce(t)
	foreign := func(call rpctest.ProxyCall, a map[string]json.RawMessage) {
		if strings.HasPrefix(call.Method, "eth_getBlockBy") && len(a["result"]) > len("null") {
			a["result"] = rpctest.Edited(a["result"], map[string]string{"extraData": "0x07"})
		}
	}
	one, port, two := rpctest.NewProxy(t, c.URL()), rpctest.NewProxy(t, c.URL()),
		rpctest.NewProxyAt(t, "127.0.0.2", c.URL())
	one.Lie, port.Lie, two.Lie = foreign, foreign, foreign
	db := openStore(t)
	first, second := nodeAt(t, one.URL), nodeAt(t, two.URL)
	indexFrom(t, db, chainOf(c), first)
	for _, tt := range []struct {
		nodes []*node.Node
		want  bool
	}{{[]*node.Node{first}, false}, {[]*node.Node{first, nodeAt(t, one.URL), nodeAt(t, port.URL)}, false},
		{[]*node.Node{first, second}, true}} {
		j, err := verifierOf(db, chainOf(c), tt.nodes...).judge(t.Context(), b.Number())
		if err != nil || j.proven || j.sure() != tt.want || !j.settled() {
			t.Errorf("%d witnesses: proven %t, sure %t, %v", len(tt.nodes), j.proven, j.sure(), err)
		}
	}
}

// Logs of a query get in by way of the receipts only: what is invented there does
// not, and it does not keep out what is missing elsewhere.
func TestLyingQueriesNeitherAddNorBlock(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	c.Mine(c.Register(0, rpctest.Account(1), "https://a"))
	for i := range uint64(6) {
		c.Mine(c.Feedback(0, rpctest.Account(2), i+1, int64(i), "x"))
	}
	c.MineEmpty(5)
	c.Finalize(11, 11)
	honest := newNode(t, c, node.Options{})
	whole := openStore(t)
	indexFrom(t, whole, chainOf(c), honest)
	lossy := rpctest.NewProxy(t, c.URL())
	lossy.Lose(func(l types.Log) bool { return l.BlockNumber == 4 && l.Address == c.Reputation }, true, true)
	for name, lie := range map[string]func([]types.Log) []types.Log{
		"another transaction": rpctest.Corrupt(rpctest.AtBlock(3), func(l *types.Log) { l.TxHash = common.Hash{1} }),
		"another place":       rpctest.Corrupt(rpctest.Every, func(l *types.Log) { l.Index += 50 }),
		"another block":       rpctest.Corrupt(rpctest.AtBlock(5), func(l *types.Log) { l.BlockNumber = 9 }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := openStore(t)
			indexFrom(t, db, chainOf(c), nodeAt(t, lossy.URL))
			liar := c.Second(t)
			liar.MapLogs(lie)
			v := verifierOf(db, chainOf(c), nodeAt(t, liar.URL()), honest)
			withoutBlocks(v)
			calmDown(t, v)
			wantSame(t, dump(t, db), dump(t, whole))
		})
	}
}

// A block on which the witnesses do not agree is not judged.
func TestDisagreementAboutABlockIsAnError(t *testing.T) {
	t.Parallel()
	c, _ := ratedOnce(t)
	other := rpctest.NewProxyAt(t, "127.0.0.2", c.URL())
	other.Lie = func(call rpctest.ProxyCall, a map[string]json.RawMessage) {
		if call.Method == "eth_getBlockByNumber" && string(call.Params[0]) == `"0x3"` {
			a["result"] = rpctest.Edited(a["result"], map[string]string{"hash": common.Hash{9}.Hex()})
		}
	}
	db := openStore(t)
	honest := newNode(t, c, node.Options{})
	indexFrom(t, db, chainOf(c), honest)
	v := verifierOf(db, chainOf(c), nodeAt(t, other.URL), honest)
	if _, err := v.judge(t.Context(), 3); !errors.Is(err, witness.ErrDisagree) {
		t.Errorf("an empty block that two witnesses name differently: %v", err)
	}
	v = verifierOf(db, chainOf(c), nodeAt(t, other.URL), honest,
		nodeAt(t, rpctest.NewProxyAt(t, "127.0.0.3", c.URL()).URL))
	if j, err := v.judge(t.Context(), 3); err != nil || !j.proven {
		t.Errorf("one against two: proven %t, %v", j.proven, err)
	}
}

// A block whose hash is not stored is not judged by what one of several hosts shows while the others
// do not answer: it could be made up.
func TestOneOfSeveralHostsNamesNoBlock(t *testing.T) {
	t.Parallel()
	c, _ := ratedOnce(t)
	away := rpctest.NewProxyAt(t, "127.0.0.2", c.URL())
	away.Lie = func(call rpctest.ProxyCall, a map[string]json.RawMessage) {
		if call.Method == "eth_getBlockByNumber" && string(call.Params[0]) == `"0x3"` {
			delete(a, "result")
			a["error"] = json.RawMessage(`{"code":-32005,"message":"rate limit"}`)
		}
	}
	db := openStore(t)
	one := newNode(t, c, node.Options{})
	indexFrom(t, db, chainOf(c), one)
	if j, err := verifierOf(db, chainOf(c), one).judge(t.Context(), 3); err != nil || !j.proven {
		t.Errorf("the only host: proven %t, %v", j.proven, err)
	}
	v := verifierOf(db, chainOf(c), one, nodeAt(t, away.URL))
	if _, err := v.judge(t.Context(), 3); err == nil || !mayPass(t.Context(), err) {
		t.Errorf("one of two hosts: %v, want an error that may pass", err)
	}
	if _, err := v.judge(t.Context(), 1); err != nil {
		t.Errorf("a stored block: %v", err)
	}
}

// Ports of one host are one witness: together they neither add an event, nor remove one, nor
// name a block against another host.
func TestPortsOfOneHostAreOneWitness(t *testing.T) {
	t.Parallel()
	c, b := ratedOnce(t)
	invent := rpctest.Inventing(t, b, invented(c))
	one, port, honest := rpctest.NewProxyAt(t, "127.0.0.2", c.URL()), rpctest.NewProxyAt(t, "127.0.0.2", c.URL()),
		rpctest.NewProxy(t, c.URL())
	lie := func(call rpctest.ProxyCall, a map[string]json.RawMessage) {
		invent(call, a)
		ownRoots(call, a)
		if call.Method == "eth_getLogs" && strings.Contains(string(call.Params[0]), b.Hash().Hex()) {
			a["result"] = json.RawMessage("[]")
		}
	}
	one.Lie, port.Lie, honest.Lie = lie, lie, ownRoots
	db := openStore(t)
	indexFrom(t, db, chainOf(c), nodeAt(t, honest.URL))
	want := dump(t, db)
	v := verifierOf(db, chainOf(c), nodeAt(t, one.URL), nodeAt(t, port.URL), nodeAt(t, honest.URL))
	if nodes := witness.Apart(v.witnesses.Nodes()); nodes[1].Host() != "127.0.0.1" || len(nodes) != 3 ||
		witness.Hosts(nodes) != 2 {
		t.Errorf("%s is the second of %d witnesses of %d hosts", nodes[1].Host(), len(nodes), witness.Hosts(nodes))
	}
	calmDown(t, v)
	wantSame(t, dump(t, db), want)
	if s := status(t, db); s.Completeness.Status != repute.Incomplete {
		t.Errorf("an event that one of two hosts shows leaves the index %s", s.Completeness.Status)
	}
	lie = func(call rpctest.ProxyCall, a map[string]json.RawMessage) {
		if call.Method == "eth_getBlockByNumber" && string(call.Params[0]) == `"0x3"` {
			a["result"] = rpctest.Edited(a["result"], map[string]string{"hash": common.Hash{9}.Hex()})
		}
	}
	one.Lie, port.Lie, honest.Lie = lie, lie, nil
	if _, err := v.judge(t.Context(), 3); !errors.Is(err, witness.ErrDisagree) {
		t.Errorf("a block that two hosts name differently: %v", err)
	}
}
