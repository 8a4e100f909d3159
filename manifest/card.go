package manifest

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"repute"
	"repute/internal/jsonwalk"
)

// Bounds of a card's lists.
const (
	maxInterfaces = 64
	maxTags       = 64
)

// ParseCard reads an A2A agent card of protocol 0.x or 1.0.
func ParseCard(b []byte) (repute.AgentCard, []repute.Problem) {
	r := &reader{area: areaCard}
	o := r.open(b, repute.CardDocument)
	if o == nil {
		return repute.AgentCard{}, r.problems
	}
	return r.card(o), r.problems
}

// card reads an agent card of any version of the A2A specification: members that were renamed
// between versions are read by both names.
func (r *reader) card(o *object) repute.AgentCard {
	c := repute.AgentCard{
		Name:             o.text("name", maxName),
		Description:      o.text("description", maxText),
		Version:          o.version(),
		Provider:         o.provider(),
		DocumentationURL: o.url("documentationUrl", "documentation_url"),
		IconURL:          o.url("iconUrl", "icon_url"),
		Interfaces:       o.interfaces(),
		Skills:           o.skills(),
		SecuritySchemes:  o.schemes(),
		InputModes:       o.texts(maxSkills, "defaultInputModes", "default_input_modes"),
		OutputModes:      o.texts(maxSkills, "defaultOutputModes", "default_output_modes"),
		Signatures:       o.signatures(),
	}
	c.ProtocolVersions = o.protocols(c.Interfaces)
	c.Capabilities, c.Extensions = o.capabilities()
	r.missingInCard(o, c)
	c.Extra = o.rest()
	return c
}

// provider returns the name of the organization behind the agent. Older cards give it as a plain
// string instead of an object.
func (o *object) provider() string {
	if m := o.find("provider"); m != nil && jsonwalk.Type(m.raw) == "a string" {
		return o.text("provider", maxShort)
	}
	p := o.child("provider")
	name := p.textOf("organization", "name")
	o.keepUnread("provider", p)
	return name
}

// interfaces reads the list of 1.0, or else the url, preferredTransport and
// additionalInterfaces of 0.x.
func (o *object) interfaces() []repute.CardInterface {
	var out []repute.CardInterface
	if url := o.url("url"); url != "" {
		out = append(out, repute.CardInterface{URL: url,
			Binding: o.textOf("preferredTransport", "preferred_transport")})
	}
	listed := o.interfaceList("supportedInterfaces", "supported_interfaces")
	if len(listed) > 0 {
		out = nil // url is there for older readers
	}
	for _, i := range append(listed, o.interfaceList("additionalInterfaces", "additional_interfaces")...) {
		same := func(other repute.CardInterface) bool {
			return other.URL == i.URL && (other.Binding == i.Binding || other.Binding == "") &&
				other.ProtocolVersion == i.ProtocolVersion
		}
		if !slices.ContainsFunc(out, same) && len(out) < maxInterfaces {
			out = append(out, i)
		}
	}
	return out
}

// interfaceList reads the ways to reach the agent and reports each whose URL is not https. What it
// does not know of an entry stays with the unread members.
func (o *object) interfaceList(name, alias string) []repute.CardInterface {
	entries := o.objects(maxInterfaces, name, alias)
	var out []repute.CardInterface
	for _, e := range entries {
		i := repute.CardInterface{
			URL:             e.url("url"),
			Binding:         e.binding(),
			ProtocolVersion: e.textOf("protocolVersion", "protocol_version"),
			Tenant:          e.text("tenant", maxShort),
		}
		if !isHTTPS(i.URL) {
			o.r.add(CodeCardURL, e.at("url"), "%.80q is no https URL", i.URL)
		}
		out = append(out, i)
	}
	o.keepUnread(name, entries...)
	o.keepUnread(alias, entries...)
	return out
}

// binding was called transport in 0.x.
func (o *object) binding() string {
	name := "protocolBinding"
	if !o.has(name) && o.has("transport") {
		name = "transport"
	}
	return o.textOf(name, "protocol_binding")
}

// protocols are the versions of A2A that the card names: its own first.
func (o *object) protocols(interfaces []repute.CardInterface) []string {
	out := o.ownProtocols()
	for _, i := range interfaces {
		if i.ProtocolVersion != "" && !slices.Contains(out, i.ProtocolVersion) {
			out = append(out, i.ProtocolVersion)
		}
	}
	return out
}

