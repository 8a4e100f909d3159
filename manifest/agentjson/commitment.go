package agentjson

import (
	"bytes"
	"net/url"
	"strings"

	"repute/internal/jsonwalk"
	"repute/manifest/agentjson/identity"
	"repute/manifest/agentjson/measure"
)

// identity reads who publishes the manifest.
func (o *object) identity(origin string) *Identity {
	c := o.child("identity")
	if c == nil {
		return nil
	}
	id := &Identity{
		DID:       c.text("did", maxShort),
		PublicKey: c.text("public_key", maxShort),
		IssuerID:  c.text("oatr_issuer_id", maxShort),
	}
	c.did(origin, id.DID)
	c.publicKey(id.PublicKey)
	if c.hasType("oatr_issuer_id", "a string") && !identity.IsIssuerID(id.IssuerID) {
		c.r.add(CodeForm, c.at("oatr_issuer_id"), "%.*q is not two or more of a to z, digits and inner hyphens",
			maxQuotedValue, id.IssuerID)
	}
	c.unknown(nil)
	return id
}

// did checks the DID: only did:web of the origin says anything about the origin.
// A DID of another method is kept and warned about: it may identify the publisher elsewhere.
func (o *object) did(origin, did string) {
	if !o.hasType("did", "a string") {
		return
	}
	rest, ok := strings.CutPrefix(did, "did:")
	method, id, found := strings.Cut(rest, ":")
	switch {
	case !ok || !found || id == "" || method == "" || strings.Trim(method, "abcdefghijklmnopqrstuvwxyz") != "":
		o.r.add(CodeForm, o.at("did"), "%.*q is not did:method:id", maxQuotedValue, did)
	case !identity.IsWebDID(did, origin):
		o.r.add(CodeDID, o.at("did"), "%.*q is not did:web:%.*s", maxQuotedValue, did, maxQuotedValue, origin)
	}
}

// publicKey checks the form of a key.
// Problems of a key are warnings for readers, because a manifest without a usable key still says what the service
// does. Verify takes no such key.
func (o *object) publicKey(text string) {
	if text == "" {
		return
	}
	key, padded, err := identity.DecodeKey(text)
	switch {
	case err != nil:
		o.r.add(CodeKey, o.at("public_key"), "%v", err)
	case identity.IsPlaceholder(key):
		o.r.add(CodePlaceholder, o.at("public_key"), "nobody has the private key of this one")
	}
	if padded {
		o.r.add(CodePadding, o.at("public_key"), "ends with =")
	}
}

// commitments reads the promises of the service.
//
// Entries that are no objects are left out of Entries and stay in Raw, so that the signature is checked over what the
// publisher signed.
func (o *object) commitments(id *Identity) *Commitments {
	c := o.child("commitments")
	if c == nil {
		return nil
	}
	out := &Commitments{SchemaVersion: c.required("schema_version", maxShort)}
	if out.SchemaVersion != "" && out.SchemaVersion != "1.0" {
		c.r.add(CodeSchemaVersion, c.at("schema_version"), "%.*q is not 1.0", maxQuotedValue, out.SchemaVersion)
	}
	if !c.has("entries") {
		c.r.add(CodeMissing, c.at("entries"), "no entries")
	}
	if raw := c.typed("entries", "an array"); raw != nil {
		out.Raw = bytes.Clone(raw)
		list, _ := c.list("entries", maxEntries)
		for i, e := range list {
			if entry := c.entry("entries", i, e); entry != nil {
				out.Entries = append(out.Entries, entry.commitment())
			}
		}
	}
	out.Signature = c.signature(out, id)
	c.unknown(nil)
	c.closed()
	return out
}

// commitment reads one promise.
func (o *object) commitment() Commitment {
	e := Commitment{
		Type:       o.required("type", maxShort),
		Constraint: o.required("constraint", maxText),
		Ref:        o.url("ref"),
	}
	if verifiable := o.flag("verifiable"); verifiable != nil {
		e.Verifiable = *verifiable
	}
	if o.hasType("ref", "a string") && !isAbsolute(e.Ref) {
		o.r.add(CodeRef, o.at("ref"), "%.*q is no absolute URL", maxQuotedValue, e.Ref)
	}
	if !(measure.Promise{Type: e.Type, Constraint: e.Constraint, Verifiable: e.Verifiable}).Understood() {
		o.r.add(CodeNotMeasurable, o.at("constraint"), "%.*q is not understood", maxQuotedValue, e.Constraint)
	}
	o.unknown(nil)
	return e
}

// signature reads the signature over the entries and reports why nobody could verify it.
func (o *object) signature(c *Commitments, id *Identity) string {
	s := o.text("signature", maxShort)
	if !o.hasType("signature", "a string") {
		return ""
	}
	_, padded, err := identity.DecodeSignature(s)
	if err != nil {
		o.r.add(CodeSignature, o.at("signature"), "%v", err)
	}
	if padded {
		o.r.add(CodePadding, o.at("signature"), "ends with =")
	}
	if id == nil || id.PublicKey == "" {
		o.r.add(CodeNoKey, o.at("signature"), "no identity.public_key")
	}
	// Canonical also looks for repeated members and broken text, which plain has ruled out for the whole document.
	if o.r.plain { // has a canonical form, unless a number stands in the way
		err = identity.CheckNumbers(c.Raw)
	} else {
		_, err = identity.Canonical(c.Raw)
	}
	if c.Raw != nil && err != nil {
		o.r.add(CodeNotCanonical, o.at("entries"), "%v", err)
	}
	return jsonwalk.Cut(s, maxShort)
}

// isAbsolute reports whether a text is a URL with a scheme, of any scheme.
// It takes URNs and the like too: a reference is shown and never fetched.
func isAbsolute(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Scheme != "" && (u.Host != "" || u.Opaque != "")
}
