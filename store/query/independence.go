package query

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/column"
)

// newestRatings is the SQL of the ratings by which the independence of the agent in row k is
// judged. A thousand are enough to see a pattern, and bound the cost for an agent with a million.
const newestRatings = `(
	select client, value, decimals, tag1, tag2, uri_id, block, log_index from feedback
	where chain_id = k.chain_id and token_id = k.token_id and block <= $3 and (revoked_block is null or revoked_block > $3)
	order by block desc, log_index desc limit 1000)`

// Independence returns how far the raters of an agent look like different people. Who owns what is
// as of the newest block, whatever the view. repute.ErrNotFound as in Agent.
func Independence(ctx context.Context, db *store.DB, id repute.AgentID, at repute.At) (i repute.Independence,
	asOf repute.AsOf, err error) {
	err = chaindb.ViewAgent(ctx, db, "read independence", id, at, func(ctx context.Context, s chaindb.Subject) error {
		asOf = s.AsOf
		var apart map[column.AgentKey]repute.Independence
		err := send(ctx, s.Tx, func(b *pgx.Batch) { apart = queueIndependence(b, []repute.AgentID{s.ID}, s.Block) })
		i = apart[column.KeyOf(s.ID)]
		return err
	})
	return i, asOf, err
}

// queueIndependence queues the statement by which the raters of each agent are judged. Whether a client rated another
// agent is asked once below and once above the agent's token: each of the two stops at the first row that it finds in
// the index, so that a client with many ratings costs no more than others.
func queueIndependence(b *pgx.Batch, ids []repute.AgentID, block int64) map[column.AgentKey]repute.Independence {
	const live = `f.chain_id = k.chain_id and f.client = c.client and f.block <= $3 and (f.revoked_block is null or f.revoked_block > $3)`
	out := make(map[column.AgentKey]repute.Independence, len(ids))
	b.Queue(`
		select k.chain_id, k.token_id, l.*
		from `+agentsAsked+` cross join lateral (
			with n as materialized `+newestRatings+`, r as materialized (
				select c.client,
					not exists (select from feedback f where `+live+` and f.token_id < k.token_id)
					and not exists (select from feedback f where `+live+` and f.token_id > k.token_id) as only,
					array(select distinct owner from (
						select owner from agents a where a.chain_id = k.chain_id and a.wallet = c.client and a.wallet <> '' limit 100) a) as owners
				from (select distinct client from n) c)
			select n.client, r.only, r.owners, (select b.time from blocks b where (b.chain_id, b.number) = (k.chain_id, n.block)) as time,
				n.block, n.value::text, n.decimals, n.tag1, n.tag2, n.uri_id, n.log_index
			from n join r using (client)) l
		order by k.chain_id, k.token_id, l.block, l.log_index`, askedAt(ids, block)...).Query(func(rows pgx.Rows) error {
		ratings, raters, err := collectRatings(rows)
		for k, list := range ratings {
			out[k] = judgeRaters(list, raters[k])
		}
		return err
	})
	return out
}

// judgeRaters computes the figures from ratings and raters of one agent. Two raters are in one cluster when they have
// an owner in common, one is the owner of the other's agent, or their first ratings are of one batch.
func judgeRaters(ratings []glance, raters []rater) (i repute.Independence) {
	i.Ratings, i.Raters, i.Busiest = len(ratings), len(raters), busiest(ratings)
	c := clusters{}
	for _, r := range raters {
		if r.only {
			i.OneAgent++
		}
		c.join(r.client, r.client)
		for _, owner := range r.owners {
			c.join(r.client, owner)
		}
	}
	joinBursts(c, ratings)
	i.Clusters = c.count(raters)
	return i
}

// glance is what one rating may have in common with others.
type glance struct {
	client common.Address
	time   time.Time // zero when unknown
	burst  burst
}

// burst identifies ratings of one batch: they have the same block, value, tags and file.
type burst struct {
	block           int64
	value           string
	decimals        uint8
	tag1, tag2, uri int64
}

// rater is a client that gave some of these ratings.
type rater struct {
	client common.Address
	// only says that it rated no other agent.
	only bool
	// owners are the owners of the agents that it owns or is the wallet of.
	owners []common.Address
}

// collectRatings returns the newest live ratings of each agent, the oldest of them first, and who gave them.
func collectRatings(rows pgx.Rows) (ratings map[column.AgentKey][]glance, raters map[column.AgentKey][]rater, err error) {
	ratings, raters = map[column.AgentKey][]glance{}, map[column.AgentKey][]rater{}
	type in struct {
		agent  column.AgentKey
		client common.Address
	}
	seen := map[in]bool{}
	var k column.AgentKey
	var client column.Address
	var only bool
	var owners []column.Address
	var at column.Time
	var b burst
	var place int64
	into := []any{&k.Chain, (*column.TokenNum)(&k.Token), &client, &only, &owners, &at, &b.block, &b.value, &b.decimals,
		&b.tag1,
		&b.tag2, &b.uri, &place}
	_, err = pgx.ForEachRow(rows, into, func() error {
		by := common.Address(client)
		ratings[k] = append(ratings[k], glance{by, time.Time(at), b})
		if !seen[in{k, by}] {
			seen[in{k, by}] = true
			r := rater{client: by, only: only}
			for _, o := range owners {
				r.owners = append(r.owners, common.Address(o))
			}
			raters[k] = append(raters[k], r)
		}
		return nil
	})
	return ratings, raters, err
}

// busiest returns the most ratings within 24 hours. Ratings at an unknown time are left out. The window is half open:
// two ratings exactly a day apart are not in one.
func busiest(ratings []glance) (most int) {
	var times []time.Time
	for _, g := range ratings {
		if !g.time.IsZero() {
			times = append(times, g.time)
		}
	}
	slices.SortFunc(times, time.Time.Compare)
	first := 0
	for i, t := range times {
		for t.Sub(times[first]) >= 24*time.Hour {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// clusters is a union-find: each address points at another one of its cluster or at itself. It is small, so that paths
// are not compressed.
type clusters map[common.Address]common.Address

// top returns the address that stands for the cluster of a.
func (c clusters) top(a common.Address) common.Address {
	for up, known := c[a]; known && up != a; up, known = c[a] {
		a = up
	}
	return a
}

// join makes two clusters one; the lowest address stands for it.
func (c clusters) join(a, b common.Address) {
	a, b = c.top(a), c.top(b)
	if bytes.Compare(a[:], b[:]) > 0 {
		a, b = b, a
	}
	c[a], c[b] = a, a
}

// count returns how many clusters the raters form.
func (c clusters) count(raters []rater) int {
	tops := map[common.Address]bool{}
	for _, r := range raters {
		tops[c.top(r.client)] = true
	}
	return len(tops)
}

// joinBursts joins raters whose first ratings look like one batch.
func joinBursts(c clusters, ratings []glance) {
	seen := map[common.Address]bool{}
	first := map[burst]common.Address{}
	for _, g := range ratings {
		if seen[g.client] {
			continue
		}
		seen[g.client] = true
		if other, met := first[g.burst]; met {
			c.join(g.client, other)
		} else {
			first[g.burst] = g.client
		}
	}
}
