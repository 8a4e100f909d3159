package state

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/contracts"
	"repute/indexer/verify/missing"
	"repute/store/chaindb"
	"repute/store/verifydb"
)

// agent plans the questions about one agent.
func (c *comparison) agent(a *verifydb.AgentThen) {
	c.identity(a)
	c.feedback(a)
	c.validations(a)
}

// about plans only the questions that can show one gap: an agent may have hundreds
// of thousands of ratings.
func (c *comparison) about(a verifydb.AgentThen, h chaindb.Gap) {
	switch h.Kind {
	case repute.KindNewFeedback, repute.KindFeedbackRevoked, repute.KindResponseAppended:
		if i := slices.IndexFunc(a.Clients, func(x verifydb.ClientThen) bool {
			return h.Client != nil && x.Client == *h.Client
		}); i >= 0 {
			c.ratings(&a, a.Clients[i:i+1])
			c.index = missing.Index(h)
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
func (c *comparison) identity(a *verifydb.AgentThen) {
	id, identity := a.ID, c.chain.Identity
	since := repute.BlockRange{From: a.Registered, To: c.at.Number}
	if a.Claimed {
		c.differs(missing.OfAgent(repute.KindTransfer, id, repute.BlockRange{From: a.Registered, To: a.Registered},
			"no mint is stored of a registered agent"))
	}
	if !a.Named {
		c.differs(missing.OfAgent(repute.KindRegistered, id, repute.BlockRange{From: a.Registered, To: a.Registered},
			"no Registered is stored of a minted agent"))
	}
	c.transfers(a)
	want(c, "ownerOf", identity, c.views.OwnerOf(id), func(owner common.Address, gone bool) {
		if gone || owner != a.Owner {
			c.differs(missing.OfAgent(repute.KindTransfer, id, since,
				fmt.Sprintf("ownerOf is %s, stored %s", orNone(owner), a.Owner)))
		}
	})
	want(c, "tokenURI", identity, c.views.TokenURI(id), func(uri string, gone bool) {
		if !gone && sha256.Sum256([]byte(uri)) != a.URI {
			c.differs(missing.OfAgent(uriKind(a), id, since, "tokenURI is another one than stored"))
		}
	})
	want(c, "getAgentWallet", identity, c.views.AgentWallet(id), func(wallet common.Address, gone bool) {
		if !gone && wallet != a.Wallet {
			c.differs(missing.OfAgent(repute.KindMetadataSet, id, since,
				fmt.Sprintf("getAgentWallet is %s, stored %s", orNone(wallet), orNone(a.Wallet))))
		}
	})
	want(c, "getApproved", identity, c.views.Approved(id), func(approved common.Address, gone bool) {
		if !gone && approved != a.Approved {
			c.differs(missing.OfAgent(repute.KindApproval, id, since,
				fmt.Sprintf("getApproved is %s, stored %s", orNone(approved), orNone(a.Approved))))
		}
	})
	for _, m := range a.Metadata {
		want(c, "getMetadata", identity, c.views.Metadata(id, m.Key), func(value []byte, gone bool) {
			if !gone && sha256.Sum256(value) != m.Value {
				c.differsIn(fmt.Sprintf("%x", sha256.Sum256([]byte(m.Key))),
					missing.OfAgent(repute.KindMetadataSet, id, repute.BlockRange{From: m.Block, To: c.at.Number},
						fmt.Sprintf("getMetadata of %.40q is another value than stored", m.Key)))
			}
		})
	}
}

// orNone returns an address for an error text, or "none" for the zero address.
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
func (c *comparison) transfers(a *verifydb.AgentThen) {
	var owner common.Address
	since := a.Registered
	for i, m := range a.Moves {
		if m.From != owner && (i > 0 || !a.Claimed) {
			c.differsIn(strconv.FormatUint(m.Block, 10),
				missing.OfAgent(repute.KindTransfer, a.ID, repute.BlockRange{From: since, To: m.Block},
					fmt.Sprintf("a Transfer from %s follows one to %s", orNone(m.From), orNone(owner))))
		}
		owner, since = m.To, m.Block
	}
}

// validations compares an agent's requests in the contracts that count.
func (c *comparison) validations(a *verifydb.AgentThen) {
	for _, contract := range c.chain.Validations {
		want(c, "getAgentValidations", contract, c.views.Requests(a.ID), func(hashes [][32]byte, gone bool) {
			for _, hash := range hashes {
				known := slices.ContainsFunc(a.Requests,
					func(q verifydb.RequestThen) bool { return q.Contract == contract && q.Hash == hash })
				if !gone && !known {
					c.differsIn(fmt.Sprintf("%x", hash), missing.OfAgent(repute.KindValidationRequest, a.ID,
						repute.BlockRange{From: a.Registered, To: c.at.Number},
						fmt.Sprintf("getAgentValidations names request %x, which is not stored", hash)))
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
func (c *comparison) request(a *verifydb.AgentThen, q verifydb.RequestThen) {
	want(c, "getValidationStatus", q.Contract, c.views.Validation(q.Hash), func(v contracts.Validation, gone bool) {
		if gone || v.Validator != q.Validator || v.Agent.Cmp(a.ID.ToBig()) != 0 {
			return // the request belongs to another agent or validator: no event of this one is missing
		}
		same := v.Response == q.Response && v.Hash == q.Answer && v.Tag == q.Tag &&
			(q.Updated.IsZero() || v.Updated == uint64(q.Updated.Unix()))
		if !same {
			c.differsIn(fmt.Sprintf("%x", q.Hash), missing.OfAgent(repute.KindValidationResponse, a.ID,
				repute.BlockRange{From: q.Block, To: c.at.Number},
				fmt.Sprintf("getValidationStatus of %s is %d %q, stored %d %q", q.Hash, v.Response, v.Tag, q.Response,
					q.Tag)))
		}
	})
}
