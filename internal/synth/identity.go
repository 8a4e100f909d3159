package synth

import (
	"github.com/ethereum/go-ethereum/common"

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

func (g *generator) registerSome() { g.register() }

// register makes an agent by one of the three overloads.
func (g *generator) register() {
	owner, uri := g.owner(), g.agentURI()
	g.begin(identityAddress)
	token := g.mint(owner)
	if uri != 0 || g.rng.IntN(2) == 0 { // else register(), which sets no URI
		g.metadataUpdate(token)
	}
	g.registered(token, owner, uri)
	g.wallet(token, owner)
	if g.rng.IntN(10) == 0 {
		for key := range 1 + g.rng.IntN(3) {
			g.metadata(token, uint32(key), g.rng.Uint32())
		}
	}
}

// registerCallback is register() of a contract that, called back between mint
// and Registered, sets the URI or gives the agent away.
func (g *generator) registerCallback() {
	owner, uri := g.owner(), formWeb|g.number()
	g.begin(identityAddress)
	token := g.mint(owner)
	if g.rng.IntN(2) == 0 {
		g.metadataUpdate(token)
		g.uriUpdated(token, owner, uri)
		g.registeredLog(token, owner, 0)
		g.wallet(token, owner)
		return
	}
	g.move(token, g.owner())
	g.registered(token, owner, 0)
	// The event names a wallet that the transfer has just ruled out.
	g.walletLog(token, owner)
}

func (g *generator) mint(owner party) uint32 {
	token := g.st.mint(owner, g.here())
	g.transferLog(token, 0, owner)
	return token
}

func (g *generator) transferLog(token uint32, from, to party) {
	g.about(token, g.enc.log(identityAddress, repute.KindTransfer,
		[]common.Hash{partyTopic(from), partyTopic(to), tokenTopic(token)}))
}

func (g *generator) metadataUpdate(token uint32) {
	g.about(token, g.enc.log(identityAddress, repute.KindMetadataUpdate, nil, uint64(token)))
}

func (g *generator) registered(token uint32, owner party, uri text) {
	g.st.change(token).URI = uri
	g.registeredLog(token, owner, uri)
}

func (g *generator) registeredLog(token uint32, owner party, uri text) {
	g.about(token, g.enc.log(identityAddress, repute.KindRegistered,
		[]common.Hash{tokenTopic(token), partyTopic(owner)}, uri.String()))
}

func (g *generator) uriUpdated(token uint32, by party, uri text) {
	g.st.change(token).URI = uri
	g.about(token, g.enc.log(identityAddress, repute.KindURIUpdated,
		[]common.Hash{tokenTopic(token), partyTopic(by)}, uri.String()))
}

func (g *generator) wallet(token uint32, wallet party) {
	g.st.change(token).Wallet = wallet
	g.walletLog(token, wallet)
}

// walletLog carries 20 bytes, or none for no wallet.
func (g *generator) walletLog(token uint32, wallet party) {
	value := ""
	if a := wallet.address(); wallet != 0 {
		value = string(a[:])
	}
	g.about(token, g.enc.log(identityAddress, repute.KindMetadataSet,
		[]common.Hash{tokenTopic(token), g.enc.wallet}, "agentWallet", value))
}

func (g *generator) metadata(token, key, value uint32) {
	g.st.setMetadata(token, key, value, g.here())
	g.about(token, g.enc.log(identityAddress, repute.KindMetadataSet,
		[]common.Hash{tokenTopic(token), g.enc.key[key]}, metadataKeys[key], string(metadataValue(value))))
}

// move transfers: the wallet is cleared first, the approval without an event.
func (g *generator) move(token uint32, to party) {
	from := g.st.agents[token].Now.Owner
	g.walletLog(token, 0)
	g.st.transfer(token, to)
	g.transferLog(token, from, to)
}

func (g *generator) transfer() {
	g.begin(identityAddress)
	g.move(g.anyAgent(), g.owner()) // sometimes to its owner, which is legal too
}

func (g *generator) updateURI() {
	token := g.anyAgent()
	uri := g.agentURI()
	if uri == 0 && g.rng.IntN(10) > 0 {
		uri = formWeb | g.number()
	}
	g.begin(identityAddress)
	g.metadataUpdate(token)
	g.uriUpdated(token, g.st.agents[token].Now.Owner, uri)
}

func (g *generator) setMetadata() {
	g.begin(identityAddress)
	g.metadata(g.anyAgent(), uint32(g.rng.IntN(len(metadataKeys))), g.rng.Uint32())
}

func (g *generator) setWallet() {
	wallet := party(0)
	if g.rng.IntN(5) > 0 {
		wallet = g.owner()
	}
	g.begin(identityAddress)
	g.wallet(g.anyAgent(), wallet)
}

func (g *generator) approve() {
	token, to := g.anyAgent(), party(0)
	if g.rng.IntN(10) > 0 {
		to = operators + party(g.rng.IntN(500))
	}
	g.begin(identityAddress)
	g.st.change(token).Approved = to
	g.about(token, g.enc.log(identityAddress, repute.KindApproval,
		[]common.Hash{partyTopic(g.st.agents[token].Now.Owner), partyTopic(to), tokenTopic(token)}))
}

// approveAll also repeats what already holds, which is legal.
func (g *generator) approveAll() {
	owner := g.st.agents[g.anyAgent()].Now.Owner
	operator, yes := operators+party(g.rng.IntN(4)), g.rng.IntN(4) > 0
	g.st.approveAll(owner, operator, yes)
	g.begin(identityAddress)
	g.emit(g.enc.log(identityAddress, repute.KindApprovalForAll,
		[]common.Hash{partyTopic(owner), partyTopic(operator)}, yes))
}
