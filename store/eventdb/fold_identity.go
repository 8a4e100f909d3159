package eventdb

import (
	"crypto/sha256"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store/chaindb"
	"repute/store/changedata"
	"repute/store/hourdb"
)

// transfer changes the owner of an agent; a mint creates it. The registry clears the token's
// approval without an event, and the wallet with an event that comes before the transfer; both are
// cleared here too.
func (f *fold) transfer(e repute.Transfer, a *foldAgent, at chaindb.Point) string {
	mint := e.From == common.Address{}
	if !mint {
		a.tx.walletSet = true
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
	f.change(changedata.KindTransferred, at, &a.id, transferredData{changedata.Eip55(e.From), changedata.Eip55(a.owner),
		changedata.Maybe(a.wallet), changedata.Maybe(a.approved)})
	return ""
}

// create makes an agent exist from a position on, with an empty URI.
func (f *fold) create(a *foldAgent, at chaindb.Point) {
	a.exists, a.registered = true, at
	a.uri = f.ids.URIs[""]
	f.count(at, hourdb.Event{Series: hourdb.Registrations, Token: a.id})
}

// registered sets the first URI. The registry writes the registrant as wallet, mints, which calls
// the registrant back, writes the URI where one was given, and logs Registered and the wallet. So
// events of the callback are newer than that wallet event, and newer than the empty URI of a
// registration without a URI. They are not newer than an empty URI that was given, which a
// MetadataUpdate right before Registered reveals.
func (f *fold) registered(e repute.Registered, a *foldAgent, at chaindb.Point) string {
	if !a.exists {
		f.create(a, at)
		a.owner, a.claimed = e.Owner, true
	}
	data := registeredData{Owner: changedata.Eip55(a.owner), Claimed: a.claimed}
	if e.URI != "" || !a.tx.uriUpdated || a.tx.last == repute.KindMetadataUpdate {
		a.uri = f.ids.URIs[e.URI]
		data.URI = (*chainText)(&e.URI)
	}
	a.tx.ignoreWallet = a.tx.walletSet
	f.change(changedata.KindRegistered, at, &a.id, data)
	return ""
}

// uriUpdated replaces the URI of an agent.
func (f *fold) uriUpdated(e repute.URIUpdated, a *foldAgent, at chaindb.Point) string {
	a.tx.uriUpdated = true
	if !a.exists {
		return chaindb.WaitsForAgent
	}
	a.uri = f.ids.URIs[e.URI]
	f.change(changedata.KindURI, at, &a.id, uriData{chainText(e.URI), changedata.Eip55(e.UpdatedBy)})
	return ""
}

// metadataSet stores a metadata value, or the wallet under its reserved key.
func (f *fold) metadataSet(e repute.MetadataSet, a *foldAgent, at chaindb.Point) string {
	ignore := a.tx.ignoreWallet
	a.tx.ignoreWallet = false
	if e.Key == chaindb.WalletKey {
		a.tx.walletSet = true
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
	f.change(changedata.KindMetadata, at, &a.id, metadataData{Key: chainText(e.Key), Value: chainBytes(e.Value)})
	return ""
}

// walletSet reads a wallet of 20 bytes, or padded to 32 as some writers encode it; an empty value
// clears it. A value of another length changes nothing.
func (f *fold) walletSet(value []byte, a *foldAgent, at chaindb.Point) {
	switch len(value) {
	case 0:
		a.wallet = common.Address{}
	case common.AddressLength, common.HashLength:
		a.wallet = common.BytesToAddress(value)
	default:
		return
	}
	f.change(changedata.KindWallet, at, &a.id, walletData{changedata.Maybe(a.wallet)})
}

// setMetadata opens a row in the current block and closes the one before it.
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

// approval replaces the address that may transfer the agent.
func (f *fold) approval(e repute.Approval, a *foldAgent, at chaindb.Point) string {
	if !a.exists {
		return chaindb.WaitsForAgent
	}
	a.approved = e.Approved
	f.change(changedata.KindApproval, at, &a.id, approvalData{changedata.Maybe(a.approved)})
	return ""
}

// approvalForAll sets whether an operator may act for every agent of an owner.
func (f *fold) approvalForAll(e repute.ApprovalForAll, at chaindb.Point) {
	key := operatorKey{e.Owner, e.Operator}
	o := f.operators[key]
	o.approved = e.Approved
	if o.inBlock != f.block {
		o.inBlock = f.block
		f.operatorsInBlock = append(f.operatorsInBlock, key)
	}
	if !f.quiet {
		f.out.changes = append(f.out.changes, ChangeRow{Kind: changedata.KindOperator, At: at, Owner: e.Owner,
			Data: changedata.Marshal(operatorData{changedata.Eip55(e.Owner), changedata.Eip55(e.Operator),
				e.Approved})})
	}
}

// endBlock adds history rows for everything that differs from the end of the block before: one row
// per agent and block, however often it changed within the block.
func (f *fold) endBlock() {
	for _, a := range f.agentsInBlock {
		if a.exists && (!a.existed || a.agentState != a.before) {
			f.closeState(a)
			a.open = len(f.out.states)
			f.out.states = append(f.out.states, stateRow{id: a.id, from: f.block, agentState: a.agentState})
		}
		a.existed, a.before = a.exists, a.agentState
	}
	for _, key := range f.operatorsInBlock {
		f.endOperator(key, f.operators[key])
	}
	f.agentsInBlock, f.operatorsInBlock = f.agentsInBlock[:0], f.operatorsInBlock[:0]
}

// closeState closes the open history row of an agent at the current block.
func (f *fold) closeState(a *foldAgent) {
	switch {
	case a.open >= 0:
		f.out.states[a.open].to = f.block
	case a.existed:
		f.out.closedStates = append(f.out.closedStates, closedState{a.id, f.block})
	}
}

// endOperator opens or closes the history row of an approval for all at the end of a block.
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
