package agentjson

import (
	"cmp"
	"encoding/json"
	"math/big"
	"slices"
	"strconv"
)

// Payment protocols that are known.
const (
	ProtocolX402     = "x402"
	ProtocolL402     = "l402"
	ProtocolMPP      = "mpp"
	ProtocolTransfer = "transfer" // plainly to the payout address
)

// Terms are what an intent costs and how it is paid, after all overrides.
type Terms struct {
	Price     *Price // nil for an intent without a price of its own
	Ways      []Way  // in the order of preference of the manifest
	Bounty    *Reward
	Incentive *Reward
}

// Way is one way to pay for a call.
type Way struct {
	Protocol string
	Known    bool // the protocol is one of the constants

	Network     string // of x402 and of a transfer
	Asset       string
	Contract    string
	Facilitator string
	Recipient   string
	Account     *Account        // of l402 and mpp
	Other       json.RawMessage // of a protocol that is not known, as written

	Direct   Decimal // price of one unit; "" where only the service's answer tells
	Ticket   Decimal // price with a prepaid ticket; "" where none is offered
	Currency string  // of Direct; tickets are in Asset
	Unit     string  // per_call, per_unit or flat; "" without a price
	Counts   string  // the parameter that counts units, of per_unit
	FreeTier uint64  // calls before the price applies

	// The JSON pointers of the members that decided.
	RecipientFrom, DirectFrom, TicketFrom string

	// Missing names what is needed to pay and not in the manifest: network, asset.
	Missing []string
}

// Terms resolves how the intent with an index is paid; the zero value for an index that is none.
//
// A way is a claim of the manifest and no promise: the demand of the service's 402 answer decides what is paid.
// Transfers come last, because nothing links a plain transfer to a call.
func (m *Manifest) Terms(i int) Terms {
	if i < 0 || i >= len(m.Intents) {
		return Terms{}
	}
	in := &m.Intents[i]
	t := Terms{Price: in.Price, Bounty: cmp.Or(in.Bounty, m.Bounty), Incentive: cmp.Or(in.Incentive, m.Incentive)}
	at := "/intents/" + strconv.Itoa(i)
	for _, protocol := range m.protocols(in) {
		switch protocol {
		case ProtocolX402:
			t.Ways = append(t.Ways, m.x402Ways(in, at)...)
		case ProtocolL402, ProtocolMPP:
			t.Ways = append(t.Ways, m.accountWays(in, at, protocol)...)
		default:
			t.Ways = append(t.Ways, m.otherWay(in, protocol))
		}
	}
	t.Ways = append(t.Ways, m.transfers(in)...)
	for j := range t.Ways {
		t.Ways[j].priced(in.Price, at)
	}
	return t
}

