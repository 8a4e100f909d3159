package statsdb

import (
	"context"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/column"
	"repute/store/query"
)

// ClientChain is what a client did on one chain.
type ClientChain struct {
	ChainID uint64
	// Ratings are live; Revoked are withdrawn. Agents are those with a live rating.
	Ratings, Revoked, Agents int64
	// First and Last are the blocks of its first and its last rating, revoked ones too; zero without any.
	First, Last repute.Block
	// Root says that the client is a root of the chain's own set; Writer says that it is a reviewed writer of it.
	Root, Writer bool
	Related      []Related
}

// Related is an address that is no stranger to a client, by an agent that both have to do with.
type Related struct {
	Address common.Address
	Agent   repute.AgentID
	// Role is what the address is to the agent: RoleOwner where the client is its wallet, RoleWallet where the client
	// owns it.
	Role string
}

// Roles of related addresses.
const (
	RoleOwner  = "owner"
	RoleWallet = "wallet"
)

// maxRelated is how many related addresses of each role are listed for a chain.
const maxRelated = 50

// Client returns what an address did on each of the chains, all for nil, ordered by chain. Chains on which it never
// rated and is no root are left out.
func Client(ctx context.Context, db *store.DB, address common.Address, chainIDs []uint64) (list []ClientChain,
	asOf []repute.AsOf, err error) {
	err = chaindb.View(ctx, db, "read client", func(ctx context.Context, tx pgx.Tx) error {
		chains, err := chaindb.AskedChains(ctx, tx, chainIDs)
		if err != nil {
			return err
		}
		asOf = chaindb.LatestOf(chains)
		return ClientInto(address, &list)(ctx, tx, chains)
	})
	return list, asOf, err
}

// ClientInto reads Client into list on a snapshot that has other things to read.
func ClientInto(address common.Address, list *[]ClientChain) query.Beside {
	return func(ctx context.Context, tx pgx.Tx, chains []*chaindb.ChainView) (err error) {
		if *list, err = clientChains(ctx, tx, address, chaindb.ChainIDs(chains)); err != nil {
			return err
		}
		return addRelated(ctx, tx, address, chains, *list)
	}
}

// clientChains counts the ratings of a client on each chain.
func clientChains(ctx context.Context, tx pgx.Tx, address common.Address, chains []uint64) ([]ClientChain, error) {
	rows, _ := tx.Query(ctx, `
		select k.chain_id, x.live, x.revoked, x.agents, x.first, fb.hash, fb.time, x.last, lb.hash, lb.time,
			coalesce(r.class = '', false), coalesce(r.class <> '', false)
		from unnest($1::bigint[]) as k(chain_id)
		cross join lateral (
			select count(*) filter (where revoked_block is null) as live, count(*) filter (where revoked_block is not null) as revoked,
				count(distinct token_id) filter (where revoked_block is null) as agents, min(block) as first, max(block) as last
			from feedback f where f.chain_id = k.chain_id and f.client = $2) x
		left join trust_roots r on (r.chain_id, r.set_name, r.address) = (k.chain_id, $3, $2)
			and (r.expires_at is null or r.expires_at > now())
		left join blocks fb on (fb.chain_id, fb.number) = (k.chain_id, x.first)
		left join blocks lb on (lb.chain_id, lb.number) = (k.chain_id, x.last)
		where x.first is not null or r.address is not null
		order by k.chain_id`, chains, address[:], repute.DefaultRoots)
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (c ClientChain, err error) {
		var first, last blockRow
		err = row.Scan(&c.ChainID, &c.Ratings, &c.Revoked, &c.Agents, &first.number, &first.hash, &first.time,
			&last.number, &last.hash, &last.time, &c.Root, &c.Writer)
		c.First, c.Last = first.block(), last.block()
		return c, err
	})
}

// blockRow receives a block that may be unknown.
type blockRow struct {
	number *int64
	hash   column.Hash
	time   column.Time
}

// block returns the zero block for null.
func (b blockRow) block() repute.Block {
	if b.number == nil {
		return repute.Block{}
	}
	return repute.Block{Number: uint64(*b.number), Hash: common.Hash(b.hash), Time: time.Time(b.time)}
}

// addRelated adds the addresses that agents join with the client.
func addRelated(ctx context.Context, tx pgx.Tx, address common.Address, chains []*chaindb.ChainView,
	list []ClientChain) error {
	at, registry := map[uint64]*ClientChain{}, map[uint64]common.Address{}
	var ids []uint64
	for i := range list {
		at[list[i].ChainID], ids = &list[i], append(ids, list[i].ChainID)
	}
	for _, c := range chains {
		registry[c.ID] = c.Identity
	}
	rows, _ := tx.Query(ctx, `
		select k.chain_id, x.token_id, x.address, x.role from unnest($1::bigint[]) as k(chain_id) cross join lateral (
			(select token_id, owner as address, $3::text as role from agents
				where chain_id = k.chain_id and wallet = $2 and wallet <> '' and owner <> $2 order by token_id limit $5)
			union all
			(select token_id, wallet, $4::text from agents
				where chain_id = k.chain_id and owner = $2 and wallet <> '' and wallet <> $2 order by token_id limit $5)) x
		order by k.chain_id, x.role, x.token_id`, ids, address[:], RoleOwner, RoleWallet, maxRelated)
	var r Related
	_, err := pgx.ForEachRow(rows, []any{&r.Agent.ChainID, (*column.TokenNum)(&r.Agent.TokenID),
		(*column.Address)(&r.Address), &r.Role}, func() error {
		c := at[r.Agent.ChainID]
		r.Agent.Registry = registry[r.Agent.ChainID]
		c.Related = append(c.Related, r)
		return nil
	})
	return err
}
