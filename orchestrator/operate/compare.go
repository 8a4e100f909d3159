package operate

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
	"repute/contracts/bindings"
	"repute/orchestrator/wallet"
	"repute/store"
	"repute/store/rundb"
	"repute/store/walletdb"
)

// TreasuryCompared is a comparison of a treasury's books at a block with its indexed events.
// An empty Differ is a proof only within the bounds of Policies and Windows: books beyond maxBooks are not compared.
type TreasuryCompared struct {
	Block     uint64   `json:"block"`
	BlockHash string   `json:"blockHash"`
	Policies  int      `json:"policies" doc:"agents whose policy at this block was compared with the last PolicySet that is indexed"`
	Windows   int      `json:"windows" doc:"spending windows, of native coin and tokens, whose sum at this block was compared with the indexed payments"`
	Differ    []string `json:"differ" doc:"what the indexed events do not account for: an endpoint held some back"`
}

// Bounds of a comparison.
// maxBooks is how many books are read, at two views for native coin and one for a token, all in one request to the
// endpoints. maxPayments bounds the events of one query: a treasury with more payments in its open windows is not
// compared.
const (
	maxBooks    = 200
	maxPayments = 10_000
)

// book is the treasury's record about an agent: its policy with the window of native coin, or the
// window of a token.
type book struct {
	agent common.Hash
	token common.Address // zero: native coin
}

// CompareTreasury compares a treasury's policies and spending windows at the newest indexed block with the events
// up to there. An endpoint that holds events back is found by it, since the contract's own sums contain what it did
// not tell. The comparison of a block is made once and remembered, as the status is asked for often.
// repute.ErrUnavailable: it cannot be done now.
//
// The values of the chain are read at the exact block and hash of the index's cursor (LookAt), never at the newest
// block: a block between the two would show payments that the index cannot know yet. The answer is kept by the hash
// of the block, so that a reorganization compares again.
func (o *Operator) CompareTreasury(ctx context.Context, t walletdb.Treasury) (TreasuryCompared, error) {
	if last := o.compared.Load(); last != nil && last.BlockHash == t.Cursor.Hash.Hex() {
		return *last, nil
	}
	if (t.Cursor.Hash == common.Hash{}) {
		return TreasuryCompared{}, fmt.Errorf("the treasury's earlier events are still being read: %w",
			repute.ErrUnavailable)
	}
	c := &comparison{treasury: t, out: TreasuryCompared{Block: t.Cursor.Number, BlockHash: t.Cursor.Hash.Hex(),
		Differ: []string{}},
		names: map[common.Hash]string{}, said: map[common.Hash]json.RawMessage{}}
	if err := c.list(ctx, o.db); err != nil {
		return c.out, err
	}
	seen, err := o.wallet.LookAt(ctx, t.ChainID, t.Address, t.Cursor, c.views()...)
	if err != nil {
		return c.out, err
	}
	if err := c.read(seen); err != nil {
		return c.out, err
	}
	if err := c.sum(ctx, o.db); err != nil {
		return c.out, err
	}
	o.compared.Store(&c.out)
	return c.out, nil
}

// comparison is the state of one comparison.
type comparison struct {
	treasury walletdb.Treasury
	out      TreasuryCompared
	books    []book
	names    map[common.Hash]string          // of agents by their keys
	said     map[common.Hash]json.RawMessage // the last PolicySet of each
	windows  map[book]window
}

// window is the spending that a treasury counts in a book.
type window struct {
	start time.Time
	spent *big.Int
}

// list finds the books: of the agents of this service, and of all that events name.
//
// The agents of this service come first, so that they are within maxBooks whatever events name. Events are the newest
// first, so that the first PolicySet of an agent is its last one.
func (c *comparison) list(ctx context.Context, db *store.DB) error {
	modules, err := rundb.Modules(ctx, db)
	if err != nil {
		return err
	}
	for _, m := range modules {
		key := crypto.Keccak256Hash([]byte(m.Slug))
		c.names[key] = m.Slug
		c.add(book{agent: key})
	}
	events, err := walletdb.TreasuryEventsOf(ctx, db, c.treasury, []string{"PolicySet", "TokenPolicySet"}, time.Time{},
		maxPayments)
	if err != nil {
		return err
	}
	for _, e := range events { // the newest first
		var fields map[string]any
		if err := json.Unmarshal(e.Fields, &fields); err != nil {
			return fmt.Errorf("stored event of transaction %s: %w", e.Tx, err)
		}
		if e.Kind == "PolicySet" && c.said[e.Agent] == nil {
			c.said[e.Agent] = e.Fields
		}
		c.add(book{agent: e.Agent})
		if e.Kind == "TokenPolicySet" {
			c.add(book{e.Agent, common.HexToAddress(fmt.Sprint(fields["token"]))})
		}
	}
	return nil
}

// add records a book whose values are to be read.
func (c *comparison) add(b book) {
	if len(c.books) < maxBooks && !slices.Contains(c.books, b) {
		c.books = append(c.books, b)
	}
}

