package agentjson

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"repute/internal/jsonwalk"
)

// intents reads the list of intents. Networks are those that the root declares for x402; nil where it declares none.
// A list longer than maxIntents is cut, and what follows is not looked at.
func (o *object) intents(origin string, networks []string) []Intent {
	list, _ := o.list("intents", maxIntents)
	if len(list) == 0 {
		return nil
	}
	intents := make([]Intent, 0, len(list))
	for i, m := range list {
		if e := o.entry("intents", i, m); e != nil {
			intents = append(intents, e.intent(origin, networks))
		}
	}
	return intents
}

// intent reads one intent.
//
// The price is read after the parameters, which unit looks at, and the endpoint is resolved after the method was read,
// which call completes. unknown is last: it reports each member that nothing before it has read.
func (o *object) intent(origin string, networks []string) Intent {
	in := Intent{
		Name:        o.intentName(),
		Description: o.required("description", maxText),
		Endpoint:    o.endpoint(),
		Method:      o.choice("method", "GET", "POST", "PUT", "DELETE"),
		Parameters:  o.parameters(),
		Returns:     o.returns(),
		Bounty:      o.reward("bounty"),
		Incentive:   o.reward("incentive"),
		X402:        o.intentX402("x402", networks),
		Payments:    o.intentPayments(networks),
		Extensions:  o.extensions(),
	}
	o.length("description", in.Description, 10, 500)
	in.Price = o.price(in.Parameters)
	o.call(origin, &in)
	if in.Payments != nil && in.Payments.X402 != nil && o.has("x402") {
		o.r.add(CodeLegacy, o.at("x402"), "payments.x402 is read instead")
	}
	o.payable(in, networks)
	o.unknown(&in.Extra)
	return in
}

// intentName reads the name by which an intent is called, which must be its own.
// A name of the wrong form or one that is taken is kept, so that the intent can be shown; its problem is an error.
func (o *object) intentName() string {
	name := o.required("name", maxShort)
	if name == "" {
		return ""
	}
	if name[0] < 'a' || name[0] > 'z' || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
		o.r.add(CodeForm, o.at("name"), "%.*q is not snake_case: a to z, digits and _, a letter first",
			maxQuotedValue, name)
	}
	if len(name) > 64 {
		o.r.add(CodeForm, o.at("name"), "%d characters, at most 64 are allowed", len(name))
	}
	if first, again := o.r.names[name]; again {
		o.r.add(CodeDuplicateIntent, o.at("name"), "%.*q is also the name of intent %d", maxQuotedValue, name, first)
	} else {
		o.r.names[name] = o.index
	}
	return name
}

// endpoint reads where an intent is called.
// An empty text is missing and no path, although it would resolve to the root of the origin.
func (o *object) endpoint() string {
	s := o.url("endpoint")
	if s == "" && o.has("endpoint") && string(o.find("endpoint").raw) == `""` {
		o.r.add(CodeMissing, o.at("endpoint"), "endpoint is empty")
	}
	return s
}

// call resolves the endpoint and its method.
func (o *object) call(origin string, in *Intent) {
	switch {
	case in.Endpoint == "":
		if o.has("method") && !o.has("endpoint") {
			o.r.add(CodeMethodAlone, o.at("method"), "no endpoint")
		}
		return
	case !o.has("method"):
		o.r.add(CodeNoMethod, o.at("method"), "no method, read as POST")
		in.Method = "POST"
	}
	var reason string
	if in.URL, reason = endpointURL(origin, in.Endpoint); reason != "" {
		o.r.add(CodeEndpoint, o.at("endpoint"), "%.*q %s", maxQuotedValue, in.Endpoint, reason)
	}
}

// parameters reads the inputs in the order written.
func (o *object) parameters() []Parameter {
	list := o.child("parameters")
	if list == nil || len(list.members) == 0 {
		return nil
	}
	members := list.members
	if len(members) > maxParameters {
		o.r.add(CodeTooMany, o.at("parameters"), "%d parameters, cut to %d", len(members), maxParameters)
		members = members[:maxParameters]
	}
	out := make([]Parameter, 0, len(members))
	for _, m := range members {
		name := jsonwalk.Clean(string(m.name))
		if got := jsonwalk.Type(m.raw); got != "an object" {
			o.r.add(CodeType, list.at(name), "%s instead of an object", got)
			continue
		}
		p := o.r.open(m, list, name, -1).parameter()
		p.Name = jsonwalk.Cut(name, maxShort)
		out = append(out, p)
	}
	return out
}

// parameter reads one input.
func (o *object) parameter() Parameter {
	p := Parameter{
		Type:        o.requiredChoice("type", "string", "integer", "number", "boolean", "array", "object"),
		Description: o.text("description", maxText),
	}
	if required := o.flag("required"); required != nil {
		p.Required = *required
	}
	o.length("description", p.Description, 0, 200)
	if o.has("enum") {
		p.Enum = o.copies(o.filled("enum", maxParameters), "enum")
	}
	if raw := o.get("default"); raw != nil {
		p.Default = o.r.kept(raw, o, "default")
	}
	o.unknown(nil)
	return p
}

