package indexer

import (
	"crypto/sha256"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/contracts"
	"repute/indexer/node"
	"repute/internal/rpctest"
	"repute/store/importdb"
	"repute/store/query"
)

// incompressible is n bytes that no compression makes shorter.
func incompressible(seed string, n int) string {
	out := make([]byte, 0, n+32)
	for sum := sha256.Sum256([]byte(seed)); len(out) < n; sum = sha256.Sum256(sum[:]) {
		out = append(out, sum[:]...)
	}
	return string(out[:n])
}

// hostile are strings as anybody may write into the registries.
func hostile() map[string]string {
	return map[string]string{
		"empty": "", "NUL": "a\x00b", "invalid UTF-8": "\xff\xfe\xed\xa0\x80", "displays alike 1": "x\xff",
		"displays alike 2":    "x\xfe",
		"3 KB incompressible": incompressible("3 KB", 3_072), "1 MB": incompressible("1 MB", 1<<20),
		"control": "\x1b[2J\r\n\u202e",
	}
}

// hostileTxs gives transactions with the string in every place that holds one.
func hostileTxs(c *rpctest.Chain, s string, i uint64) [][]types.Log {
	id, client, request := rpctest.Token(i), rpctest.Account(77), common.Hash{1, byte(i)}
	return [][]types.Log{
		c.Register(i, rpctest.Account(i), s),
		c.Tx(repute.MetadataSet{TokenID: id, Key: s, Value: []byte(s)}),
		c.Tx(repute.NewFeedback{TokenID: id, Client: client, Index: 1, Value: big.NewInt(1), Tag1: s, Tag2: s,
			Endpoint: s,
			URI:      s}),
		c.Tx(repute.ResponseAppended{TokenID: id, Client: client, Index: 1, Responder: client, URI: s}),
		c.Tx(repute.ValidationRequest{Validator: client, TokenID: id, URI: s, RequestHash: request},
			repute.ValidationResponse{Validator: client, TokenID: id, RequestHash: request, Response: 1, URI: s,
				Tag: s}),
	}
}

// Strings of every kind are stored as they are, stay apart, and stop nothing; from
// the stored logs the same rows are made again.
func TestHostileStrings(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	ids := map[string]uint64{}
	for name, s := range hostile() {
		ids[name] = uint64(len(ids))
		c.Mine(hostileTxs(c, s, ids[name])...)
	}
	db := openStore(t)
	f := follow(t, db, c, Options{})
	catchUp(t, f)
	before := dump(t, db) // lists show the beginning of long strings only
	for name, s := range hostile() {
		for _, want := range []string{`"key" : "%x"`, `"value" : "%x"`,
			`"tag1" : "%x", "tag2" : "%[1]x", "uri" : "%[1]x", "endpoint" : "%[1]x"`, `"tag" : "%x"`} {
			if !strings.Contains(before, fmt.Sprintf(want, s)) {
				t.Errorf("%s is not stored as %s", name, want)
			}
		}
		id := repute.AgentID{ChainID: 31337, Registry: c.Identity, TokenID: rpctest.Token(ids[name])}
		page, err := query.Feedback(t.Context(), db, id,
			query.FeedbackFilter{Limit: 10, At: repute.At{Finality: repute.Latest}})
		if err != nil || len(page.Items) != 1 {
			t.Fatalf("%s: %d ratings, %v", name, len(page.Items), err)
		}
		if got := page.Items[0]; !strings.HasPrefix(s, got.Tag1) || !strings.HasPrefix(s, got.URI) ||
			len(got.Tag1) < min(len(s), 100) {
			t.Errorf("%s: the rating came back as %.40q %.40q", name, got.Tag1, got.URI)
		}
		agent, _, err := query.Agent(t.Context(), db, id, repute.At{Finality: repute.Latest})
		if err != nil || len(agent.Metadata) != 1 || agent.Counts.Feedback != 1 || agent.Counts.Responses != 1 ||
			agent.Counts.Validations != 1 {
			t.Errorf("%s: %+v, %v", name, agent.Counts, err)
		}
	}
	if err := importdb.Reindex(t.Context(), db, 31337, contracts.Read); err != nil || dump(t, db) != before {
		t.Errorf("reindex: %v, or another dump", err)
	}
	c.Fork(c.Head().Number() - 1) // and taken back
	c.MineEmpty(2)
	catchUp(t, f)
	wantFresh(t, db, c)
}

