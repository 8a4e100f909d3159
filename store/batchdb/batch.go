package batchdb

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/column"
	"repute/store/manifestdb"
	"repute/store/query"
)

// Bounds of a batch.
const (
	// MaxItems is the most items of a batch.
	MaxItems = 500
	// MaxMatches is the most agents of one item: an address may own thousands.
	MaxMatches = 20
	// MaxAgents is the most different agents of a batch. Items that would exceed it fail.
	MaxAgents = 1000
)

// Item names agents in one of three ways.
type Item struct {
	// ID names one agent; nil for none.
	ID *repute.AgentRef
	// Address names the agents of all chains whose verified wallet it is, or whose owner; nil for none.
	Address *common.Address
	// Domain names the agents that a domain stands for. It is in lower case; "" for none.
	Domain string
	// Err is what is wrong with the item; the others are still read.
	Err error
}

// Ways in which an item names an agent, besides those of manifestdb for domains.
const (
	// HowID: the item is the agent's id.
	HowID manifestdb.How = "id"
	// HowOwner: the address owns the agent.
	HowOwner manifestdb.How = "owner"
)

// Match is an agent that an item names.
type Match struct {
	Agent repute.AgentID
	// How has every way in which the item names the agent, the strongest first.
	How []manifestdb.How
	// Proven reports whether one of the ways is proven, so that nobody else can bring the agent under this item.
	Proven bool
}

// Found is what one item names.
type Found struct {
	// Matches are ordered: proven ones first, then by chain and token.
	Matches []Match
	// More says that there are more than MaxMatches.
	More bool
	// Err is why the item has no answer: repute.ErrNotFound, repute.ErrInvalid or repute.ErrLimited.
	Err error
}

// Batch is what the items name, from one snapshot.
type Batch struct {
	// Found has one entry for each item, in the order asked for.
	Found []Found
	// Reputations are those of all agents in Found, with counts and view.
	Reputations map[repute.AgentID]query.Reputation
	// AsOf has one entry for each chain.
	AsOf []repute.AsOf
}

// Read reads the newest reputations of all agents that the items name. An item that names nothing, or that is wrong,
// does not fail the others. defaultChain completes bare token ids, as in chaindb.ResolveAgent. repute.ErrInvalid: there
// are more than MaxItems.
func Read(ctx context.Context, db *store.DB, items []Item, defaultChain uint64) (b Batch, err error) {
	if len(items) > MaxItems {
		return b, repute.Invalid("agents", "too many", fmt.Sprintf("at most %d", MaxItems))
	}
	err = chaindb.View(ctx, db, "read batch", func(ctx context.Context, tx pgx.Tx) (err error) {
		b, err = readBatch(ctx, tx, db.Options().SharedHosts, items, defaultChain)
		return err
	})
	return b, err
}

// readBatch is Read within the transaction of a snapshot. shared are the hosts whose files prove nothing of a domain.
func readBatch(ctx context.Context, tx pgx.Tx, shared []string, items []Item, defaultChain uint64) (Batch, error) {
	chains, err := chaindb.ReadChains(ctx, tx, nil)
	if err != nil {
		return Batch{}, err
	}
	b := Batch{Found: make([]Found, len(items)), AsOf: chaindb.LatestOf(chains)}
	if err := b.find(ctx, tx, shared, items, chains, defaultChain); err != nil {
		return Batch{}, err
	}
	return b, b.read(ctx, tx, b.agents())
}

// find sets what each item names.
func (b *Batch) find(ctx context.Context, tx pgx.Tx, shared []string, items []Item, chains []*chaindb.ChainView,
	defaultChain uint64) error {
	byAddress, err := agentsOfAddresses(ctx, tx, items, chains)
	if err != nil {
		return err
	}
	byDomain, err := agentsOfDomains(ctx, tx, shared, items)
	if err != nil {
		return err
	}
	for i, item := range items {
		f := &b.Found[i]
		switch {
		case item.Err != nil:
			f.Err = item.Err
		case item.ID != nil:
			id, err := chaindb.IdentifyAgent(chains, *item.ID, defaultChain)
			if f.Err = err; err == nil {
				f.Matches = []Match{{Agent: id, How: []manifestdb.How{HowID}, Proven: true}}
			}
		case item.Address != nil:
			f.set(byAddress[*item.Address])
		default:
			f.set(byDomain[item.Domain])
		}
	}
	return nil
}

