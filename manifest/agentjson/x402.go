package agentjson

import (
	"encoding/json"
	"slices"

	"repute/internal/jsonwalk"
)

// rootX402 reads the root's x402 member, or that of payments. Only the former has to say that it is supported.
//
// Where both forms are there, the list wins over the members of one network.
func (o *object) rootX402(name string, legacy bool) *X402 {
	c := o.child(name)
	if c == nil {
		return nil
	}
	x := &X402{Supported: c.flag("supported"), Recipient: c.text("recipient", maxShort)}
	if legacy && !c.has("supported") {
		c.r.add(CodeMissing, c.at("supported"), "no supported")
	}
	c.address("recipient", x.Recipient)
	if c.has("networks") {
		c.network((*object).text) // ignored, though of the right types
		x.Networks = c.networks()
	} else if n := c.network((*object).text); n != (Network{}) {
		x.Networks = []Network{n}
	}
	if x.isSupported(legacy) && !c.has("networks") && (len(x.Networks) == 0 ||
		x.Networks[0].Network == "" && x.Networks[0].Asset == "") {
		c.r.add(CodeNoNetwork, c.path(), "no network and no asset")
	}
	c.unknown(nil)
	return x
}

// isSupported reports whether the service is paid by x402. The legacy member has to say so; in payments the member
// itself says it, unless supported is false.
func (x *X402) isSupported(legacy bool) bool {
	if x.Supported == nil {
		return !legacy
	}
	return *x.Supported
}

// network reads the members of one network. The function reads those that an entry of a list must have.
// text is (*object).text where the members may be absent, and (*object).required in a list.
func (o *object) network(text func(*object, string, int) string) Network {
	n := Network{
		Network:     text(o, "network", maxShort),
		Asset:       text(o, "asset", maxShort),
		Contract:    o.text("contract", maxShort),
		Facilitator: o.url("facilitator"),
	}
	o.address("contract", n.Contract)
	if n.Facilitator != "" && !isWebURL(n.Facilitator) {
		o.r.add(CodeURL, o.at("facilitator"), "%.*q is no https URL", maxQuotedValue, n.Facilitator)
	}
	return n
}

// networks reads the networks of x402. A network given twice counts once.
func (o *object) networks() []Network {
	list := o.filled("networks", maxNetworks)
	out := make([]Network, 0, len(list))
	for i := range list {
		e := o.entry("networks", i, list[i])
		if e == nil {
			continue
		}
		n := e.network((*object).required)
		e.unknown(nil)
		switch {
		case n.Network == "" || n.Asset == "":
			continue
		case slices.ContainsFunc(out, func(other Network) bool {
			return other.Network == n.Network && other.Asset == n.Asset
		}):
			o.r.add(CodeNetworkTwice, e.at("network"), "%.*q again", maxQuotedValue, n.Network)
			continue
		}
		out = append(out, n)
	}
	return out
}

// rootNetworks returns the names of the networks that the root declares for x402.
func rootNetworks(x *X402) []string {
	if x == nil {
		return nil
	}
	var out []string
	for _, n := range x.Networks {
		if n.Network != "" {
			out = append(out, n.Network)
		}
	}
	return out
}

// intentX402 reads what an intent overrides of x402.
func (o *object) intentX402(name string, networks []string) *IntentX402 {
	c := o.child(name)
	if c == nil {
		return nil
	}
	x := &IntentX402{
		Supported:   c.flag("supported"),
		Direct:      c.decimal("direct_price"),
		Ticket:      c.decimal("ticket_price"),
		Description: c.text("description", maxText),
	}
	c.ticket(x.Direct, x.Ticket)
	for i, m := range c.filled("network_pricing", maxNetworks) {
		if e := c.entry("network_pricing", i, m); e != nil {
			x.Pricing = e.networkPrice(x.Pricing, networks)
		}
	}
	c.unknown(nil)
	return x
}

