package missing

import (
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/contracts"
	"repute/store/chaindb"
)

// Search is a filter of logs: the addresses that may emit them, and the topics that are allowed at
// each place, where an empty list allows any. It also finds what else is missing of the same agent.
type Search struct {
	Addresses []common.Address
	Topics    [][]common.Hash
}

// Searches returns the filters that find the logs of a gap. A gap that names neither an agent nor a
// client is searched by kind alone.
func Searches(c repute.Chain, h chaindb.Gap) []Search {
	topic := []common.Hash{contracts.Topic(h.Kind)}
	switch h.Kind {
	case repute.KindNewFeedback, repute.KindFeedbackRevoked, repute.KindResponseAppended:
		all := contracts.TopicsOf(repute.KindNewFeedback, repute.KindFeedbackRevoked, repute.KindResponseAppended)
		s := Search{[]common.Address{c.Reputation}, [][]common.Hash{all, tokenTopic(h.Agent)}}
		if h.Client != nil {
			s.Topics = append(s.Topics, []common.Hash{common.BytesToHash(h.Client[:])})
		}
		return []Search{s}
	case repute.KindValidationRequest, repute.KindValidationResponse:
		all := contracts.TopicsOf(repute.KindValidationRequest, repute.KindValidationResponse)
		return []Search{{c.Validations, [][]common.Hash{all, {}, tokenTopic(h.Agent)}}}
	case repute.KindTicketConsumed:
		return []Search{{addressesOf(c.Gateways), [][]common.Hash{contracts.GatewayTopics()}}}
	case repute.KindTreasuryEvent:
		return []Search{{addressesOf(c.Treasuries), [][]common.Hash{contracts.TreasuryTopics()}}}
	case repute.KindApprovalForAll:
		s := Search{[]common.Address{c.Identity}, [][]common.Hash{topic}}
		if h.Client != nil {
			s.Topics = append(s.Topics, []common.Hash{common.BytesToHash(h.Client[:])})
		}
		return []Search{s}
	case repute.KindTransfer, repute.KindRegistered, repute.KindURIUpdated, repute.KindMetadataSet, repute.KindApproval:
		if h.Agent == nil {
			break
		}
		first := contracts.TopicsOf(repute.KindRegistered, repute.KindURIUpdated, repute.KindMetadataSet)
		last := contracts.TopicsOf(repute.KindTransfer, repute.KindApproval)
		return []Search{
			{[]common.Address{c.Identity}, [][]common.Hash{first, tokenTopic(h.Agent)}},
			{[]common.Address{c.Identity}, [][]common.Hash{last, {}, {}, tokenTopic(h.Agent)}}}
	}
	return []Search{{contracts.NewDecoder(c).Addresses, [][]common.Hash{topic}}}
}

// addressesOf returns the addresses of watched contracts.
func addressesOf(list []repute.WatchedContract) []common.Address {
	addresses := make([]common.Address, len(list))
	for i, w := range list {
		addresses[i] = w.Address
	}
	return addresses
}

// tokenTopic returns the topic of a token id; empty, which matches any, for nil.
func tokenTopic(id *repute.TokenID) []common.Hash {
	if id == nil {
		return []common.Hash{}
	}
	return []common.Hash{id.Bytes32()}
}

// May reports whether a block's bloom admits a log that the search finds.
func (s Search) May(b types.Bloom) bool {
	if !slices.ContainsFunc(s.Addresses, func(a common.Address) bool { return b.Test(a[:]) }) {
		return false
	}
	for _, wanted := range s.Topics {
		if len(wanted) > 0 && !slices.ContainsFunc(wanted, func(t common.Hash) bool { return b.Test(t[:]) }) {
			return false
		}
	}
	return true
}

// Matches reports whether the filter selects a log.
func (s Search) Matches(l *types.Log) bool {
	if !slices.Contains(s.Addresses, l.Address) || len(l.Topics) < len(s.Topics) {
		return false
	}
	for i, wanted := range s.Topics {
		if len(wanted) > 0 && !slices.Contains(wanted, l.Topics[i]) {
			return false
		}
	}
	return true
}
