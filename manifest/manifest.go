// Package manifest reads the documents agents and their clients publish:
// registration files, feedback files and A2A agent cards. It turns bytes into one
// domain type per kind and a list of everything that is wrong with them; it accepts
// every spelling seen in the wild and never fails on the rest. It also judges what a
// file claims against what the chain says.
//
// It is pure: the same bytes give the same answer for the same Version. Strings of
// its answers are valid UTF-8 without NUL and bounded; members it does not know are
// kept in Extra as written, up to 64 KiB of a document. Problems come in a stable
// order, those of the whole document first.
//
// Parse, ParseFeedback and ParseCard read one kind each; Detect tells which kind a document
// is. None of them has an error: a document that cannot be read gives an empty value and a
// repute.Problem of severity error, and HasErrors looks for those. Each problem has a stable
// code, for which Hint says what to do. MatchRegistration and MatchFeedback compare a file
// with the agent or the rating whose URI points to it.
package manifest

import (
	"encoding/json"

	"repute"
)

// Version numbers the parser. Stored parses are keyed by it: raise it with every
// change that alters what a parser returns for any document.
const Version = 9

// TypeRegistration is the type the standard asks for.
const TypeRegistration = "https://eips.ethereum.org/EIPS/eip-8004#registration-v1"

// Parse reads a registration file.
func Parse(b []byte) (repute.Registration, []repute.Problem) {
	r := &reader{area: areaAgent}
	o := r.open(b, repute.RegistrationDocument)
	if o == nil {
		return repute.Registration{}, r.problems
	}
	return r.registration(o), r.problems
}

// open makes an object of the bytes and reports what is wrong with the document as a
// whole; nil when there is nothing to read.
func (r *reader) open(b []byte, want repute.DocumentKind) *object {
	b = r.trim(b)
	if !r.isObject(b) {
		return nil
	}
	o := &object{r: r, members: membersOf(b)}
	r.expect(o, want)
	r.text(b)
	return o
}

// registration reads a registration file. Members that it does not use are kept in Extra.
func (r *reader) registration(o *object) repute.Registration {
	reg := repute.Registration{
		Type:        o.text("type", maxShort),
		Name:        o.text("name", maxName),
		Description: o.text("description", maxText),
		Image:       o.url("image"),
		Services:    r.services(o),
		X402:        o.flag("x402Support", "x402support", "x402Enabled", "x402"),
		Active:      o.flag("active"),
	}
	reg.Services = r.addOASF(o, reg.Services)
	reg.Registrations = r.links(o)
	r.templateWallets(reg.Registrations)
	reg.SupportedTrust = r.trust(o)
	reg.Extra = o.rest()
	o.misspelled([]string{"type", "name", "description", "image", "services", "x402Support", "active", "registrations",
		"supportedTrust"},
		"endpoints", "x402support", "x402Enabled", "x402", "supportedTrusts")
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
	if reg.Image == "" {
		r.add(CodeNoImage, "/image", "no image")
	} else {
		r.image(reg.Image)
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