// protocols returns the protocols of an intent, each once: those of payments in the order written, x402 of versions
// before 1.3, then those that only the intent names.
func (m *Manifest) protocols(in *Intent) []string {
	var out []string
	add := func(names ...string) {
		for _, name := range names {
			if !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	if m.Payments != nil {
		add(m.Payments.Protocols...)
	}
	if m.X402 != nil {
		add(ProtocolX402)
	}
	if in.Payments != nil {
		add(in.Payments.Protocols...)
	}
	if in.X402 != nil {
		add(ProtocolX402)
	}
	return out
}

// x402Override returns what the intent overrides of x402, and its JSON pointer.
func (in *Intent) x402Override(at string) (*IntentX402, string) {
	if in.Payments != nil && in.Payments.X402 != nil {
		return in.Payments.X402, at + "/payments/x402"
	}
	return in.X402, at + "/x402"
}

// x402Ways returns one way for each network.
//
// An override that does not say whether x402 is supported enables it where the root has no x402, and leaves it to the
// root otherwise.
func (m *Manifest) x402Ways(in *Intent, at string) []Way {
	root := m.rootX402()
	legacy := m.Payments == nil || m.Payments.X402 == nil
	override, overrideAt := in.x402Override(at)
	supported := override != nil
	if root != nil {
		supported = root.isSupported(legacy)
	}
	if override != nil && override.Supported != nil {
		supported = *override.Supported
	}
	if !supported {
		return nil
	}
	recipient, from := m.PayoutAddress, "/payout_address"
	if root != nil && root.Recipient != "" {
		recipient, from = root.Recipient, "/payments/x402/recipient"
		if legacy {
			from = "/x402/recipient"
		}
	}
	var ways []Way
	for _, n := range in.networks(root) {
		w := Way{Protocol: ProtocolX402, Known: true, Network: n.Network, Asset: n.Asset, Contract: n.Contract,
			Facilitator: n.Facilitator, Recipient: recipient, RecipientFrom: from}
		w.override(override, overrideAt)
		w.need()
		ways = append(ways, w)
	}
	return ways
}

// networks returns where x402 payments for an intent settle: the root's networks, of which a price in a token may leave
// only some. Where the root has none, the price's networks are all that is known.
func (in *Intent) networks(root *X402) []Network {
	var list []Network
	if root != nil {
		list = root.Networks
	}
	if in.Price == nil || len(in.Price.Networks) == 0 || in.Price.Currency == "USD" {
		if len(list) == 0 {
			return []Network{{}} // only the service's answer tells
		}
		return list
	}
	var out []Network
	for _, n := range list {
		if n.Network == "" || slices.Contains(in.Price.Networks, n.Network) {
			out = append(out, n)
		}
	}
	if len(list) == 0 {
		for _, name := range in.Price.Networks {
			out = append(out, Network{Network: name, Asset: in.Price.Currency})
		}
	}
	return out
}

// override sets the prices that an intent gives for x402: for the network, or else for all networks.
func (w *Way) override(x *IntentX402, at string) {
	if x == nil {
		return
	}
	w.price(x.Direct, x.Ticket, at)
	for i, p := range x.Pricing {
		if p.Network == w.Network && w.Network != "" {
			w.price(p.Direct, p.Ticket, at+"/network_pricing/"+strconv.Itoa(i))
			return
		}
	}
}

// price sets the prices that are given.
func (w *Way) price(direct, ticket Decimal, at string) {
	if direct != "" {
		w.Direct, w.DirectFrom = direct, at+"/direct_price"
		w.Currency = w.Asset
	}
	if ticket != "" {
		w.Ticket, w.TicketFrom = ticket, at+"/ticket_price"
	}
}

// need names what is missing to pay.
func (w *Way) need() {
	if w.Network == "" {
		w.Missing = append(w.Missing, "network")
	}
	if w.Asset == "" {
		w.Missing = append(w.Missing, "asset")
	}
}

// accountWays returns the way to pay by a protocol with accounts, none where neither root nor intent describes it. What
// the intent gives wins over what the root gives.
func (m *Manifest) accountWays(in *Intent, at, protocol string) []Way {
	var root, own *Account
	if m.Payments != nil {
		root = m.Payments.account(protocol)
	}
	if in.Payments != nil {
		own = in.Payments.account(protocol)
	}
	if root == nil && own == nil {
		return nil
	}
	w := Way{Protocol: protocol, Known: true, Account: merged(root, own), Recipient: m.PayoutAddress,
		RecipientFrom: "/payout_address"}
	switch {
	case own != nil && own.Recipient != "":
		w.Recipient, w.RecipientFrom = own.Recipient, at+"/payments/"+protocol+"/recipient"
	case root != nil && root.Recipient != "":
		w.Recipient, w.RecipientFrom = root.Recipient, "/payments/"+protocol+"/recipient"
	}
	return []Way{w}
}

// account returns the account of a protocol, nil without.
func (a *Accounts) account(protocol string) *Account {
	if protocol == ProtocolL402 {
		return a.L402
	}
	return a.MPP
}

// merged returns an account in which own members win. Either account may be nil.
func merged(root, own *Account) *Account {
	var a, b Account
	if own != nil {
		a = *own
	}
	if root != nil {
		b = *root
	}
	return &Account{Version: cmp.Or(a.Version, b.Version),
		LightningAddress: cmp.Or(a.LightningAddress, b.LightningAddress), LNURL: cmp.Or(a.LNURL, b.LNURL),
		StripeAccount: cmp.Or(a.StripeAccount, b.StripeAccount), Provider: cmp.Or(a.Provider, b.Provider),
		Description: cmp.Or(a.Description, b.Description), Recipient: cmp.Or(a.Recipient, b.Recipient)}
}

// otherWay returns the way to pay by a protocol that is not known.
func (m *Manifest) otherWay(in *Intent, protocol string) Way {
	w := Way{Protocol: protocol, Recipient: m.PayoutAddress, RecipientFrom: "/payout_address"}
	if m.Payments != nil {
		w.Other = m.Payments.Other[protocol]
	}
	if in.Payments != nil && in.Payments.Other[protocol] != nil {
		w.Other = in.Payments.Other[protocol]
	}
	return w
}

// transfers returns the plain transfers of a price in a token, one for each of its networks.
func (m *Manifest) transfers(in *Intent) []Way {
	if in.Price == nil || in.Price.Currency != "USDC" {
		return nil
	}
	var ways []Way
	for _, network := range in.Price.Networks {
		ways = append(ways, Way{Protocol: ProtocolTransfer, Known: true, Network: network, Asset: in.Price.Currency,
			Recipient: m.PayoutAddress, RecipientFrom: "/payout_address"})
	}
	return ways
}

// priced completes a way by the intent's price, which is the price of every known way that has no other.
// A protocol that is not known may count in another unit, so that the price is not taken for its own.
func (w *Way) priced(p *Price, at string) {
	if p == nil {
		return
	}
	w.Unit, w.Counts, w.FreeTier = p.Model, p.UnitParam, p.FreeTier
	if w.Known && w.Direct == "" && p.Amount != "" {
		w.Direct, w.DirectFrom, w.Currency = p.Amount, at+"/price/amount", p.Currency
	}
}

// reward reads a bounty or an incentive. Only bounties have splits.
func (o *object) reward(name string) *Reward {
	c := o.child(name)
	if c == nil {
		return nil
	}
	r := &Reward{
		Type:     c.requiredChoice("type", "cpa"),
		Rate:     c.requiredDecimal("rate"),
		Currency: c.requiredChoice("currency", "USDC"),
	}
	if name == "bounty" {
		r.Splits = c.splits()
	}
	c.unknown(nil)
	return r
}

// splits reads how a bounty is divided. Shares that do not add up are dropped, because nobody can tell which is wrong.
func (o *object) splits() *Splits {
	c := o.child("splits")
	if c == nil {
		return nil
	}
	s := &Splits{c.share("orchestrator"), c.share("platform"), c.share("referrer")}
	c.unknown(nil)
	sum := new(big.Rat)
	for _, share := range []Decimal{s.Orchestrator, s.Platform, s.Referrer} {
		sum.Add(sum, share.rat())
	}
	off := sum.Sub(sum, big.NewRat(1, 1))
	if off.Abs(off).Cmp(big.NewRat(1, 1000)) > 0 {
		o.r.add(CodeSplits, o.at("splits"), "the shares are off 1 by %s", off.FloatString(3))
		return nil
	}
	return s
}

// share reads a part of 1.
// An absent share is no amount, which counts as zero in the sum.
func (o *object) share(name string) Decimal {
	d := o.decimal(name)
	if d.Cmp("1") > 0 {
		o.r.add(CodeNumber, o.at(name), "%.*s is more than 1", maxQuotedValue, d)
		return ""
	}
	return d
}