// copies keeps the entries of a list as written.
// All entries share one allocation, and each has its capacity cut to its length, so that none can be grown into the
// next. They count against maxExtra as extensions do.
func (o *object) copies(list []member, name string) []json.RawMessage {
	size := 0
	for _, e := range list {
		size += len(e.raw)
	}
	all := make([]byte, 0, size)
	out := make([]json.RawMessage, 0, len(list))
	if size > maxExtra-o.r.extra {
		o.r.add(CodeTooLong, o.at(name), "%d bytes, dropped", size)
		return nil
	}
	o.r.extra += size
	for _, e := range list {
		begin := len(all)
		all = append(all, e.raw...)
		out = append(out, all[begin:len(all):len(all)])
	}
	return out
}

// returns reads the description of an answer.
func (o *object) returns() *Returns {
	c := o.child("returns")
	if c == nil {
		return nil
	}
	r := &Returns{
		Type:        c.choice("type", "object", "array", "string"),
		Description: c.text("description", maxText),
	}
	c.length("description", r.Description, 0, 200)
	if list := c.child("properties"); list != nil {
		list.properties()
		r.Properties = o.r.kept(c.get("properties"), c, "properties")
	}
	c.unknown(nil)
	return r
}

// properties checks the properties of an answer: objects whose type and description are text.
func (o *object) properties() {
	for _, m := range o.members {
		name := string(m.name)
		if got := jsonwalk.Type(m.raw); got != "an object" {
			o.r.add(CodeType, o.at(name), "%s instead of an object", got)
			continue
		}
		p := o.r.open(m, o, name, -1)
		p.typed("type", "a string")
		p.typed("description", "a string")
	}
}

// price reads what an intent costs.
func (o *object) price(parameters []Parameter) *Price {
	c := o.child("price")
	if c == nil {
		return nil
	}
	p := &Price{
		Amount:    c.requiredDecimal("amount"),
		Currency:  c.requiredChoice("currency", "USD", "USDC"),
		Model:     c.choice("model", "per_call", "per_unit", "flat"),
		UnitParam: c.text("unit_param", maxShort),
		FreeTier:  c.count("free_tier"),
		Networks:  c.priceNetworks(),
	}
	if p.Model == "" && !c.has("model") {
		p.Model = "per_call"
	}
	c.unit(p, parameters)
	if c.has("network") && p.Currency == "USD" {
		c.r.add(CodeFiatNetwork, c.at("network"), "the currency is USD")
	}
	c.unknown(nil)
	return p
}

// unit checks the parameter that counts units.
func (o *object) unit(p *Price, parameters []Parameter) {
	if p.Model != "per_unit" {
		return
	}
	if p.UnitParam == "" {
		o.r.add(CodeUnitParam, o.at("unit_param"), "no unit_param")
		return
	}
	if !slices.ContainsFunc(parameters, func(one Parameter) bool { return one.Name == p.UnitParam }) {
		o.r.add(CodeUnitUnknown, o.at("unit_param"), "no parameter %.*q", maxQuotedValue, p.UnitParam)
	}
}

// count reads an integer of zero or more.
// A number that is none reads as 0: a free tier that cannot be read is none.
func (o *object) count(name string) uint64 {
	raw := o.typed(name, "a number")
	if raw == nil {
		return 0
	}
	n, ok := parseCount(raw)
	if !ok {
		o.r.add(CodeNumber, o.at(name), "%.*s is no integer from 0 to 2^53", maxQuotedValue, raw)
	}
	return n
}

// priceNetworks reads a network or a list of them.
func (o *object) priceNetworks() []string {
	m := o.find("network")
	if m == nil {
		return nil
	}
	switch got := jsonwalk.Type(m.raw); got {
	case "a string":
		if s := o.text("network", maxShort); s != "" {
			return []string{s}
		}
		return nil
	case "an array":
		return o.texts("network")
	default:
		o.get("network")
		o.r.add(CodeType, o.at("network"), "%s instead of a string or an array of strings", got)
		return nil
	}
}

// texts reads a list of names, each once.
func (o *object) texts(name string) []string {
	var out []string
	for i, e := range o.filled(name, maxNetworks) {
		at := func() string { return o.at(name) + "/" + strconv.Itoa(i) }
		if got := jsonwalk.Type(e.raw); got != "a string" {
			o.r.add(CodeType, at(), "%s instead of a string", got)
			continue
		}
		s := jsonwalk.Cut(textOf(e.raw), maxShort)
		if slices.Contains(out, s) {
			o.r.add(CodeNetworkTwice, at(), "%.*q again", maxQuotedValue, s)
			continue
		}
		out = append(out, s)
	}
	return out
}
