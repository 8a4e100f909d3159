package verify

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/contracts"
	"repute/store/chaindb"
	"repute/store/verifydb"
)

// gap is an event that seems to be missing. It is stored once a second comparison shows it too.
type gap = chaindb.Gap

func newGap(kind repute.EventKind, subject string, r repute.BlockRange, reason string) gap {
	r.To = max(r.From, r.To)
	return gap{Subject: subject, Gap: repute.Gap{Kind: kind, Blocks: r, Reason: reason}}
}

func agentGap(kind repute.EventKind, id repute.TokenID, r repute.BlockRange, reason string) gap {
	h := newGap(kind, id.Dec(), r, reason)
	h.Agent = &id
	return h
}

func clientGap(kind repute.EventKind, id repute.TokenID, client common.Address, r repute.BlockRange, reason string) gap {
	h := agentGap(kind, id, r, reason)
	h.Client, h.Subject = &client, id.Dec()+"/"+client.Hex()
	return h
}

// operatorGap keeps the owner as client.
func operatorGap(o verifydb.OperatorThen, r repute.BlockRange, approved bool) gap {
	h := newGap(repute.KindApprovalForAll, o.Owner.Hex()+"/"+o.Operator.Hex(), r,
		fmt.Sprintf("isApprovedForAll of %s for %s is %t, stored %t", o.Operator, o.Owner, approved, o.Approved))
	h.Client = &o.Owner
	return h
}

// Subjects of gaps that no comparison of states found.
const (
	waitSubject  = "waits:" // a stored event waits for it
	blockSubject = "block:" // a block holds more than is stored
)

func sameGap(a, b gap) bool { return a.Kind == b.Kind && a.Subject == b.Subject }

// waitingGap is what a stored event waits for: it must lie between the newest
// thing known before it and the event itself.
func waitingGap(w verifydb.Waiting, event repute.Event, start uint64) (gap, bool) {
	r := repute.BlockRange{From: start, To: w.Log.BlockNumber}
	reason := fmt.Sprintf("log %d of block %d waits: %s", w.Log.Index, w.Log.BlockNumber, w.Reason)
	var h gap
	switch e := event.(type) {
	case repute.NewFeedback:
		h = clientGap(w.Kind, e.TokenID, e.Client, r, reason)
	case repute.FeedbackRevoked:
		h = clientGap(w.Kind, e.TokenID, e.Client, r, reason)
	case repute.ResponseAppended:
		h = clientGap(w.Kind, e.TokenID, e.Client, r, reason)
	default:
		id, ok := repute.AgentOf(event)
		if !ok {
			return h, false
		}
		h = agentGap(w.Kind, id, r, reason)
	}
	if w.Kind == repute.KindTransfer {
		h.Client, h.Subject = nil, h.Agent.Dec()
	}
	h.Subject = waitSubject + h.Subject
	return h, true
}

// search is how a node is asked for a gap's logs: the address and what must stand
// at each place of the topics. Whatever else is missing of the same agent comes
// with it.
type search struct {
	addresses []common.Address
	topics    [][]common.Hash
}

