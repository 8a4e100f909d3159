package eventdb

import (
	"crypto/sha256"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store"
	"repute/store/chaindb"
)

// transfer moves an agent; the mint makes its row. The registry drops the
// per-token approval without an event, and the wallet with one that comes first;
// both are dropped here too.
func (f *fold) transfer(e repute.Transfer, a *foldAgent, at chaindb.Point) string {
	mint := e.From == common.Address{}
	if !mint {
		a.sofar.walletSet = true
	}
	if !a.exists {
		if !mint {
			return chaindb.WaitsForAgent
		}
		f.create(a, at)
	}
	a.owner, a.claimed = e.To, false
	if !mint {
		a.wallet, a.approved = common.Address{}, common.Address{}
	}
	f.change(store.KindTransferred, at, &a.id, transferredData{store.Eip55(e.From), store.Eip55(a.owner), store.Maybe(a.wallet), store.Maybe(a.approved)})
	return ""
}

func (f *fold) create(a *foldAgent, at chaindb.Point) {
	a.exists, a.registered = true, at
	a.uri = f.ids.URIs[""]
}

// registered brings the first URI. The registry writes the registrant as wallet,
// mints, which calls the registrant back, writes the URI where it was given one,
// and logs Registered and the wallet. So what was done in the callback is newer
// than that wallet event, and than the empty URI of a registration without one,
// but not than an empty URI that was given: only such a one is hinted at by a
// MetadataUpdate right before Registered.
func (f *fold) registered(e repute.Registered, a *foldAgent, at chaindb.Point) string {
	if !a.exists {
		f.create(a, at)
		a.owner, a.claimed = e.Owner, true
	}
	data := registeredData{Owner: store.Eip55(a.owner), Claimed: a.claimed}
	if e.URI != "" || !a.sofar.uriUpdated || a.sofar.last == repute.KindMetadataUpdate {
		a.uri = f.ids.URIs[e.URI]
		data.URI = (*chainText)(&e.URI)
	}
	a.sofar.ignoreWallet = a.sofar.walletSet
	f.change(store.KindRegistered, at, &a.id, data)
	return ""
}

func (f *fold) uriUpdated(e repute.URIUpdated, a *foldAgent, at chaindb.Point) string {
	a.sofar.uriUpdated = true
	if !a.exists {
		return chaindb.WaitsForAgent
	}
	a.uri = f.ids.URIs[e.URI]
	f.change(store.KindURI, at, &a.id, uriData{chainText(e.URI), store.Eip55(e.UpdatedBy)})
	return ""
}

func (f *fold) metadataSet(e repute.MetadataSet, a *foldAgent, at chaindb.Point) string {
	ignore := a.sofar.ignoreWallet
	a.sofar.ignoreWallet = false
	if e.Key == chaindb.WalletKey {
		a.sofar.walletSet = true
	}
	if !a.exists {
		return chaindb.WaitsForAgent
	}
	if e.Key == chaindb.WalletKey {
		if !ignore {
			f.walletSet(e.Value, a, at)
		}
		return ""
	}
	f.setMetadata(metadataRow{
		metadataKey: metadataKey{a.id, sha256.Sum256([]byte(e.Key))},
		key:         []byte(e.Key), value: e.Value, at: at,
	}, a)
	f.change(store.KindMetadata, at, &a.id, metadataData{Key: chainText(e.Key), Value: chainBytes(e.Value)})
	return ""
}

// walletSet reads 20 bytes, or a padded word as some writers encode it; empty
// clears. A value of any other length says nothing and changes nothing.
func (f *fold) walletSet(value []byte, a *foldAgent, at chaindb.Point) {
	switch len(value) {
	case 0:
		a.wallet = common.Address{}
	case common.AddressLength, common.HashLength:
		a.wallet = common.BytesToAddress(value)
	default:
		return
	}
	f.change(store.KindWallet, at, &a.id, walletData{store.Maybe(a.wallet)})
}

// setMetadata opens a row of the current block and ends the one before it.
func (f *fold) setMetadata(row metadataRow, a *foldAgent) {
	i, known := f.metadata[row.metadataKey]
	switch {
	case known && f.out.metadata[i].at.Block == row.at.Block:
		f.out.metadata[i] = row
		return
	case known:
		f.out.metadata[i].to = row.at.Block
	case a.stored:
		f.out.closedKeys = append(f.out.closedKeys, closedKey{row.metadataKey, row.at.Block})
	}
	f.metadata[row.metadataKey] = len(f.out.metadata)
	f.out.metadata = append(f.out.metadata, row)
}

func (f *fold) approval(e repute.Approval, a *foldAgent, at chaindb.Point) string {
	if !a.exists {
		return chaindb.WaitsForAgent
	}
	a.approved = e.Approved
	f.change(store.KindApproval, at, &a.id, approvalData{store.Maybe(a.approved)})
	return ""
}

func (f *fold) approvalForAll(e repute.ApprovalForAll, at chaindb.Point) {
	key := operatorKey{e.Owner, e.Operator}
	o := f.operators[key]
	o.approved = e.Approved
	if o.inBlock != f.block {
		o.inBlock = f.block
		f.operatorsNow = append(f.operatorsNow, key)
	}
	f.change(store.KindOperator, at, nil, operatorData{store.Eip55(e.Owner), store.Eip55(e.Operator), e.Approved})
}

// endBlock writes the histories of what is different from the end of the block
// before: one row per agent and block, however often it changed in between.
func (f *fold) endBlock() {
	for _, a := range f.agentsOfNow {
		if a.exists && (!a.existed || a.agentState != a.before) {
			f.closeState(a)
			a.open = len(f.out.states)
			f.out.states = append(f.out.states, stateRow{id: a.id, from: f.block, agentState: a.agentState})
		}
		a.existed, a.before = a.exists, a.agentState
	}
	for _, key := range f.operatorsNow {
		f.endOperator(key, f.operators[key])
	}
	f.agentsOfNow, f.operatorsNow = f.agentsOfNow[:0], f.operatorsNow[:0]
}

func (f *fold) closeState(a *foldAgent) {
	switch {
	case a.open >= 0:
		f.out.states[a.open].to = f.block
	case a.existed:
		f.out.closedStates = append(f.out.closedStates, closedState{a.id, f.block})
	}
}

func (f *fold) endOperator(key operatorKey, o *foldOperator) {
	switch {
	case o.approved && !o.before:
		o.open = len(f.out.operators)
		f.out.operators = append(f.out.operators, operatorRow{operatorKey: key, from: f.block})
	case !o.approved && o.before && o.open >= 0:
		f.out.operators[o.open].to = f.block
	case !o.approved && o.before:
		f.out.closedSpans = append(f.out.closedSpans, operatorRow{operatorKey: key, to: f.block})
	}
	if !o.approved {
		o.open = -1
	}
	o.before = o.approved
}
