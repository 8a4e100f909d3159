package payments

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/contracts"
	"repute/devnet"
	"repute/indexer"
	"repute/indexer/documents"
	"repute/indexer/node"
	"repute/internal/pgtest"
	"repute/resolver"
	"repute/store"
	"repute/store/query"
	"repute/store/trustdb"
)

// coinCode creates a contract that logs Transfer(from, to, amount) as it is called with.
var coinCode = common.FromHex("603160" + "0a5f3960315ff3" +
	"602060405f37602035" + "5f35" + "7f" + "ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef" +
	"60205fa300")

// world is a real chain with an agent, 0, of account 0, two coins of which one is listed,
// and an index of it.
type world struct {
	*testing.T
	dn         *devnet.Devnet
	db         *store.DB
	pool       *node.Pool
	coin, free common.Address
	loop       *Loop
}

func newWorld(t *testing.T, o Options) *world {
	t.Helper()
	dn, err := devnet.Start(t.Context(), devnet.Options{SafeDepth: 2, FinalizedDepth: 3})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dn.Close() })
	db, err := store.Open(t.Context(), pgtest.New(t),
		store.Options{Classify: documents.Classify, Decode: contracts.Read,
			MaxConns: 8})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	w := &world{T: t, dn: dn, db: db, pool: poolOf(t, dn)}
	b := dn.Batch()
	b.Register(dn.Account(0), "")
	b.Send(dn.Account(1), nil, coinCode)
	b.Send(dn.Account(1), nil, coinCode)
	mined := w.mine(b)
	w.coin, w.free = mined.Receipts[1].ContractAddress, mined.Receipts[2].ContractAddress
	o.Coins = []repute.Stablecoin{{ChainID: dn.Chain().ID, Address: w.coin, Symbol: "USDX", Decimals: 6}}
	w.loop = New(db, w.pool, dn.Chain().ID, o)
	return w
}

func poolOf(t *testing.T, dn *devnet.Devnet) *node.Pool {
	t.Helper()
	n, err := node.New(dn.RPCURL(), node.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := node.NewPool([]*node.Node{n}, node.PoolOptions{ChainID: dn.Chain().ID})
	t.Cleanup(p.Close)
	return p
}

func (w *world) mine(b *devnet.Batch) devnet.Mined {
	w.Helper()
	m, err := b.Mine(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	return m
}

// transfer is one call of a coin.
type transfer struct {
	coin     common.Address
	from, to int // accounts
	amount   *big.Int
}

func usd(n int64) *big.Int { return big.NewInt(n * 1e6) }

// pay makes each transfer a transaction of one block.
func (w *world) pay(list ...transfer) (txs []common.Hash) {
	w.Helper()
	b := w.dn.Batch()
	for _, p := range list {
		b.Send(w.dn.Account(9), &p.coin, append(append(common.BytesToHash(w.who(p.from).Bytes()).Bytes(),
			common.BytesToHash(w.who(p.to).Bytes()).Bytes()...), common.BigToHash(p.amount).Bytes()...))
	}
	for _, r := range w.mine(b).Receipts {
		txs = append(txs, r.TxHash)
	}
	return txs
}

func (w *world) who(account int) common.Address { return w.dn.Account(account).Address }

// claims makes a feedback file of agent 0 by a client, with the members of its payment.
func (w *world) file(client int, payment string) string {
	return fmt.Sprintf(`data:application/json,{"agentRegistry":"eip155:%d:%s","agentId":0,"clientAddress":"%s","createdAt":"2026-01-01T00:00:00Z","value":90,"proofOfPayment":%s}`,
		w.dn.Chain().ID, w.dn.Chain().Identity, w.who(client), strings.ReplaceAll(payment, " ", ""))
}

func (w *world) proof(from, to int, tx common.Hash) string {
	return fmt.Sprintf(`{"fromAddress":"%s","toAddress":"%s","chainId":"%d","txHash":"%s"}`, w.who(from), w.who(to),
		w.dn.Chain().ID, tx)
}

// rate makes each file the next rating of a client, of one block.
func (w *world) rate(client int, files ...string) {
	w.Helper()
	b := w.dn.Batch()
	for _, f := range files {
		b.GiveFeedback(w.dn.Account(client), devnet.Rating{Value: big.NewInt(90), Tag1: "quality", URI: f})
	}
	w.mine(b)
}

// settle lets what happened become final, indexes it, reads the files and looks all claims up.
func (w *world) settle() {
	w.Helper()
	for range 4 {
		if _, err := w.dn.Mine(w.Context()); err != nil {
			w.Fatal(err)
		}
	}
	w.index()
	w.read()
	w.look()
}

func (w *world) index() {
	w.Helper()
	if err := indexer.NewFollower(w.db, w.dn.Chain(), w.pool,
		indexer.Options{Once: true, Poll: 10 * time.Millisecond}).Run(w.Context()); err != nil {
		w.Fatal(err)
	}
}

// read runs the documents loop until nothing is due.
func (w *world) read() {
	w.Helper()
	client, err := resolver.New(resolver.Options{})
	if err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.Context())
	done := make(chan error, 1)
	go func() {
		done <- documents.New(w.db, client,
			documents.Options{Sweep: 10 * time.Millisecond, Upkeep: 10 * time.Millisecond}).Run(ctx)
	}()
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		var left int
		err := w.db.Pool().QueryRow(w.Context(),
			"select count(*) from uris where kind <> 'empty' and tried_at is null").Scan(&left)
		if err != nil || time.Now().After(end) {
			w.Fatalf("%d files unread: %v", left, err)
		}
		if left == 0 {
			break
		}
	}
	cancel()
	if err := <-done; err != nil {
		w.Fatal(err)
	}
}

