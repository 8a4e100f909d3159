package verify

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/contracts"
	"repute/indexer/node"
	"repute/store/verifydb"
)

// Comparing the stored state of agents with the chain's own views. Everything here
// is of one block: what was stored then, out of the histories, and what the
// contracts answer of it.

// summable is how many ratings one call may have to read. The registry reads each,
// which costs it about 7,500 gas; nodes give a call 50 million or less.
const summable = 2_000

// comparer asks one witness about one block and collects what differs.
type comparer struct {
	chain repute.Chain
	views *contracts.Views
	node  *node.Node
	at    repute.Block
	spend func(ctx context.Context, calls int) error // waits for the rate limit
	gaps  []gap
	calls []node.Call
	then  []func(node.CallResult)
	// planned plan further questions once the ones before are answered: an agent may
	// have hundreds of thousands of clients.
	planned []func()
	// details are clients whose ratings must be compared one by one.
	details []detail
	index   uint64 // the only one of their ratings, 0 for all
	asked   int    // calls made
	// unanswered counts questions that this node cannot answer, by function: what
	// they would have shown is not verified.
	unanswered map[string]error
}

// want plans a question. Its answer is given to f; a revert is, too.
func want[T any](c *comparer, name string, to common.Address, q contracts.Question[T], f func(v T, reverted bool)) {
	c.calls = append(c.calls, node.Call{To: to, Data: q.Data})
	c.then = append(c.then, func(r node.CallResult) {
		var v T
		switch {
		case r.Err == node.ErrReverted:
			f(v, true)
			return
		case r.Err == nil && len(r.Data) > 0:
			var err error
			if v, err = q.Read(r.Data); err == nil {
				f(v, false)
				return
			}
			r.Err = err
		case r.Err == nil && to != c.chain.Identity && to != c.chain.Reputation:
			return // a listed contract that is not deployed emits nothing
		case r.Err == nil:
			r.Err = errNoCode
		}
		c.unanswered[name] = r.Err
	})
}

// errNoCode: a call came back empty, as where no contract is.
var errNoCode = errors.New("no answer: is there a contract?")

// ask sends what was planned, in rounds: an answer may plan another question.
func (c *comparer) ask(ctx context.Context) error {
	for len(c.calls)+len(c.planned) > 0 {
		if len(c.calls) == 0 {
			next := c.planned[0]
			c.planned = c.planned[1:]
			next()
			continue
		}
		n := min(len(c.calls), comparedAtOnce)
		calls, then := c.calls[:n], c.then[:n]
		c.calls, c.then = c.calls[n:], c.then[n:]
		if err := c.spend(ctx, n); err != nil {
			return err
		}
		results, err := c.node.Calls(ctx, c.at, calls)
		if err != nil {
			return err
		}
		c.asked += n
		for i, r := range results {
			then[i](r)
		}
	}
	return nil
}

// comparedAtOnce bounds the answers held in memory.
const comparedAtOnce = 500

func (c *comparer) differs(h gap) { c.gaps = append(c.gaps, h) }

// agent plans the questions about one agent.
func (c *comparer) agent(a *verifydb.AgentThen) {
	c.identity(a)
	c.feedback(a)
	c.validations(a)
}

// about plans only the questions that can show one gap: an agent may have hundreds
// of thousands of ratings.
func (c *comparer) about(a verifydb.AgentThen, h gap) {
	switch h.Kind {
	case repute.KindNewFeedback, repute.KindFeedbackRevoked, repute.KindResponseAppended:
		if i := slices.IndexFunc(a.Clients, func(x verifydb.ClientThen) bool { return h.Client != nil && x.Client == *h.Client }); i >= 0 {
			c.ratings(&a, a.Clients[i:i+1])
			c.index = indexOf(h)
			return
		}
		c.raters(&a)
	case repute.KindValidationRequest, repute.KindValidationResponse:
		c.validations(&a)
	default:
		c.identity(&a)
	}
}