func TestExtremeValues(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	top := new(big.Int).Sub(new(big.Int).Lsh(common.Big1, 127), common.Big1)
	bottom := new(big.Int).Neg(new(big.Int).Lsh(common.Big1, 127))
	last := new(big.Int).Sub(new(big.Int).Lsh(common.Big1, 256), common.Big1)
	var id repute.TokenID
	id.SetFromBig(last)
	values := []*big.Int{top, bottom, new(big.Int), big.NewInt(-1)}
	c.Mine(c.Tx(repute.Transfer{To: rpctest.Account(1), TokenID: id},
		repute.Registered{TokenID: id, URI: "u", Owner: rpctest.Account(1)}))
	for i, v := range values {
		c.Mine(c.Tx(repute.NewFeedback{TokenID: id, Client: rpctest.Account(2), Index: uint64(i + 1), Value: v,
			Decimals: 18, Tag1: "t"}))
	}
	db := openStore(t)
	catchUp(t, follow(t, db, c, Options{}))
	agent := repute.AgentID{ChainID: 31337, Registry: c.Identity, TokenID: id}
	page, err := query.Feedback(t.Context(), db, agent,
		query.FeedbackFilter{Limit: 10, At: repute.At{Finality: repute.Latest}})
	if err != nil || len(page.Items) != len(values) {
		t.Fatalf("%d ratings, %v", len(page.Items), err)
	}
	for _, got := range page.Items {
		if want := values[got.Index-1]; got.Value.Cmp(want) != 0 {
			t.Errorf("rating %d is %s, want %s", got.Index, got.Value, want)
		}
	}
	wantFresh(t, db, c)
}

// Blocks from the future, as a wrong clock on either side makes them.
func TestClockSkew(t *testing.T) {
	t.Parallel()
	now := uint64(time.Now().Unix())
	for name, start := range map[string]uint64{"ahead of us": now + 86_400, "1970": 1,
		"year 9999": node.TimesEnd - 100} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := rpctest.New(t, rpctest.Options{Start: start})
			w := newWorld(c, 61)
			w.grow(20)
			db := openStore(t)
			f := follow(t, db, c, Options{})
			catchUp(t, f)
			w.fork(15, 8)
			catchUp(t, f)
			wantTimes(t, db, c)
			if b := cursorOf(t, db); b.Time.Unix() != int64(c.Head().Header.Time) {
				t.Errorf("the cursor is of %s", b.Time)
			}
			if _, err := query.Chains(t.Context(), db); err != nil {
				t.Error(err)
			}
			wantFresh(t, db, c)
		})
	}
}

// Invalid answers stop nothing permanently: Run continues once they end.
func TestRunSurvivesNonsense(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	w := newWorld(c, 62)
	w.grow(20)
	db := openStore(t)
	started(t, follow(t, db, c, Options{}))
	for name, raw := range map[string]string{
		"HTML": "<!doctype html><title>502</title>", "empty": "", "null": "null", "a string": `"ok"`,
		"truncated":   `[{"jsonrpc":"2.0","id":1,"resu`,
		"empty batch": "[]", "one error": `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no"}}`,
		"wrong ids": `[{"jsonrpc":"2.0","id":900001,"result":"0x7a69"},{"jsonrpc":"2.0","id":"x","result":null}]`,
		"no ids":    `[{"result":"0x7a69"},{"result":null},{"result":null},{"result":null}]`,
		"nulls":     `[null,null,null,null]`, "nested": strings.Repeat("[", 100_000),
	} {
		undo := c.Inject(rpctest.Always(rpctest.Answer{Raw: []byte(raw), Status: 200}))
		w.grow(3)
		eventually(t, name+" is an error in the status", func() bool { return status(t, db).LastError != "" })
		undo()
		eventually(t, "goes on after "+name, func() bool {
			return cursorOf(t, db).Hash == c.Head().Hash() && status(t, db).LastError == ""
		})
	}
	wantFresh(t, db, c)
}
