package approval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"repute"
	"repute/contracts"
	"repute/orchestrator/journal"
	"repute/orchestrator/safety"
	"repute/orchestrator/transaction"
	"repute/orchestrator/trustgate"
	"repute/policy"
	"repute/store"
	"repute/store/query"
)

// Shown is what a person sees who is asked to approve of a transaction. The subject of the
// question has the hash of it: an answer holds for exactly that.
type Shown struct {
	Agent       ShownAgent                `json:"agent"`
	ValueAtRisk string                    `json:"valueAtRisk" doc:"declared by the task, in wei"`
	ChainID     uint64                    `json:"chainId"`
	Target      string                    `json:"target"`
	Payee       string                    `json:"payee,omitempty" doc:"agent whose wallet the target is, compared with the newest final block that is indexed"`
	Value       string                    `json:"value" doc:"native coin, in wei"`
	Purpose     string                    `json:"purpose" doc:"in the agent's words: nothing checks them"`
	Calls       []ShownCall               `json:"calls" doc:"the call, and those of known functions that it carries"`
	Declared    []transaction.Placeholder `json:"placeholders" doc:"values that the dry run left open, with the bounds that were judged"`
	Amounts     []ShownAmount             `json:"amounts" doc:"of tokens that the call names"`
	Effects     []ShownAmount             `json:"effects" doc:"what the simulation shows leaving the treasury"`
	Events      []ShownEvent              `json:"events" doc:"transfers and approvals of tokens that the simulation emits, approvals first; none where the node cannot tell"`
	// EventsOmitted counts those that are too many to show.
	EventsOmitted int             `json:"eventsOmitted,omitempty" doc:"events beyond the first 64"`
	Names         []ShownName     `json:"names" doc:"addresses among all of this that are known"`
	Reasons       []policy.Reason `json:"reasons"`
}

// ShownCall is a call with its decoded arguments.
type ShownCall contracts.Call

// ShownAgent is the agent with the score that decided.
type ShownAgent struct {
	Slug       string  `json:"slug"`
	ID         string  `json:"id,omitempty" doc:"eip155:chain:registry:id, absent without identity"`
	Status     string  `json:"status" doc:"rated, thin or unrated"`
	Score      float64 `json:"score"`
	Low        float64 `json:"low"`
	High       float64 `json:"high"`
	Confidence float64 `json:"confidence"`
	Tier       int64   `json:"tier"`
	Snapshot   string  `json:"snapshot,omitempty" doc:"sha256 of the final score that decided"`
	Block      uint64  `json:"block,omitempty" doc:"of that score"`
}

// ShownAmount is an amount of a token.
type ShownAmount struct {
	Token    string `json:"token"`
	Symbol   string `json:"symbol,omitempty" doc:"absent where the token is not known"`
	Decimals *uint8 `json:"decimals,omitempty"`
	Units    string `json:"units,omitempty" doc:"in the smallest unit; absent for what has no amount, as an NFT"`
	Text     string `json:"text" doc:"for people: 12.5 USDC, or the units where decimals are not known"`
}

// ShownName says who an address is.
type ShownName struct {
	Address string   `json:"address"`
	Names   []string `json:"names" doc:"e.g. identity registry, treasury, wallet of agent 8453:22"`
}

// Describer tells people what transactions do, by the contracts, tokens and agents that are known.
type Describer struct {
	Db         *store.DB
	Calls      *contracts.CallDecoder
	Tokens     []repute.Stablecoin
	Registries []safety.Registries
	// names says who an address is by the configuration; nil: nobody.
	Names func(chainID uint64, a common.Address) []string
}

// Describe fills in what the bytes of a transaction and its simulation show. listed is the
// function that an allow-list names for it, nil where none does.
func (d *Describer) Describe(ctx context.Context, out *Shown, tx *transaction.Tx, listed *contracts.Function,
	s *transaction.Simulation) error {
	out.ChainID, out.Target, out.Payee = tx.ChainID, tx.Target.Hex(), tx.Payee
	out.Value, out.Purpose = cmp.Or(tx.Value, "0"), tx.Purpose
	out.Calls, out.Amounts, out.Effects, out.Names = []ShownCall{}, []ShownAmount{}, []ShownAmount{}, []ShownName{}
	if tx.Token != nil {
		out.Amounts = append(out.Amounts, d.amount(tx.ChainID, *tx.Token, cmp.Or(tx.Amount, "0")))
	}
	for _, c := range d.Calls.Decode(tx.Target, tx.Data, listed) {
		out.Calls = append(out.Calls, ShownCall(c))
		out.Amounts = append(out.Amounts, d.amountsOf(tx.ChainID, &c)...)
	}
	for _, o := range transaction.Outflows(s.Treasury, s.Logs) {
		out.Effects = append(out.Effects, d.amount(tx.ChainID, o.Token, o.Amount))
	}
	out.Events, out.EventsOmitted = d.events(tx.ChainID, s.Treasury, s.Logs)
	return d.name(ctx, out, s.Treasury)
}

