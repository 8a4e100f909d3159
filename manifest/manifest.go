// Package manifest reads agents' registration files. It turns the bytes somebody
// published into a repute.Registration and a list of everything that is wrong with
// them; it accepts every spelling seen in the wild and never fails on the rest.
// It is pure: the same bytes give the same answer for the same Version.
package manifest

import (
	"encoding/json"

	"repute"
)

// Version numbers the parser. Stored parses are keyed by it: raise it with every
// change that alters what Parse returns for any document.
const Version = 2

// TypeRegistration is the type the standard asks for.
const TypeRegistration = "https://eips.ethereum.org/EIPS/eip-8004#registration-v1"

// Parse reads a registration file. Strings of the result are valid UTF-8 without
// NUL and bounded; members it does not know are kept in Extra as written, up to
// 64 KiB of a document. The
// problems come in a stable order, those of the whole document first.
func Parse(b []byte) (repute.Registration, []repute.Problem) {
	r := &reader{}
	b = r.trim(b)
	if !r.isObject(b) {
		return repute.Registration{}, r.problems
	}
	o := &object{r: r, members: membersOf(b)}
	r.kind(o)
	r.text(b)
	return r.registration(o), r.problems
}

func (r *reader) registration(o *object) repute.Registration {
	reg := repute.Registration{
		Type:        o.text("type", maxShort),
		Name:        o.text("name", maxName),
		Description: o.text("description", maxText),
		Image:       o.url("image"),
		Services:    r.services(o),
		X402:        o.flag("x402Support", "x402support", "x402Enabled"),
		Active:      o.flag("active"),
	}
	reg.Registrations = r.links(o)
	reg.SupportedTrust = o.texts(maxTrust, "supportedTrust", "supportedTrusts")
	reg.Extra = o.rest()
	r.missing(reg)
	return reg
}

// missing reports what a registration should have.
func (r *reader) missing(reg repute.Registration) {
	switch {
	case reg.Type == "":
		r.add(CodeTypeMissing, "/type", "no type")
	case reg.Type != TypeRegistration:
		r.add(CodeTypeOther, "/type", "type is %.120q", reg.Type)
	}
	if reg.Name == "" {
		r.add(CodeNoName, "/name", "no name")
	}
	if reg.Description == "" {
		r.add(CodeNoText, "/description", "no description")
	}
	switch {
	case reg.Image == "":
		r.add(CodeNoImage, "/image", "no image")
	case !isURL(reg.Image):
		r.add(CodeImageNotURL, "/image", "%.80q is not a URL", reg.Image)
	}
	if len(reg.Services) == 0 {
		r.add(CodeNoServices, "/services", "no services")
	}
	if len(reg.Registrations) == 0 {
		r.add(CodeNoLinks, "/registrations", "no registrations")
	}
}

// member is one name and value of an object, in the order written.
type member struct {
	name string
	raw  json.RawMessage
	used bool
}
