package manifest

import (
	"strconv"
	"strings"

	"repute"
	"repute/internal/jsonwalk"
)

// links reads registrations: the file's claims to be certain agents' file.
func (r *reader) links(o *object) []repute.RegistrationLink {
	var out []repute.RegistrationLink
	for _, entry := range o.objects(maxLinks, "registrations") {
		out = append(out, r.link(entry))
	}
	return out
}

// link reads one entry. An agent of another namespace is legal, and named as that
// namespace has it.
func (r *reader) link(o *object) repute.RegistrationLink {
	registry := r.registry(o)
	return repute.RegistrationLink{TokenID: r.tokenID(o, isForeignAccount(registry)), Registry: registry}
}

// tokenID reads a number or its text. Ids go up to 2^256, so they never pass
// through a float. Where the registry is foreign, of another namespace than eip155, any
// id is legal and one that is no number is nil.
func (r *reader) tokenID(o *object, foreign bool) *repute.TokenID {
	raw, found := o.takeAlias("agentId", "tokenId")
	if found == "" {
		r.add(CodeLinkID, o.at("agentId"), "no agentId")
		return nil
	}
	text := string(raw)
	if jsonwalk.Type(raw) == "a string" {
		text = o.r.string(raw, o.at(found), maxShort)
	}
	id, err := repute.ParseTokenID(text)
	switch {
	case err != nil && foreign && isForeignName(text):
		return nil
	case err != nil:
		r.add(CodeLinkID, o.at(found), "%.80q is no token id", text)
		return nil
	case text != string(raw) && !foreign:
		r.add(CodeLinkIDText, o.at(found), "a string instead of a number")
	}
	return &id
}

// registry reads agentRegistry, or builds it from an address and a chain id, as
// OpenFi's files have it.
func (r *reader) registry(o *object) string {
	chain, _ := o.take("chainId")
	raw, found := o.takeAlias("agentRegistry", "registryAddress", "contract", "registry")
	if found == "" {
		r.add(CodeLinkRegistry, o.at("agentRegistry"), "no agentRegistry")
		return ""
	}
	s := r.string(raw, o.at(found), maxShort)
	whole := s
	if rest, ok := strings.CutPrefix(s, "erc8004:"); ok {
		whole = "eip155:" + rest
	}
	if id, err := repute.ParseChainID(strings.Trim(string(chain), `"`)); err == nil && !strings.Contains(s, ":") {
		whole = "eip155:" + strconv.FormatUint(id, 10) + ":" + s
	}
	switch _, ok := registryOf(whole); {
	case isForeignAccount(whole):
	case !ok:
		r.add(CodeLinkRegistry, o.at(found), "%.80q is not eip155:{chain}:{address}", s)
		return s
	case whole != s && found == "agentRegistry":
		r.add(CodeRegistryForm, o.at(found), "%.80q read as %q", s, whole)
	default:
		r.checksum(whole, o.at(found))
	}
	return whole
}

// registryOf reads eip155:{chain}:{address}; the address may have any capitals.
func registryOf(s string) (repute.Account, bool) {
	rest, ok := strings.CutPrefix(s, "eip155:")
	account, err := repute.ParseAccount("eip155:" + strings.ToLower(rest))
	return account, ok && err == nil
}
