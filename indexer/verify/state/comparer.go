package state

import (
	"context"
	"log/slog"
	"math/big"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/contracts"
	"repute/indexer/node"
	"repute/indexer/verify/missing"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/verifydb"
)

// Comparer compares the state of the agents of one chain.
type Comparer struct {
	db    *store.DB
	chain repute.Chain
	views *contracts.Views
	spend func(ctx context.Context, calls int) error
	log   *slog.Logger
}

// New returns a Comparer of a chain. spend waits until that many calls may be made.
func New(db *store.DB, c repute.Chain, spend func(ctx context.Context, calls int) error, log *slog.Logger) *Comparer {
	return &Comparer{db: db, chain: c, views: contracts.NewViews(), spend: spend, log: log}
}

// Part is a portion of the agents of a chain, in the order of their token ids.
type Part struct {
	First bool   // the number of all agents is compared, too
	From  uint64 // the lowest token id
	Most  int    // how many agents
}

// Result is what the comparison of a Part found.
type Result struct {
	Next     uint64             // the token id at which the next part begins, 0 after the last part
	Compared int                // agents
	Gaps     []chaindb.Gap      // events that seem to be missing
	Skipped  []repute.EventKind // kinds of event whose views the endpoint did not answer
}

// Compare compares a part with the state that one endpoint has of a block. With the last part it
// compares all approved operators. It changes nothing: a gap is a suspicion until another look, by
// Shows, finds it too. node.ErrNoState and node.ErrMoved say that the endpoint cannot compare this
// block.
func (x *Comparer) Compare(ctx context.Context, n *node.Node, at repute.Block, p Part) (r Result, err error) {
	var from repute.TokenID
	from.SetUint64(p.From)
	agents, err := verifydb.AgentsThen(ctx, x.db, x.chain.ID, at.Number, nil, from, p.Most)
	if err != nil {
		return r, err
	}
	c := x.at(n, at)
	for i := range agents {
		c.agent(&agents[i])
	}
	if err := c.askAll(ctx); err != nil {
		return r, err
	}
	if p.First {
		if err := c.count(ctx); err != nil {
			return r, err
		}
	}
	if len(agents) == p.Most {
		r.Next = agents[len(agents)-1].ID.Uint64() + 1
	} else if err := c.operators(ctx); err != nil {
		return r, err
	}
	r.Gaps, r.Compared = c.gaps, len(agents)
	for view, err := range c.unanswered {
		x.log.Debug("not verified", "view", view, "error", err)
		r.Skipped = append(r.Skipped, kindsOfView(view)...)
	}
	return r, nil
}

// at returns a comparison with the state that an endpoint has of a block.
func (x *Comparer) at(n *node.Node, block repute.Block) *comparison {
	return &comparison{Comparer: x, node: n, at: block, unanswered: map[string]error{}}
}

// Shows compares the subject of a gap with the state that one endpoint has of a block, and reports
// whether the gap is still there.
func (x *Comparer) Shows(ctx context.Context, n *node.Node, at repute.Block, h chaindb.Gap) (bool, error) {
	c := x.at(n, at)
	if o, ok := missing.Operator(h); ok {
		now, err := c.operatorAt(ctx, o)
		if err != nil {
			return false, err
		}
		c.operator(now)
		err = c.ask(ctx)
		return c.shows(h), err
	}
	if h.Agent == nil {
		err := c.count(ctx)
		return c.shows(h), err
	}
	agents, err := verifydb.AgentsThen(ctx, c.db, c.chain.ID, at.Number, []repute.TokenID{*h.Agent},
		repute.TokenID{}, 1)
	if err != nil {
		return false, err
	}
	if len(agents) == 0 { // none is stored: is there one?
		want(c, "ownerOf", c.chain.Identity, c.views.OwnerOf(*h.Agent), func(_ common.Address, gone bool) {
			if !gone {
				c.differs(h)
			}
		})
	}
	for i := range agents {
		c.about(agents[i], h)
	}
	if err := c.askAll(ctx); err != nil {
		return false, err
	}
	return c.shows(h), nil
}

// operatorAt returns what is stored of a pair of owner and operator.
func (c *comparison) operatorAt(ctx context.Context, o verifydb.OperatorThen) (verifydb.OperatorThen, error) {
	before := verifydb.OperatorThen{Owner: o.Owner,
		Operator: common.BigToAddress(new(big.Int).Sub(o.Operator.Big(), common.Big1))}
	if o.Operator == (common.Address{}) {
		before.Operator = o.Operator
	}
	pairs, err := verifydb.OperatorsThen(ctx, c.db, c.chain.ID, c.at.Number, &before, 1)
	if err != nil || len(pairs) == 0 || pairs[0].Owner != o.Owner || pairs[0].Operator != o.Operator {
		return o, err
	}
	return pairs[0], nil
}

// shows reports whether the comparison found the gap.
func (c *comparison) shows(h chaindb.Gap) bool {
	return missing.Contains(c.gaps, h)
}

// kindsOfView returns the events whose outcome a view shows.
func kindsOfView(view string) []repute.EventKind {
	switch view {
	case "ownerOf", "count":
		return []repute.EventKind{repute.KindTransfer, repute.KindRegistered}
	case "tokenURI":
		return []repute.EventKind{repute.KindRegistered, repute.KindURIUpdated}
	case "getAgentWallet", "getMetadata":
		return []repute.EventKind{repute.KindMetadataSet}
	case "getApproved":
		return []repute.EventKind{repute.KindApproval}
	case "isApprovedForAll":
		return []repute.EventKind{repute.KindApprovalForAll}
	case "getClients", "getLastIndex":
		return []repute.EventKind{repute.KindNewFeedback}
	case "readFeedback":
		return []repute.EventKind{repute.KindFeedbackRevoked}
	case "getResponseCount":
		return []repute.EventKind{repute.KindResponseAppended}
	case "getAgentValidations":
		return []repute.EventKind{repute.KindValidationRequest}
	case "getValidationStatus":
		return []repute.EventKind{repute.KindValidationResponse}
	}
	return nil // getSummary: readFeedback is asked instead
}