// identity plans the questions to the identity registry.
func (c *comparer) identity(a *verifydb.AgentThen) {
	id, identity := a.ID, c.chain.Identity
	since := repute.BlockRange{From: a.Registered, To: c.at.Number}
	if a.Claimed {
		c.differs(agentGap(repute.KindTransfer, id, repute.BlockRange{From: a.Registered, To: a.Registered}, "no mint is stored of a registered agent"))
	}
	if !a.Named {
		c.differs(agentGap(repute.KindRegistered, id, repute.BlockRange{From: a.Registered, To: a.Registered}, "no Registered is stored of a minted agent"))
	}
	c.transfers(a)
	want(c, "ownerOf", identity, c.views.OwnerOf(id), func(owner common.Address, gone bool) {
		if gone || owner != a.Owner {
			c.differs(agentGap(repute.KindTransfer, id, since, fmt.Sprintf("ownerOf is %s, stored %s", orNone(owner), a.Owner)))
		}
	})
	want(c, "tokenURI", identity, c.views.TokenURI(id), func(uri string, gone bool) {
		if !gone && sha256.Sum256([]byte(uri)) != a.URI {
			c.differs(agentGap(uriKind(a), id, since, "tokenURI is another one than stored"))
		}
	})
	want(c, "getAgentWallet", identity, c.views.AgentWallet(id), func(wallet common.Address, gone bool) {
		if !gone && wallet != a.Wallet {
			c.differs(agentGap(repute.KindMetadataSet, id, since, fmt.Sprintf("getAgentWallet is %s, stored %s", orNone(wallet), orNone(a.Wallet))))
		}
	})
	want(c, "getApproved", identity, c.views.Approved(id), func(approved common.Address, gone bool) {
		if !gone && approved != a.Approved {
			c.differs(agentGap(repute.KindApproval, id, since, fmt.Sprintf("getApproved is %s, stored %s", orNone(approved), orNone(a.Approved))))
		}
	})
	for _, m := range a.Metadata {
		want(c, "getMetadata", identity, c.views.Metadata(id, m.Key), func(value []byte, gone bool) {
			if !gone && sha256.Sum256(value) != m.Value {
				h := agentGap(repute.KindMetadataSet, id, repute.BlockRange{From: m.Block, To: c.at.Number}, fmt.Sprintf("getMetadata of %.40q is another value than stored", m.Key))
				h.Subject += fmt.Sprintf("/%x", sha256.Sum256([]byte(m.Key)))
				c.differs(h)
			}
		})
	}
}

func orNone(a common.Address) string {
	if a == (common.Address{}) {
		return "none"
	}
	return a.Hex()
}

// uriKind is the event that most likely is missing where the URI differs.
func uriKind(a *verifydb.AgentThen) repute.EventKind {
	if !a.Named {
		return repute.KindRegistered
	}
	return repute.KindURIUpdated
}

// transfers checks that every stored Transfer begins where the one before ended.
func (c *comparer) transfers(a *verifydb.AgentThen) {
	var owner common.Address
	since := a.Registered
	for i, m := range a.Moves {
		if m.From != owner && (i > 0 || !a.Claimed) {
			h := agentGap(repute.KindTransfer, a.ID, repute.BlockRange{From: since, To: m.Block},
				fmt.Sprintf("a Transfer from %s follows one to %s", orNone(m.From), orNone(owner)))
			h.Subject += fmt.Sprintf("/%d", m.Block)
			c.differs(h)
		}
		owner, since = m.To, m.Block
	}
}

// feedback plans the questions about an agent's ratings: who gave some, how many
// each, and what they add up to.
func (c *comparer) feedback(a *verifydb.AgentThen) {
	c.raters(a)
	c.ratings(a, a.Clients)
}

// raters compares who gave any.
func (c *comparer) raters(a *verifydb.AgentThen) {
	want(c, "getClients", c.chain.Reputation, c.views.Clients(a.ID), func(clients []common.Address, gone bool) {
		known := make(map[common.Address]bool, len(a.Clients))
		for i := range a.Clients {
			known[a.Clients[i].Client] = true
		}
		for _, client := range clients {
			if !gone && !known[client] {
				c.differs(clientGap(repute.KindNewFeedback, a.ID, client, repute.BlockRange{From: a.Registered, To: c.at.Number},
					"getClients names a client of whom none is stored"))
			}
		}
	})
}

// clientsAtOnce is of how many clients the questions are held in memory.
const clientsAtOnce = 1_000

// ratings compares what clients gave, portion by portion.
func (c *comparer) ratings(a *verifydb.AgentThen, clients []verifydb.ClientThen) {
	for some := range slices.Chunk(clients, clientsAtOnce) {
		c.planned = append(c.planned, func() { c.someRatings(a, some) })
	}
}