// ownProtocols returns the protocol versions that the card itself names, as cards before version
// 1.0 did. Later cards name them in each interface.
func (o *object) ownProtocols() []string {
	var out []string
	if v := o.textOf("protocolVersion", "protocol_version"); v != "" {
		out = append(out, v)
	}
	for _, v := range o.texts(maxInterfaces, "protocolVersions") {
		if !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

// skills reads the skills and reports those without an id or name and those whose id is repeated.
// They are kept, because a client may still find one by its text.
func (o *object) skills() []repute.CardSkill {
	var out []repute.CardSkill
	seen := map[string]bool{}
	for _, e := range o.objects(maxSkills, "skills") {
		s := repute.CardSkill{
			ID:          e.text("id", maxShort),
			Name:        e.text("name", maxShort),
			Description: e.text("description", maxText),
			Tags:        e.texts(maxTags, "tags"),
		}
		s.Extra = e.rest()
		switch {
		case s.ID == "":
			o.r.add(CodeSkillNoID, e.at("id"), "no id")
		case seen[s.ID]:
			o.r.add(CodeSkillDuplicate, e.at("id"), "%.80q again", s.ID)
		}
		if s.Name == "" {
			o.r.add(CodeSkillNoName, e.at("name"), "no name")
		}
		seen[s.ID] = true
		out = append(out, s)
	}
	return out
}

// capabilities names the true members and the extensions of capabilities. What is
// more than that is kept.
func (o *object) capabilities() (names, extensions []string) {
	if m := o.find("capabilities"); m != nil && jsonwalk.Type(m.raw) == "an array" {
		return o.texts(maxSkills, "capabilities"), nil
	}
	c := o.child("capabilities")
	for _, e := range c.objects(maxSkills, "extensions") {
		if uri := e.url("uri"); uri != "" {
			extensions = append(extensions, uri)
		}
		if len(e.members) > 1 {
			o.keep("capabilities")
		}
	}
	for i := range c.members {
		m := &c.members[i]
		if string(m.raw) != "true" && string(m.raw) != "false" {
			continue
		}
		m.used = true
		if string(m.raw) == "true" && len(names) < maxSkills {
			names = append(names, shortName(m.name))
		}
	}
	o.keepUnread("capabilities", c)
	return names, extensions
}

// schemes are the names of securitySchemes. How each works is kept as written.
func (o *object) schemes() []string {
	c := o.child("securitySchemes", "security_schemes")
	var names []string
	for _, m := range c.members {
		if len(names) < maxSkills {
			names = append(names, shortName(m.name))
		}
	}
	o.keepUnread("securitySchemes", c)
	o.keepUnread("security_schemes", c)
	return names
}

// signatures returns how many signatures the card carries. None is verified, and the problem that
// it adds says so.
func (o *object) signatures() int {
	m := o.find("signatures")
	if m == nil || jsonwalk.Type(m.raw) != "an array" {
		return 0
	}
	n := len(jsonwalk.Elements(m.raw))
	if n > 0 {
		o.r.add(CodeSigned, o.at("signatures"), "%d, not verified", n)
	}
	return n
}

// missingInCard reports what a card should have.
func (r *reader) missingInCard(o *object, c repute.AgentCard) {
	for _, missing := range []struct {
		yes              bool
		code, path, what string
	}{
		{c.Name == "", CodeNoName, "/name", "no name"},
		{c.Description == "", CodeNoText, "/description", "no description"},
		{c.Version == "", CodeCardNoVersion, "/version", "no version"},
		{len(c.Interfaces) == 0, CodeCardNoURL, "/supportedInterfaces", "no url and no interfaces"},
		{len(c.Skills) == 0, CodeCardNoSkills, "/skills", "no skills"},
		{!o.has("capabilities"), CodeNoCapabilities, "/capabilities", "no capabilities"},
		{len(c.ProtocolVersions) == 0, CodeNoProtocol, "/protocolVersion", "no protocol version"},
	} {
		if missing.yes {
			r.add(missing.code, missing.path, "%s", missing.what)
		}
	}
	if m := o.find("url"); m != nil && len(c.Interfaces) > 0 && !isHTTPS(c.Interfaces[0].URL) {
		r.add(CodeCardURL, "/url", "%.80q is no https URL", c.Interfaces[0].URL)
	}
	r.undefinedSchemes(o, c)
}

// undefinedSchemes compares what security asks for with what is defined.
func (r *reader) undefinedSchemes(o *object, c repute.AgentCard) {
	m := o.find("security")
	if m == nil {
		return
	}
	var wanted []map[string]json.RawMessage
	if json.Unmarshal(m.raw, &wanted) != nil {
		return
	}
	for i, one := range wanted {
		for _, name := range slices.Sorted(maps.Keys(one)) {
			if !slices.Contains(c.SecuritySchemes, jsonwalk.Clean(name)) {
				r.add(CodeSchemeUndefined, "/security/"+strconv.Itoa(i)+"/"+jsonwalk.Pointer(name),
					"not in securitySchemes")
			}
		}
	}
}
