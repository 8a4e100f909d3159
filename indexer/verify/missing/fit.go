package missing

import (
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/contracts"
)

// Fits reports whether the stored logs of one block are whole as far as the identity
// registry's habits show: a new URI is announced by a MetadataUpdate right before
// it, a transfer by clearing the wallet, a mint is followed by Registered in its
// transaction and that by the wallet. Where they do not fit, the block's receipts
// must tell: another version of the registry may have other habits.
func Fits(c repute.Chain, logs []types.Log) bool {
	var ours []placed
	for _, l := range logs {
		if l.Address != c.Identity {
			continue
		}
		if event, err := contracts.Decode(l); err == nil {
			ours = append(ours, placed{l.Index, l.TxHash, event})
		}
	}
	for i := range ours {
		if !ours[i].fits(ours) {
			return false
		}
	}
	return true
}

type placed struct {
	index uint
	tx    common.Hash
	event repute.Event
}

// fits reports whether the events that its contract emits together with this one are next to it. A
// log that lacks its companions shows which one is missing.
func (p placed) fits(all []placed) bool {
	switch e := p.event.(type) {
	case repute.URIUpdated:
		return isEventAt(all, p.index-1, repute.KindMetadataUpdate, e.TokenID)
	case repute.MetadataUpdate:
		return isEventAt(all, p.index+1, repute.KindURIUpdated, e.TokenID) ||
			isEventAt(all, p.index+1, repute.KindRegistered, e.TokenID)
	case repute.Registered:
		return isEventAt(all, p.index+1, repute.KindMetadataSet, e.TokenID) &&
			p.together(all, repute.KindTransfer, e.TokenID) &&
			(e.URI == "" || isEventAt(all, p.index-1, repute.KindMetadataUpdate, e.TokenID))
	case repute.Transfer:
		if e.From != (common.Address{}) {
			return isEventAt(all, p.index-1, repute.KindMetadataSet, e.TokenID)
		}
		return p.together(all, repute.KindRegistered, e.TokenID)
	}
	return true
}

// isEventAt reports whether the log at an index is an event of that kind and agent.
func isEventAt(all []placed, index uint, kind repute.EventKind, id repute.TokenID) bool {
	for _, p := range all {
		if p.index == index {
			other, ok := repute.AgentOf(p.event)
			return ok && p.event.Kind() == kind && other == id
		}
	}
	return false
}

// together reports whether the transaction has an event of that kind and agent.
func (p placed) together(all []placed, kind repute.EventKind, id repute.TokenID) bool {
	for _, q := range all {
		if other, ok := repute.AgentOf(q.event); ok && q.tx == p.tx && q.event.Kind() == kind && other == id {
			return true
		}
	}
	return false
}
