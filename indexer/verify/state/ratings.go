package state

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/contracts"
	"repute/indexer/node"
	"repute/indexer/verify/missing"
	"repute/store/verifydb"
)

// summable is how many ratings one call may have to read. The registry reads each,
// which costs it about 7,500 gas; nodes give a call 50 million or less.
const summable = 2_000

// feedback plans the questions about an agent's ratings: who gave some, how many
// each, and what they add up to.
func (c *comparison) feedback(a *verifydb.AgentThen) {
	c.raters(a)
	c.ratings(a, a.Clients)
}

// raters compares who gave any.
func (c *comparison) raters(a *verifydb.AgentThen) {
	want(c, "getClients", c.chain.Reputation, c.views.Clients(a.ID), func(clients []common.Address, gone bool) {
		known := make(map[common.Address]bool, len(a.Clients))
		for i := range a.Clients {
			known[a.Clients[i].Client] = true
		}
		for _, client := range clients {
			if !gone && !known[client] {
				c.differs(missing.OfClient(repute.KindNewFeedback, a.ID, client,
					repute.BlockRange{From: a.Registered, To: c.at.Number},
					"getClients names a client of whom none is stored"))
			}
		}
	})
}

// clientsAtOnce is of how many clients the questions are held in memory.
const clientsAtOnce = 1_000

// ratings compares what clients gave, portion by portion.
func (c *comparison) ratings(a *verifydb.AgentThen, clients []verifydb.ClientThen) {
	for some := range slices.Chunk(clients, clientsAtOnce) {
		c.planned = append(c.planned, func() { c.someRatings(a, some) })
	}
}

// someRatings compares the last index of each client, and sums of ratings in portions that the
// contract can add up within one call. A client's last index counts its ratings, revoked ones
// included: the registry reads all of them. One whose ratings alone are too many has a portion of
// its own.
func (c *comparison) someRatings(a *verifydb.AgentThen, clients []verifydb.ClientThen) {
	var portion []verifydb.ClientThen
	size := uint64(0)
	for i := range clients {
		client := clients[i]
		want(c, "getLastIndex", c.chain.Reputation, c.views.LastIndex(a.ID, client.Client),
			func(last uint64, gone bool) {
				if !gone && last != client.Last {
					c.differs(missing.OfClient(repute.KindNewFeedback, a.ID, client.Client,
						repute.BlockRange{From: max(client.At, a.Registered), To: c.at.Number},
						fmt.Sprintf("getLastIndex is %d, stored %d", last, client.Last)))
				}
			})
		c.responses(a, client)
		if size+client.Last > summable && size > 0 {
			c.summary(a, portion)
			portion, size = nil, 0
		}
		portion, size = append(portion, client), size+client.Last
	}
	if size > 0 {
		c.summary(a, portion)
	}
}

// responses compares how many there are to one client's ratings. To count those
// of a client with very many ratings exceeds what a call may cost: they are
// compared rating by rating, with the values.
func (c *comparison) responses(a *verifydb.AgentThen, client verifydb.ClientThen) {
	if client.Last > summable {
		return
	}
	want(c, "getResponseCount", c.chain.Reputation, c.views.Responses(a.ID, client.Client, 0),
		func(n uint64, gone bool) {
			if !gone && n != client.Responses {
				c.differs(missing.OfClient(repute.KindResponseAppended, a.ID, client.Client,
					repute.BlockRange{From: a.Registered, To: c.at.Number},
					fmt.Sprintf("getResponseCount is %d, stored %d", n, client.Responses)))
			}
		})
}

// summary compares what the ratings of some clients add up to. Where that differs,
// or cannot be asked, they are compared one by one.
func (c *comparison) summary(a *verifydb.AgentThen, clients []verifydb.ClientThen) {
	addresses := make([]common.Address, len(clients))
	var tallies []repute.Tally
	for i := range clients {
		addresses[i] = clients[i].Client
		tallies = append(tallies, clients[i].Live...)
	}
	if clients[0].Last > summable {
		c.details = append(c.details, detail{a.ID, a.Registered, clients[0].Client, clients[0].Last})
		return
	}
	look := func() {
		for _, client := range clients {
			c.details = append(c.details, detail{a.ID, a.Registered, client.Client, client.Last})
		}
	}
	stored := repute.Summarize(tallies)
	want(c, "getSummary", c.chain.Reputation, c.views.Summary(a.ID, addresses, "", ""), func(s repute.Summary, gone bool) {
		if gone || s.Count != stored.Count || s.Decimals != stored.Decimals || s.Value.Cmp(stored.Value) != 0 {
			look()
		}
	})
	// An endpoint that cannot add up so much may still read single ratings: nothing is skipped for it.
	then := c.then[len(c.then)-1]
	c.then[len(c.then)-1] = func(r node.CallResult) {
		if r.Err != nil && !errors.Is(r.Err, node.ErrReverted) {
			look()
			return
		}
		then(r)
	}
}

// detail is a client whose ratings must be compared one by one.
type detail struct {
	id         repute.TokenID
	registered uint64
	client     common.Address
	last       uint64
}

// rating plans the questions about one rating.
func (c *comparison) rating(d detail, r *verifydb.RatingThen) {
	since, index := repute.BlockRange{From: r.Block, To: c.at.Number}, strconv.FormatUint(r.Index, 10)
	want(c, "readFeedback", c.chain.Reputation, c.views.Feedback(d.id, d.client, r.Index),
		func(f contracts.Rating, gone bool) {
			if gone {
				return // getLastIndex shows it
			}
			if f.Value.Cmp(r.Value) != 0 || f.Decimals != r.Decimals || f.Tag1 != r.Tag1 || f.Tag2 != r.Tag2 {
				c.differsIn(index, missing.OfClient(repute.KindNewFeedback, d.id, d.client,
					repute.BlockRange{From: r.Block, To: r.Block},
					fmt.Sprintf("readFeedback of index %d is another rating than stored", r.Index)))
			}
			if f.Revoked != r.Revoked {
				c.differsIn(index, missing.OfClient(repute.KindFeedbackRevoked, d.id, d.client, since,
					fmt.Sprintf("readFeedback says revoked %t of index %d", f.Revoked, r.Index)))
			}
		})
	if d.last <= summable {
		return
	}
	want(c, "getResponseCount", c.chain.Reputation, c.views.Responses(d.id, d.client, r.Index),
		func(n uint64, gone bool) {
			if !gone && n != r.Responses {
				c.differsIn(index, missing.OfClient(repute.KindResponseAppended, d.id, d.client, since,
					fmt.Sprintf("getResponseCount of index %d is %d, stored %d", r.Index, n, r.Responses)))
			}
		})
}

// askRatings compares a client's ratings one by one.
func (c *comparison) askRatings(ctx context.Context, d detail) error {
	after, most := uint64(0), comparedAtOnce
	if c.index > 0 {
		after, most = c.index-1, 1
	}
	for {
		ratings, err := verifydb.RatingsThen(ctx, c.db, c.chain.ID, c.at.Number, d.id, d.client, after, most)
		if err != nil {
			return err
		}
		for i := range ratings {
			c.rating(d, &ratings[i])
		}
		if err := c.ask(ctx); err != nil {
			return err
		}
		if len(ratings) < most || c.index > 0 {
			return nil
		}
		after = ratings[len(ratings)-1].Index
	}
}