func (w *world) look() {
	w.Helper()
	for range 100 {
		err := w.loop.Step(w.Context())
		if errors.Is(err, ErrNothingNew) {
			return
		}
		if err != nil {
			w.Fatal(err)
		}
	}
	w.Fatal("no end of claims")
}

// sees checks what became of a client's ratings, in order: "verified 12.5" or state and reason.
func (w *world) sees(client int, want ...string) {
	w.Helper()
	page, err := query.Feedback(w.Context(), w.db,
		repute.AgentID{ChainID: w.dn.Chain().ID, Registry: w.dn.Chain().Identity},
		query.FeedbackFilter{Clients: []common.Address{w.who(client)}, Order: query.OldestFirst, Limit: 100,
			At: repute.At{Finality: repute.Latest}})
	if err != nil {
		w.Fatal(err)
	}
	var got []string
	for _, f := range page.Items {
		got = append(got, said(f.Payment))
	}
	if strings.Join(got, ", ") != strings.Join(want, ", ") {
		w.Errorf("client %d: %s; want %s", client, strings.Join(got, ", "), strings.Join(want, ", "))
	}
}

func said(p *repute.Payment) string {
	switch {
	case p == nil:
		return "none"
	case p.State == repute.PaymentVerified:
		return fmt.Sprintf("%s %s of %s %s", p.State, p.Paid, p.Amount.Decimal(), p.Coin.Symbol)
	case p.Reason == "":
		return string(p.State)
	}
	return fmt.Sprintf("%s %s", p.State, p.Reason)
}

// A real node, real files: every claim is counted or refused for its own reason.
func TestClaimsAreSettled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	huge := new(big.Int).Exp(big.NewInt(10), big.NewInt(30), nil)
	txs := w.pay(
		transfer{w.coin, 2, 0, usd(12)}, // 0
		transfer{w.coin, 3, 0, usd(5)},
		transfer{w.free, 2, 0, usd(5)},
		transfer{w.coin, 2, 4, usd(5)},
		transfer{w.coin, 2, 0, new(big.Int)},
		transfer{w.coin, 5, 0, huge}, // 5
		transfer{w.coin, 6, 0, usd(100)},
		transfer{w.coin, 0, 6, usd(70)},
	)
	w.rate(2, w.file(2, w.proof(2, 0, txs[0])), // fits
		w.file(2, w.proof(2, 0, txs[0])), // claimed before
		w.file(2, w.proof(3, 0, txs[1])), // somebody else's
		w.file(2, w.proof(2, 0, txs[2])), // in no listed coin
		w.file(2, w.proof(2, 4, txs[3])), // to somebody else
		w.file(2, w.proof(2, 0, txs[4])), // nothing
		// of somebody else, said to be its own
		w.file(2, w.proof(2, 0, txs[1])),
		w.file(2, w.proof(2, 0, common.Hash{1})),       // no such transaction
		w.file(2, `{"fromAddress":5,"txHash":["0x"]}`), // nonsense
		// of a chain that nobody follows
		w.file(2, strings.Replace(w.proof(2, 0, txs[0]), `"chainId":"`, `"chainId":"99`, 1)),
	)
	w.rate(5, w.file(5, w.proof(5, 0, txs[5])))
	w.rate(6, w.file(6, w.proof(6, 0, txs[6])))
	w.rate(7, "data:application/json,{}")
	w.settle()
	w.sees(2, "verified 12 of 12 USDX", "refused used", "refused not-the-client", "refused unlisted-token",
		"refused not-the-payee",
		"refused no-transfer", "refused no-transfer", "unavailable not-found", "refused malformed",
		"unavailable chain-not-followed")
	w.sees(5, "verified 1000000000 of 1000000000000000000000000 USDX")
	w.sees(6, "refused circular")
	w.sees(7, "none")
	s, err := trustdb.ReadEvidence(t.Context(), w.db,
		repute.AgentID{ChainID: w.dn.Chain().ID, Registry: w.dn.Chain().Identity},
		repute.At{Finality: repute.Latest}, nil)
	if err != nil {
		t.Fatal(err)
	}
	paid := 0
	for _, r := range s.Rows {
		if r.Payment != nil {
			paid++
		}
	}
	if paid != 2 {
		t.Errorf("%d payments are evidence, want 2", paid)
	}
}
