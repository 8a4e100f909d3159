package synth

import (
	"repute"
)

// owner draws who registers or receives an agent: one account has a sixth of
// them, fifty a quarter.
func (g *generator) owner() party {
	switch r := g.rng.IntN(100); {
	case r < 17:
		return owners
	case r < 42:
		return owners + 1 + party(g.rng.IntN(50))
	}
	return owners + 100 + party(g.rng.IntN(g.spec.scaled(60_000, 40)))
}

// anyAgent draws an agent.
func (g *generator) anyAgent() uint32 { return uint32(g.rng.IntN(len(g.st.agents))) }

// number is a number that no text of this history has had, so that texts differ.
func (g *generator) number() text {
	g.uris++
	return text(g.uris)
}

// clones is how many documents are shared by many agents.
const clones = 8

// document draws a data URI; half of them are copies.
func (g *generator) document() text {
	if g.rng.IntN(2) == 0 {
		return formDocument | text(g.rng.IntN(clones))
	}
	return formDocument | (clones + g.number())
}

// agentURI draws the URI of a registration by the shares seen on Ethereum.
func (g *generator) agentURI() text {
	switch r := g.rng.IntN(10_000); {
	case r < 5_350:
		return 0
	case r < 9_050:
		return g.document()
	case r < 9_970:
		return formWeb | g.number()
	case r < 9_990:
		return formIPFS | g.number()
	case r < 9_994:
		return formGzip | g.number()
	case r < 9_995:
		return formInline | g.number()
	}
	return formJunk | g.number()
}

// register makes an agent by one of the three overloads.
func (g *generator) register() {
	owner, uri := g.owner(), g.agentURI()
	g.begin(identityAddress)
	id := g.mint(owner)
	if uri != 0 || g.rng.IntN(2) == 0 { // else register(), which sets no URI
		g.metadataUpdate(id)
	}
	g.registered(id, owner, uri)
	g.wallet(id, owner)
	if g.rng.IntN(10) == 0 {
		for key := range 1 + g.rng.IntN(3) {
			g.metadata(id, uint32(key), g.rng.Uint32())
		}
	}
}

// registerCallback is register() of a contract that, called back between mint
// and Registered, sets the URI or gives the agent away.
func (g *generator) registerCallback() {
	owner, uri := g.owner(), formWeb|g.number()
	g.begin(identityAddress)
	id := g.mint(owner)
	if g.rng.IntN(2) == 0 {
		g.metadataUpdate(id)
		g.uriUpdated(id, owner, uri)
		g.registeredLog(id, owner, 0)
		g.wallet(id, owner)
		return
	}
	g.move(id, g.owner())
	g.registered(id, owner, 0)
	// The event names a wallet that the transfer has just ruled out.
	g.walletLog(id, owner)
}

// mint adds an agent and the transfer from the zero address. The registry sets neither URI nor wallet by it.
func (g *generator) mint(owner party) uint32 {
	id := g.st.mint(owner, g.here())
	g.transferLog(id, 0, owner)
	return id
}

// transferLog leaves the event alone; move changes the state too.
func (g *generator) transferLog(id uint32, from, to party) {
	g.about(id, repute.Transfer{From: from.address(), To: to.address(), TokenID: token(id)})
}

func (g *generator) metadataUpdate(id uint32) {
	g.about(id, repute.MetadataUpdate{TokenID: token(id)})
}

// registered sets the URI and leaves the event. registeredLog leaves it where the state has moved on meanwhile.
func (g *generator) registered(id uint32, owner party, uri text) {
	g.st.change(id).URI = uri
	g.registeredLog(id, owner, uri)
}

func (g *generator) registeredLog(id uint32, owner party, uri text) {
	g.about(id, repute.Registered{TokenID: token(id), Owner: owner.address(), URI: uri.String()})
}

// uriUpdated sets the URI and leaves the event.
func (g *generator) uriUpdated(id uint32, by party, uri text) {
	g.st.change(id).URI = uri
	g.about(id, repute.URIUpdated{TokenID: token(id), UpdatedBy: by.address(), URI: uri.String()})
}

// wallet sets the wallet and leaves the event, which is one of metadata.
func (g *generator) wallet(id uint32, wallet party) {
	g.st.change(id).Wallet = wallet
	g.walletLog(id, wallet)
}

// walletLog carries 20 bytes, or none for no wallet.
func (g *generator) walletLog(id uint32, wallet party) {
	g.about(id, repute.MetadataSet{TokenID: token(id), Key: "agentWallet", Value: wallet.raw()})
}

// metadata sets a value and leaves the event. The key of the wallet is not among metadataKeys.
func (g *generator) metadata(id, key, value uint32) {
	g.st.setMetadata(id, key, value, g.here())
	g.about(id, repute.MetadataSet{TokenID: token(id), Key: metadataKeys[key], Value: metadataValue(value)})
}

// move transfers: the wallet is cleared first, the approval without an event.
func (g *generator) move(id uint32, to party) {
	from := g.st.agents[id].Now.Owner
	g.walletLog(id, 0)
	g.st.transfer(id, to)
	g.transferLog(id, from, to)
}

// transfer moves any agent.
func (g *generator) transfer() {
	g.begin(identityAddress)
	g.move(g.anyAgent(), g.owner()) // sometimes to its owner, which is legal too
}

// updateURI changes the URI of any agent; one in ten of the empty ones stays empty, which is legal.
func (g *generator) updateURI() {
	id := g.anyAgent()
	uri := g.agentURI()
	if uri == 0 && g.rng.IntN(10) > 0 {
		uri = formWeb | g.number()
	}
	g.begin(identityAddress)
	g.metadataUpdate(id)
	g.uriUpdated(id, g.st.agents[id].Now.Owner, uri)
}

// setMetadata is also what fills a history up to its size: it leaves exactly one log.
func (g *generator) setMetadata() {
	g.begin(identityAddress)
	g.metadata(g.anyAgent(), uint32(g.rng.IntN(len(metadataKeys))), g.rng.Uint32())
}

// setWallet adds an event that sets the wallet of any agent, or clears it in one case of five.
func (g *generator) setWallet() {
	wallet := party(0)
	if g.rng.IntN(5) > 0 {
		wallet = g.owner()
	}
	g.begin(identityAddress)
	g.wallet(g.anyAgent(), wallet)
}

// approve adds an event that approves an operator for any agent, or clears the approval in one case of ten.
func (g *generator) approve() {
	id, to := g.anyAgent(), party(0)
	if g.rng.IntN(10) > 0 {
		to = operators + party(g.rng.IntN(500))
	}
	g.begin(identityAddress)
	g.st.change(id).Approved = to
	g.about(id, repute.Approval{Owner: g.st.agents[id].Now.Owner.address(), Approved: to.address(), TokenID: token(id)})
}

// approveAll also repeats what already holds, which is legal.
func (g *generator) approveAll() {
	owner := g.st.agents[g.anyAgent()].Now.Owner
	operator, yes := operators+party(g.rng.IntN(4)), g.rng.IntN(4) > 0
	g.st.approveAll(owner, operator, yes)
	g.begin(identityAddress)
	g.emit(g.enc.log(repute.ApprovalForAll{Owner: owner.address(), Operator: operator.address(), Approved: yes}))
}