// set keeps the first matches in their order.
func (f *Found) set(all []Match) {
	slices.SortStableFunc(all, func(a, b Match) int {
		if a.Proven != b.Proven {
			if a.Proven {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.Agent.ChainID, b.Agent.ChainID), a.Agent.TokenID.Cmp(&b.Agent.TokenID))
	})
	f.Matches, f.More = all[:min(len(all), MaxMatches)], len(all) > MaxMatches
}

// agents returns the different agents of all items. Items that exceed MaxAgents fail.
func (b *Batch) agents() (ids []repute.AgentID) {
	seen := map[repute.AgentID]bool{}
	for i := range b.Found {
		f := &b.Found[i]
		fresh := 0
		for _, m := range f.Matches {
			if !seen[m.Agent] {
				fresh++
			}
		}
		if len(ids)+fresh > MaxAgents {
			*f = Found{Err: fmt.Errorf("the batch has %d agents already: ask for this one in another batch: %w",
				len(ids),
				repute.ErrLimited)}
			continue
		}
		for _, m := range f.Matches {
			if !seen[m.Agent] {
				seen[m.Agent] = true
				ids = append(ids, m.Agent)
			}
		}
	}
	return ids
}

// read reads the agents. Ids of agents that are not indexed fail their items.
func (b *Batch) read(ctx context.Context, tx pgx.Tx, ids []repute.AgentID) error {
	counts, err := countsOf(ctx, tx, ids)
	if err != nil {
		return err
	}
	b.Reputations, err = query.ReadReputations(ctx, tx, slices.DeleteFunc(ids, func(id repute.AgentID) bool {
		_, known := counts[column.KeyOf(id)]
		return !known
	}), query.ReputationParts{Summary: true, Tags: true, Results: true, Independence: true})
	if err != nil {
		return err
	}
	views := map[uint64]repute.AsOf{}
	for _, a := range b.AsOf {
		views[a.ChainID] = a
	}
	for id, r := range b.Reputations {
		r.Counts, r.AsOf = counts[column.KeyOf(id)], views[id.ChainID]
		b.Reputations[id] = r
	}
	for i := range b.Found {
		for _, m := range b.Found[i].Matches {
			if _, known := b.Reputations[m.Agent]; !known {
				b.Found[i] = Found{Err: repute.Missing("agent %s", m.Agent.Short())}
				break
			}
		}
	}
	return nil
}

// countsOf returns the totals of agents. Agents that are not indexed are absent.
func countsOf(ctx context.Context, tx pgx.Tx, ids []repute.AgentID) (map[column.AgentKey]repute.AgentCounts, error) {
	chains, tokens := column.KeyColumns(ids)
	rows, _ := tx.Query(ctx, `
		select a.chain_id, a.token_id, a.feedback, a.revoked, a.clients, a.responses, a.validations
		from unnest($1::bigint[], $2::numeric[]) as k(chain_id, token_id)
		join agents a on (a.chain_id, a.token_id) = (k.chain_id, k.token_id)`, chains, tokens)
	out := make(map[column.AgentKey]repute.AgentCounts, len(ids))
	var k column.AgentKey
	var c repute.AgentCounts
	_, err := pgx.ForEachRow(rows, []any{&k.Chain, (*column.TokenNum)(&k.Token), &c.Feedback, &c.Revoked, &c.Clients,
		&c.Responses, &c.Validations}, func() error {
		out[k] = c
		return nil
	})
	return out, err
}
