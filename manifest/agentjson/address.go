package agentjson

import "repute/manifest/agentjson/address"

// address reports what is wrong with an address to which money goes.
func (o *object) address(name, s string) {
	if s == "" {
		return
	}
	switch address.Check(s) {
	case address.Nobody:
		o.r.add(CodeZeroAddress, o.at(name), "%.*q is nobody's", maxQuotedValue, s)
	case address.NoText:
		o.r.add(CodeAddress, o.at(name), "%.*q is no address", maxQuotedValue, s)
	case address.NoHex:
		o.r.add(CodeAddress, o.at(name), "%.*q is not 0x and 40 or 64 hex digits", maxQuotedValue, s)
	case address.Checksum:
		o.r.add(CodeChecksum, o.at(name), "%.*q has a wrong EIP-55 checksum", maxQuotedValue, s)
	}
}