// DescribeAgent is an agent as a trust decision saw it.
func DescribeAgent(slug string, v *trustgate.Decision) ShownAgent {
	a, pin := v.Agent, v.Pin
	out := ShownAgent{Slug: slug, ID: a.ID, Status: a.Status, Score: a.Score, Low: a.Low, High: a.High,
		Confidence: a.Confidence, Tier: a.Tier, Block: pin.Block}
	if pin.Block != 0 {
		out.Snapshot = pin.Result.Hex()
	}
	return out
}

// Hash names all that is shown, but for amounts of transfers that do not leave the treasury, as
// what an exchange pays out: they change with each block, and no answer about them would hold.
func (s *Shown) Hash() string {
	fixed := *s
	fixed.Events = slices.Clone(s.Events)
	for i := range fixed.Events {
		fixed.Events[i].forget()
	}
	return journal.Digest(journal.JSON(fixed))
}

// amountsOf are the amounts of tokens that a known call moves.
func (d *Describer) amountsOf(chainID uint64, c *contracts.Call) []ShownAmount {
	if c.Decoded == nil || c.Target == "" {
		return nil
	}
	by, moves := transaction.Movers[c.Decoded.Function.Selector]
	data, err := hexutil.Decode(c.Data)
	if !moves || err != nil || len(data) < 4 {
		return nil
	}
	token, amount, ok := by.Read(common.HexToAddress(c.Target), data[4:])
	if !ok {
		return nil
	}
	if _, known := d.token(chainID, token); !known && c.Source != contracts.SourceKnown {
		return nil
	}
	return []ShownAmount{d.amount(chainID, token, amount.String())}
}

// token is what is known of a token.
func (d *Describer) token(chainID uint64, at common.Address) (repute.Stablecoin, bool) {
	i := slices.IndexFunc(d.Tokens, func(c repute.Stablecoin) bool { return c.ChainID == chainID && c.Address == at })
	if i < 0 {
		return repute.Stablecoin{}, false
	}
	return d.Tokens[i], true
}

// amount is an amount of a token, with symbol and decimals where the token is known.
func (d *Describer) amount(chainID uint64, at common.Address, units string) ShownAmount {
	out := ShownAmount{Token: at.Hex(), Units: units, Text: units + " units of " + at.Hex()}
	if units == "" {
		out.Text = "something of " + at.Hex()
		return out
	}
	coin, known := d.token(chainID, at)
	n, ok := new(big.Int).SetString(units, 10)
	if !known || !ok {
		return out
	}
	out.Symbol, out.Decimals = coin.Symbol, &coin.Decimals
	out.Text = repute.Amount{Value: n, Decimals: coin.Decimals}.Decimal() + " " + coin.Symbol
	return out
}

// maxNames bounds how many agents an address is named after.
const maxNames = 3

// name adds who the addresses are that are shown: contracts and wallets of the configuration,
// owners and wallets of indexed agents.
func (d *Describer) name(ctx context.Context, s *Shown, treasury common.Address) error {
	list := s.addresses()
	agents, err := query.AddressAgents(ctx, d.Db, s.ChainID, list, maxNames)
	if err != nil && !errors.Is(err, repute.ErrNotFound) {
		return fmt.Errorf("agents at the addresses of a transaction: %w", err)
	}
	for _, a := range list {
		names := d.configured(s.ChainID, a)
		if a == treasury && treasury != (common.Address{}) && !slices.Contains(names, "treasury") {
			names = append(names, "treasury")
		}
		if names = append(names, agents[a]...); len(names) > 0 {
			s.Names = append(s.Names, ShownName{a.Hex(), names})
		}
	}
	return nil
}

// addresses are those of a transaction and its arguments, each once.
func (s *Shown) addresses() []common.Address {
	list := []common.Address{common.HexToAddress(s.Target)}
	add := func(a common.Address) {
		if !slices.Contains(list, a) && len(list) < 64 {
			list = append(list, a)
		}
	}
	for _, a := range s.Amounts {
		add(common.HexToAddress(a.Token))
	}
	for _, p := range s.Declared {
		for _, a := range p.OneOf {
			add(a)
		}
	}
	for _, e := range s.Events {
		add(common.HexToAddress(e.Token))
		add(common.HexToAddress(e.From))
		add(common.HexToAddress(e.To))
	}
	for _, c := range s.Calls {
		for _, a := range c.Arguments {
			if a.Type == "address" {
				add(common.HexToAddress(a.Value))
			}
		}
	}
	return list
}

// configured are the names of an address that the configuration tells.
func (d *Describer) configured(chainID uint64, a common.Address) (names []string) {
	for i := range d.Registries {
		switch r := &d.Registries[i]; {
		case r.ChainID != chainID:
		case a == r.Identity:
			names = append(names, "identity registry")
		case a == r.Reputation:
			names = append(names, "reputation registry")
		case slices.Contains(r.Validations, a):
			names = append(names, "validation registry")
		}
	}
	if coin, known := d.token(chainID, a); known {
		names = append(names, "token "+coin.Symbol)
	}
	if d.Names != nil {
		names = append(names, d.Names(chainID, a)...)
	}
	return names
}