func (c *comparer) someRatings(a *verifydb.AgentThen, clients []verifydb.ClientThen) {
	var portion []verifydb.ClientThen
	size := uint64(0)
	for i := range clients {
		client := clients[i]
		want(c, "getLastIndex", c.chain.Reputation, c.views.LastIndex(a.ID, client.Client), func(last uint64, gone bool) {
			if !gone && last != client.Last {
				c.differs(clientGap(repute.KindNewFeedback, a.ID, client.Client, repute.BlockRange{From: max(client.At, a.Registered), To: c.at.Number},
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
func (c *comparer) responses(a *verifydb.AgentThen, client verifydb.ClientThen) {
	if client.Last > summable {
		return
	}
	want(c, "getResponseCount", c.chain.Reputation, c.views.Responses(a.ID, client.Client, 0), func(n uint64, gone bool) {
		if !gone && n != client.Responses {
			c.differs(clientGap(repute.KindResponseAppended, a.ID, client.Client, repute.BlockRange{From: a.Registered, To: c.at.Number},
				fmt.Sprintf("getResponseCount is %d, stored %d", n, client.Responses)))
		}
	})
}

// summary compares what the ratings of some clients add up to. Where that differs,
// or cannot be asked, they are compared one by one.
func (c *comparer) summary(a *verifydb.AgentThen, clients []verifydb.ClientThen) {
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
	want(c, "getSummary", c.chain.Reputation, c.views.Summary(a.ID, addresses), func(s repute.Summary, gone bool) {
		if gone || s.Count != stored.Count || s.Decimals != stored.Decimals || s.Value.Cmp(stored.Value) != 0 {
			look()
		}
	})
	then := c.then[len(c.then)-1]
	c.then[len(c.then)-1] = func(r node.CallResult) {
		if r.Err != nil && r.Err != node.ErrReverted {
			look()
			return
		}
		then(r)
	}
}

// validations compares an agent's requests in the contracts that count.
func (c *comparer) validations(a *verifydb.AgentThen) {
	for _, contract := range c.chain.Validations {
		want(c, "getAgentValidations", contract, c.views.Requests(a.ID), func(hashes [][32]byte, gone bool) {
			for _, hash := range hashes {
				known := slices.ContainsFunc(a.Requests, func(q verifydb.RequestThen) bool { return q.Contract == contract && q.Hash == hash })
				if !gone && !known {
					h := agentGap(repute.KindValidationRequest, a.ID, repute.BlockRange{From: a.Registered, To: c.at.Number},
						fmt.Sprintf("getAgentValidations names request %x, which is not stored", hash))
					h.Subject += fmt.Sprintf("/%x", hash)
					c.differs(h)
				}
			}
		})
	}
	for _, q := range a.Requests {
		if slices.Contains(c.chain.Validations, q.Contract) {
			c.request(a, q)
		}
	}
}

// request compares the newest response. Where responses repeat each other, the time of the last
// one shows which is stored.
func (c *comparer) request(a *verifydb.AgentThen, q verifydb.RequestThen) {
	want(c, "getValidationStatus", q.Contract, c.views.Validation(q.Hash), func(v contracts.Validation, gone bool) {
		if gone || v.Validator != q.Validator || v.Agent.Cmp(a.ID.ToBig()) != 0 {
			return // a request of another registry's history: nothing of ours is missing
		}
		same := v.Response == q.Response && v.Hash == q.Answer && v.Tag == q.Tag &&
			(q.Updated.IsZero() || v.Updated == uint64(q.Updated.Unix()))
		if !same {
			h := agentGap(repute.KindValidationResponse, a.ID, repute.BlockRange{From: q.Block, To: c.at.Number},
				fmt.Sprintf("getValidationStatus of %s is %d %q, stored %d %q", q.Hash, v.Response, v.Tag, q.Response, q.Tag))
			h.Subject += fmt.Sprintf("/%x", q.Hash)
			c.differs(h)
		}
	})
}

// detail is a client whose ratings must be compared one by one.
type detail struct {
	id         repute.TokenID
	registered uint64
	client     common.Address
	last       uint64
}

// rating plans the questions about one rating.
func (c *comparer) rating(d detail, r *verifydb.RatingThen) {
	since := repute.BlockRange{From: r.Block, To: c.at.Number}
	want(c, "readFeedback", c.chain.Reputation, c.views.Feedback(d.id, d.client, r.Index), func(f contracts.Rating, gone bool) {
		if gone {
			return // getLastIndex shows it
		}
		if f.Value.Cmp(r.Value) != 0 || f.Decimals != r.Decimals || f.Tag1 != r.Tag1 || f.Tag2 != r.Tag2 {
			h := clientGap(repute.KindNewFeedback, d.id, d.client, repute.BlockRange{From: r.Block, To: r.Block},
				fmt.Sprintf("readFeedback of index %d is another rating than stored", r.Index))
			h.Subject += fmt.Sprintf("/%d", r.Index)
			c.differs(h)
		}
		if f.Revoked != r.Revoked {
			h := clientGap(repute.KindFeedbackRevoked, d.id, d.client, since, fmt.Sprintf("readFeedback says revoked %t of index %d", f.Revoked, r.Index))
			h.Subject += fmt.Sprintf("/%d", r.Index)
			c.differs(h)
		}
	})
	if d.last <= summable {
		return
	}
	want(c, "getResponseCount", c.chain.Reputation, c.views.Responses(d.id, d.client, r.Index), func(n uint64, gone bool) {
		if !gone && n != r.Responses {
			h := clientGap(repute.KindResponseAppended, d.id, d.client, since, fmt.Sprintf("getResponseCount of index %d is %d, stored %d", r.Index, n, r.Responses))
			h.Subject += fmt.Sprintf("/%d", r.Index)
			c.differs(h)
		}
	})
}