// searches gives the filters that find a gap's logs. A gap that names nobody is
// searched by kind alone.
func searches(c repute.Chain, h gap) []search {
	topic := []common.Hash{contracts.Topic(h.Kind)}
	switch h.Kind {
	case repute.KindNewFeedback, repute.KindFeedbackRevoked, repute.KindResponseAppended:
		all := topicsOf(repute.KindNewFeedback, repute.KindFeedbackRevoked, repute.KindResponseAppended)
		s := search{[]common.Address{c.Reputation}, [][]common.Hash{all, tokenTopic(h.Agent)}}
		if h.Client != nil {
			s.topics = append(s.topics, []common.Hash{common.BytesToHash(h.Client[:])})
		}
		return []search{s}
	case repute.KindValidationRequest, repute.KindValidationResponse:
		all := topicsOf(repute.KindValidationRequest, repute.KindValidationResponse)
		return []search{{c.Validations, [][]common.Hash{all, {}, tokenTopic(h.Agent)}}}
	case repute.KindApprovalForAll:
		s := search{[]common.Address{c.Identity}, [][]common.Hash{topic}}
		if h.Client != nil {
			s.topics = append(s.topics, []common.Hash{common.BytesToHash(h.Client[:])})
		}
		return []search{s}
	case repute.KindTransfer, repute.KindRegistered, repute.KindURIUpdated, repute.KindMetadataSet, repute.KindApproval:
		if h.Agent == nil {
			break
		}
		first := topicsOf(repute.KindRegistered, repute.KindURIUpdated, repute.KindMetadataSet)
		last := topicsOf(repute.KindTransfer, repute.KindApproval)
		return []search{
			{[]common.Address{c.Identity}, [][]common.Hash{first, tokenTopic(h.Agent)}},
			{[]common.Address{c.Identity}, [][]common.Hash{last, {}, {}, tokenTopic(h.Agent)}}}
	}
	return []search{{followedAddresses(c), [][]common.Hash{topic}}}
}

func topicsOf(kinds ...repute.EventKind) []common.Hash {
	topics := make([]common.Hash, len(kinds))
	for i, k := range kinds {
		topics[i] = contracts.Topic(k)
	}
	return topics
}

func tokenTopic(id *repute.TokenID) []common.Hash {
	if id == nil {
		return []common.Hash{}
	}
	return []common.Hash{id.Bytes32()}
}

func followedAddresses(c repute.Chain) []common.Address {
	d := contracts.NewDecoder(c)
	return d.Addresses
}

// may reports whether a block's bloom admits a log that the search finds.
func (s search) may(b types.Bloom) bool {
	if !slices.ContainsFunc(s.addresses, func(a common.Address) bool { return b.Test(a[:]) }) {
		return false
	}
	for _, wanted := range s.topics {
		if len(wanted) > 0 && !slices.ContainsFunc(wanted, func(t common.Hash) bool { return b.Test(t[:]) }) {
			return false
		}
	}
	return true
}

// matches is what a node does with the filter.
func (s search) matches(l *types.Log) bool {
	if !slices.Contains(s.addresses, l.Address) || len(l.Topics) < len(s.topics) {
		return false
	}
	for i, wanted := range s.topics {
		if len(wanted) > 0 && !slices.Contains(wanted, l.Topics[i]) {
			return false
		}
	}
	return true
}

// ofState reports whether comparing states again shows if the gap is still there.
func ofState(h gap) bool {
	return !strings.HasPrefix(h.Subject, waitSubject) && !strings.HasPrefix(h.Subject, blockSubject)
}

// indexOf is the rating that a gap is about, 0 when it is about all of a client's.
func indexOf(h gap) uint64 {
	parts := strings.Split(h.Subject, "/")
	if len(parts) < 3 {
		return 0
	}
	n, err := strconv.ParseUint(parts[2], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// operatorOf reads an operatorGap's pair.
func operatorOf(h gap) (verifydb.OperatorThen, bool) {
	owner, operator, ok := strings.Cut(h.Subject, "/")
	return verifydb.OperatorThen{Owner: common.HexToAddress(owner), Operator: common.HexToAddress(operator)},
		ok && h.Kind == repute.KindApprovalForAll && ofState(h)
}

// bloomOf is the bloom of logs alone.
func bloomOf(logs []types.Log) (b types.Bloom) {
	for i := range logs {
		b.Add(logs[i].Address[:])
		for _, t := range logs[i].Topics {
			b.Add(t[:])
		}
	}
	return b
}

// within reports whether every bit of part is set in whole.
func within(part, whole types.Bloom) bool {
	for i := range part {
		if part[i]&^whole[i] != 0 {
			return false
		}
	}
	return true
}

// sameContent compares what a stored log keeps.
func sameContent(a, b *types.Log) bool {
	return a.Address == b.Address && a.TxHash == b.TxHash && slices.Equal(a.Topics, b.Topics) && bytes.Equal(a.Data, b.Data)
}
