package verify

import (
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/indexer/node"
	"repute/internal/rpctest"
	"repute/store/chaindb"
)

// A validation contract that is listed late gets its history, and until then the
// chain says that it lacks it.
func TestLateListedContract(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	other := common.HexToAddress("0x0badc0de00000000000000000000000000000001")
	said := func(hash byte, response uint8) []types.Log {
		request := repute.ValidationRequest{Validator: rpctest.Account(2), TokenID: rpctest.Token(0),
			RequestHash: common.Hash{hash}}
		answer := repute.ValidationResponse{Validator: rpctest.Account(2), TokenID: rpctest.Token(0),
			RequestHash: common.Hash{hash}, Response: response}
		logs := c.Tx(request, answer)
		for i := range logs {
			logs[i].Address = other
		}
		return logs
	}
	c.Mine(c.Register(0, rpctest.Account(1), "https://a"))
	for i := range byte(30) {
		c.Mine(said(i, i), c.Feedback(0, rpctest.Account(3), uint64(i)+1, 1, "t"))
	}
	c.MineEmpty(4)
	c.Finalize(34, 34)

	before := chainOf(c)
	after := before
	after.Validations = append(slices.Clone(before.Validations), other)
	honest, db := openStore(t), openStore(t)
	indexFrom(t, honest, after, newNode(t, c, node.Options{}))
	indexFrom(t, db, before, newNode(t, c, node.Options{}))
	c.Inject(rpctest.LimitRange(10, rpctest.Error{Code: -32602, Message: "exceed maximum block range 10"}))
	if err := chaindb.AddChain(t.Context(), db, after); err != nil {
		t.Fatal(err)
	}
	if s := status(t, db).Completeness; s.Status != repute.Incomplete {
		t.Errorf("%+v, want an incomplete chain", s)
	}
	liar := c.Second(t) // its logs only say where to look
	liar.MapLogs(rpctest.Corrupt(func(l types.Log) bool { return l.Address == other },
		func(l *types.Log) { l.TxHash = common.Hash{1} }))
	settleDown(t, verifierOf(db, after, newNode(t, liar, node.Options{}), newNode(t, c, node.Options{})))
	wantSame(t, dump(t, db), dump(t, honest))
	if s := status(t, db).Completeness; s.Status != repute.Complete {
		t.Errorf("%+v, want a complete chain", s)
	}
}