// name returns the slug of an agent for an error text, or its key if the slug is not known.
func (c *comparison) name(agent common.Hash) string {
	if slug := c.names[agent]; slug != "" {
		return slug
	}
	return agent.Hex()
}

// views returns the contract views that read the books.
// The order of the views MUST be the one in which read takes the answers.
func (c *comparison) views() (out []wallet.View) {
	b := bindings.NewOpenFiTreasury()
	for _, k := range c.books {
		data := [][]byte{b.PackNativeWindow(k.agent), b.PackAgentPolicies(k.agent)}
		if (k.token != common.Address{}) {
			data = [][]byte{b.PackErc20Window(k.agent, k.token)}
		}
		for _, d := range data {
			out = append(out, wallet.View{To: c.treasury.Address, Data: d})
		}
	}
	return out
}

// read decodes the values on the chain, and compares policies. The answers are in the order of views: two for a
// book of native coin, one for a token.
func (c *comparison) read(seen wallet.Seen) error {
	b := bindings.NewOpenFiTreasury()
	c.windows = map[book]window{}
	answers := seen.Answers
	for _, k := range c.books {
		if (k.token != common.Address{}) {
			w, err := b.UnpackErc20Window(answers[0])
			if err != nil {
				return noTreasury(c.treasury.Address)
			}
			c.windows[k], answers = window{time.Unix(w.Start.Int64(), 0), w.Spent}, answers[1:]
			continue
		}
		w, err := b.UnpackNativeWindow(answers[0])
		if err != nil {
			return noTreasury(c.treasury.Address)
		}
		p, err := b.UnpackAgentPolicies(answers[1])
		if err != nil {
			return noTreasury(c.treasury.Address)
		}
		c.windows[k], answers = window{time.Unix(w.Start.Int64(), 0), w.Spent}, answers[2:]
		c.out.Policies++
		differ, err := policyDiffers(c.said[k.agent], &p)
		if err != nil {
			return err
		}
		if differ != "" {
			c.out.Differ = append(c.out.Differ,
				fmt.Sprintf("policy of %s: the treasury's is not that of the last PolicySet that is indexed: %s",
					c.name(k.agent),
					differ))
		}
	}
	return nil
}

// sum compares the windows with the payments since their oldest counted one. A larger sum is no
// difference: an earlier payment of the same second may no longer count.
//
// Payments are read after the chain's values, from the index as it is then. A reorganization in between would compare
// payments of one chain with sums of another: the treasury's count of reorganizations shows it, and the comparison is
// given up as repute.ErrUnavailable, to be made again at the next block.
func (c *comparison) sum(ctx context.Context, db *store.DB) error {
	var since time.Time
	for _, w := range c.windows {
		if w.spent.Sign() > 0 && (since.IsZero() || w.start.Before(since)) {
			since = w.start
		}
	}
	c.out.Windows = len(c.windows)
	if since.IsZero() {
		return nil
	}
	events, err := walletdb.TreasuryEventsOf(ctx, db, c.treasury, []string{"NativeExecuted", "ERC20Transferred"}, since,
		maxPayments+1)
	if err != nil {
		return err
	}
	if now, err := walletdb.ReadTreasury(ctx, db, c.treasury.ChainID, c.treasury.Address); err != nil ||
		now.Reorgs != c.treasury.Reorgs || len(events) > maxPayments {
		return fmt.Errorf("blocks were replaced meanwhile, or there are more than %d payments since %s: %w",
			maxPayments,
			since.UTC().Format(time.RFC3339), repute.ErrUnavailable)
	}
	paid, err := c.paid(events)
	if err != nil {
		return err
	}
	for _, k := range c.books {
		if w := c.windows[k]; paid[k].Cmp(w.spent) < 0 {
			coin := "native coin"
			if (k.token != common.Address{}) {
				coin = "token " + k.token.Hex()
			}
			c.out.Differ = append(c.out.Differ,
				fmt.Sprintf("payments of %s in %s: the treasury counts %s since %s, the indexed ones are %s",
					c.name(k.agent),
					coin, w.spent, w.start.UTC().Format(time.RFC3339), paid[k]))
		}
	}
	return nil
}

// paid sums payments by the windows that they are in.
// NativeExecuted has a member value and no token, ERC20Transferred has amount and token, so that the zero address is
// the book of native coin. Payments of books that are not compared are skipped.
func (c *comparison) paid(events []walletdb.TreasuryEvent) (map[book]*big.Int, error) {
	out := map[book]*big.Int{}
	for _, k := range c.books {
		out[k] = new(big.Int)
	}
	for _, e := range events {
		var fields struct{ Value, Amount, Token string }
		if err := json.Unmarshal(e.Fields, &fields); err != nil {
			return nil, fmt.Errorf("stored event of transaction %s: %w", e.Tx, err)
		}
		k := book{e.Agent, common.HexToAddress(fields.Token)}
		amount, ok := new(big.Int).SetString(fields.Value+fields.Amount, 10) // one of the two is empty
		if w, known := c.windows[k]; ok && known && !e.Block.Time.Before(w.start) {
			out[k].Add(out[k], amount)
		}
	}
	return out, nil
}