// networkPrice reads the price on one network and appends it unless the network has one already.
func (o *object) networkPrice(known []NetworkPrice, networks []string) []NetworkPrice {
	p := NetworkPrice{
		Network: o.required("network", maxShort),
		Direct:  o.decimal("direct_price"),
		Ticket:  o.decimal("ticket_price"),
	}
	o.ticket(p.Direct, p.Ticket)
	o.unknown(nil)
	switch {
	case p.Network == "":
		return known
	case slices.ContainsFunc(known, func(other NetworkPrice) bool { return other.Network == p.Network }):
		o.r.add(CodeNetworkTwice, o.at("network"), "duplicate of %.*q", maxQuotedValue, p.Network)
		return known
	case len(networks) > 0 && !slices.Contains(networks, p.Network):
		o.r.add(CodeUndeclared, o.at("network"), "%.*q is not declared at the root", maxQuotedValue, p.Network)
	}
	return append(known, p)
}

// ticket reports a ticket that costs more than a request without one.
func (o *object) ticket(direct, ticket Decimal) {
	if direct != "" && ticket != "" && ticket.Cmp(direct) > 0 {
		o.r.add(CodeTicket, o.at("ticket_price"), "%s is more than direct_price %s", ticket, direct)
	}
}

// payments reads the payment protocols of the root.
func (o *object) payments() *Payments {
	c := o.child("payments")
	if c == nil {
		return nil
	}
	return &Payments{X402: c.rootX402("x402", false), Accounts: c.accounts()}
}

// intentPayments reads what an intent overrides of the payment protocols.
func (o *object) intentPayments(networks []string) *IntentPayments {
	c := o.child("payments")
	if c == nil {
		return nil
	}
	return &IntentPayments{X402: c.intentX402("x402", networks), Accounts: c.accounts()}
}

// accounts reads the protocols of payments besides x402, which MUST be read before: it would count as not known.
// The order matters: otherProtocols takes every member that no one before it has read.
func (o *object) accounts() Accounts {
	return Accounts{Protocols: o.protocols(), L402: o.l402(), MPP: o.mpp(), Other: o.otherProtocols()}
}

// protocols returns the names of the protocols in the order written, each once.
func (o *object) protocols() []string {
	var out []string
	for _, m := range o.members {
		name := jsonwalk.Clean(jsonwalk.Cut(string(m.name), maxShort))
		if len(out) < maxNetworks && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// l402 reads the account of L402. Members that it does not know belong to the protocol.
func (o *object) l402() *Account {
	c := o.child("l402")
	if c == nil {
		return nil
	}
	return &Account{
		Version:          c.text("version", maxShort),
		LightningAddress: c.text("lightning_address", maxShort),
		LNURL:            c.url("lnurl"),
		Description:      c.text("description", maxText),
		Recipient:        c.text("recipient", maxShort),
	}
}

// mpp reads the account of a managed payment provider. Members that it does not know belong to the provider.
func (o *object) mpp() *Account {
	c := o.child("mpp")
	if c == nil {
		return nil
	}
	return &Account{
		StripeAccount: c.text("stripe_account", maxShort),
		Provider:      c.text("provider", maxShort),
		Recipient:     c.text("recipient", maxShort),
	}
}

// otherProtocols keeps the protocols that are not known.
func (o *object) otherProtocols() map[string]json.RawMessage {
	var out map[string]json.RawMessage
	for i := range o.members {
		m := &o.members[i]
		if m.used {
			continue
		}
		name := string(m.name)
		o.r.add(CodeProtocol, o.at(name), "the protocol is not known")
		if raw := o.r.kept(m.raw, o, name); raw != nil && len(out) < maxNetworks {
			if out == nil {
				out = map[string]json.RawMessage{}
			}
			out[jsonwalk.Clean(jsonwalk.Cut(name, maxShort))] = raw
		}
	}
	return out
}

// payable reports an intent whose price names networks none of which x402 has.
func (o *object) payable(in Intent, networks []string) {
	if in.Price == nil || len(in.Price.Networks) == 0 || len(networks) == 0 {
		return
	}
	if !slices.ContainsFunc(networks, func(n string) bool { return slices.Contains(in.Price.Networks, n) }) {
		o.r.add(CodeNoWay, o.at("price")+"/network", "none of the root's networks of x402 is among them")
	}
}
