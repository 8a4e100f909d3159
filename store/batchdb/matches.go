package batchdb

import (
	"context"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store/chaindb"
	"repute/store/column"
	"repute/store/manifestdb"
)

// asked returns the different keys by which items name agents, in their order.
func asked[K comparable](items []Item, key func(Item) (k K, is bool)) (list []K) {
	seen := map[K]bool{}
	for _, item := range items {
		if k, is := key(item); is && !seen[k] {
			seen[k] = true
			list = append(list, k)
		}
	}
	return list
}

// agentsOfAddresses returns the agents whose wallet or owner an address is, by the addresses of the items. Of each
// address, chain and role at most one more than MaxMatches are read.
func agentsOfAddresses(ctx context.Context, tx pgx.Tx, items []Item,
	chains []*chaindb.ChainView) (map[common.Address][]Match, error) {
	list := asked(items, func(item Item) (a common.Address, is bool) {
		if item.Address != nil {
			a = *item.Address
		}
		return a, item.Address != nil
	})
	out := map[common.Address][]Match{}
	if len(list) == 0 {
		return out, nil
	}
	registries := map[uint64]common.Address{}
	for _, c := range chains {
		registries[c.ID] = c.Identity
	}
	rows, _ := tx.Query(ctx, `
		select k.address, a.chain_id, a.token_id, a.wallet = k.address, a.owner = k.address, a.claimed
		from unnest($2::bytea[]) as k(address)
		cross join unnest($1::bigint[]) as c(chain_id)
		cross join lateral (
			(select chain_id, token_id from agents
				where chain_id = c.chain_id and wallet = k.address and wallet <> '\x' order by token_id limit $3)
			union
			(select chain_id, token_id from agents
				where chain_id = c.chain_id and owner = k.address order by token_id limit $3)) x
		join agents a on (a.chain_id, a.token_id) = (x.chain_id, x.token_id)
		order by k.address, a.chain_id, a.token_id`, chaindb.ChainIDs(chains), column.AddressColumn(list), MaxMatches+1)
	var a common.Address
	var id repute.AgentID
	var isWallet, isOwner, isClaimed bool
	into := []any{(*column.Address)(&a), &id.ChainID, (*column.TokenNum)(&id.TokenID), &isWallet, &isOwner, &isClaimed}
	_, err := pgx.ForEachRow(rows, into, func() error {
		id.Registry = registries[id.ChainID]
		m := Match{Agent: id}
		if isWallet { // the registry took it with the wallet's own signature
			m.How, m.Proven = append(m.How, manifestdb.HowWallet), true
		}
		if isOwner {
			m.How, m.Proven = append(m.How, HowOwner), m.Proven || !isClaimed
		}
		out[a] = append(out[a], m)
		return nil
	})
	return out, err
}

// agentsOfDomains returns the agents that domains stand for, by the domains of the items.
func agentsOfDomains(ctx context.Context, tx pgx.Tx, shared []string, items []Item) (map[string][]Match, error) {
	list := asked(items, func(item Item) (string, bool) { return item.Domain, item.Domain != "" })
	out := map[string][]Match{}
	if len(list) == 0 {
		return out, nil
	}
	found, err := manifestdb.AgentsOfDomains(ctx, tx, shared, list, MaxMatches+1)
	for domain, links := range found {
		for _, l := range links {
			out[domain] = addLink(out[domain], l)
		}
	}
	return out, err
}

// addLink adds a link to the match of its agent, which is the last one or a new one.
func addLink(to []Match, l manifestdb.Link) []Match {
	if n := len(to); n == 0 || to[n-1].Agent != l.Agent {
		to = append(to, Match{Agent: l.Agent})
	}
	m := &to[len(to)-1]
	m.How, m.Proven = append(m.How, l.How), m.Proven || l.Proven
	return to
}
