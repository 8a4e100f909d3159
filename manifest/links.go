package manifest

import (
	"encoding/json"
	"strconv"
	"strings"

	"repute"
)

// links reads registrations: the file's claims to be certain agents' file.
func (r *reader) links(o *object) []repute.RegistrationLink {
	raw, found := o.take("registrations")
	path := o.at("registrations")
	if found == "" {
		return nil
	}
	list := elementsOf(raw)
	if jsonType(raw) != "an array" {
		r.add(CodeWrongType, path, "%s instead of an array", jsonType(raw))
		list = []json.RawMessage{raw}
	}
	if len(list) > maxLinks {
		r.add(CodeTooMany, path, "%d registrations, cut to %d", len(list), maxLinks)
		list = list[:maxLinks]
	}
	var out []repute.RegistrationLink
	for i, e := range list {
		at := path + "/" + strconv.Itoa(i)
		if jsonType(e) != "an object" {
			r.add(CodeWrongType, at, "%s instead of an object", jsonType(e))
			continue
		}
		out = append(out, r.link(&object{r: r, path: at, members: membersOf(e)}))
	}
	return out
}

func (r *reader) link(o *object) repute.RegistrationLink {
	return repute.RegistrationLink{TokenID: r.tokenID(o), Registry: r.registry(o)}
}

// tokenID reads a number or its text. Ids go up to 2^256, so they never pass
// through a float.
func (r *reader) tokenID(o *object) *repute.TokenID {
	raw, found := o.takeAlias("agentId", "tokenId")
	if found == "" {
		r.add(CodeLinkID, o.at("agentId"), "no agentId")
		return nil
	}
	text := string(raw)
	if jsonType(raw) == "a string" {
		text = o.r.string(raw, o.at(found), maxShort)
	}
	id, err := repute.ParseTokenID(text)
	if err != nil {
		r.add(CodeLinkID, o.at(found), "%.80q is no token id", text)
		return nil
	}
	if text != string(raw) {
		r.add(CodeLinkIDText, o.at(found), "a string instead of a number")
	}
	return &id
}

// registry reads agentRegistry, or builds it from a chain id and an address.
func (r *reader) registry(o *object) string {
	if raw, found := o.take("agentRegistry"); found != "" {
		s := r.string(raw, o.at(found), maxShort)
		if !isRegistry(s) {
			r.add(CodeLinkRegistry, o.at(found), "%.80q is not eip155:{chain}:{address}", s)
		}
		return s
	}
	chain, _ := o.take("chainId")
	raw, found := o.takeAlias("agentRegistry", "registryAddress", "contract", "registry")
	if found == "" {
		r.add(CodeLinkRegistry, o.at("agentRegistry"), "no agentRegistry")
		return ""
	}
	s := r.string(raw, o.at(found), maxShort)
	if id, err := repute.ParseChainID(strings.Trim(string(chain), `"`)); err == nil && !strings.Contains(s, ":") {
		s = "eip155:" + strconv.FormatUint(id, 10) + ":" + s
	}
	if !isRegistry(s) {
		r.add(CodeLinkRegistry, o.at(found), "%.80q is not eip155:{chain}:{address}", s)
	}
	return s
}

// isRegistry checks the form only; checksums are the business of whoever compares.
func isRegistry(s string) bool {
	parts := strings.Split(s, ":")
	if len(parts) != 3 || parts[0] != "eip155" {
		return false
	}
	_, chainErr := repute.ParseChainID(parts[1])
	_, addrErr := repute.ParseAddress("registry", strings.ToLower(parts[2]))
	return chainErr == nil && addrErr == nil
}
