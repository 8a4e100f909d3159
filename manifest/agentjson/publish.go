package agentjson

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"strings"

	"repute"
	"repute/internal/jsonwalk"
	"repute/manifest/agentjson/identity"
)

// Draft is what a new manifest says.
type Draft struct {
	Domain        string // the host that will serve the manifest
	PayoutAddress string // the zero address where it is not known yet
	DisplayName   string
	Description   string
	PublicKey     ed25519.PublicKey // adds identity, nil for none
}

// zeroAddress stands for an address that the publisher has still to give.
const zeroAddress = "0x0000000000000000000000000000000000000000"

// New makes a manifest of version 1.4 for a domain, with one intent to start from. repute.ErrInvalid: the domain is
// none, or the payout address is not an address.
func New(d Draft) ([]byte, error) {
	if d.Domain == "" {
		return nil, repute.Invalid("domain", "is missing", "--domain HOST, without scheme, port and path")
	}
	origin := canonicalHost(d.Domain)
	if origin == "" || notPublic(origin) != "" {
		return nil, repute.Invalid("domain", fmt.Sprintf("%.80q is no public domain name", d.Domain),
			"the host that serves the file, without scheme, port and path")
	}
	payout := d.PayoutAddress
	if payout == "" {
		payout = zeroAddress
	}
	if _, err := repute.ParseAddress("payout", payout); err != nil {
		return nil, err
	}
	doc := draft{Version: "1.4", Origin: origin, PayoutAddress: payout, DisplayName: d.DisplayName,
		Description: d.Description}
	if d.PublicKey != nil {
		doc.Identity = &draftIdentity{identity.WebDID(origin), identity.EncodeKey(d.PublicKey)}
	}
	doc.Intents = []draftIntent{{
		Name:        "search",
		Description: "Say here what the intent does, what it answers and where its limits are.",
		Endpoint:    "/api/search",
		Method:      "GET",
		Parameters: map[string]draftParameter{"query": {Type: "string", Required: true,
			Description: "What to look for"}},
	}}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(doc); err != nil {
		return nil, fmt.Errorf("write the manifest: %w", err)
	}
	return out.Bytes(), nil
}

// draft is the JSON of a new manifest, with members in the order of the specification.
type draft struct {
	Version       string         `json:"version"`
	Origin        string         `json:"origin"`
	PayoutAddress string         `json:"payout_address"`
	DisplayName   string         `json:"display_name,omitempty"`
	Description   string         `json:"description,omitempty"`
	Identity      *draftIdentity `json:"identity,omitempty"`
	Intents       []draftIntent  `json:"intents"`
}

type draftIdentity struct {
	DID       string `json:"did"`
	PublicKey string `json:"public_key"`
}

type draftIntent struct {
	Name        string                    `json:"name"`
	Description string                    `json:"description"`
	Endpoint    string                    `json:"endpoint"`
	Method      string                    `json:"method"`
	Parameters  map[string]draftParameter `json:"parameters"`
}

type draftParameter struct {
	Type        string `json:"type"`
	Required    bool   `json:"required"`
	Description string `json:"description"`
}

// SignCommitments signs the commitments of a manifest and puts the signature into it; everything else stays as written.
// repute.ErrInvalid: the manifest has errors, no commitments, or another key than the one that signs.
func SignCommitments(b []byte, key ed25519.PrivateKey) ([]byte, error) {
	b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	m, problems := Parse(b, Options{})
	if p, wrong := repute.FirstError(problems); wrong {
		return nil, repute.Invalid("manifest "+p.Path, p.Message, Hint(p.Code))
	}
	public := identity.EncodeKey(key.Public().(ed25519.PublicKey))
	switch {
	case m.Commitments == nil || m.Commitments.Raw == nil:
		return nil, repute.Invalid("commitments", "are missing",
			`add "commitments": {"schema_version": "1.0", "entries": […]}`)
	case m.Identity == nil || m.Identity.PublicKey == "":
		return nil, repute.Invalid("identity.public_key", "is missing", fmt.Sprintf(`add "public_key": %q`, public))
	case strings.TrimRight(m.Identity.PublicKey, "=") != public:
		return nil, repute.Invalid("identity.public_key", "is another key than the one that signs",
			fmt.Sprintf(`write "public_key": %q, or sign with the other key`, public))
	}
	signature, err := identity.SignJSON(m.Commitments.Raw, key)
	if err != nil {
		return nil, repute.Invalid("commitments.entries", err.Error(), Hint(CodeNotCanonical))
	}
	return insertSignature(b, signature), nil
}

// insertSignature puts a signature into the commitments of a manifest, in place of another one or behind the entries.
// The text MUST be a manifest without errors, and so without repeated members.
func insertSignature(b []byte, signature string) []byte {
	start, commitments := memberAt(b, "commitments")
	value := fmt.Sprintf("%q", signature)
	if at, old := memberAt(commitments, "signature"); old != nil {
		return splice(b, start+at, len(old), value)
	}
	at, entries := memberAt(commitments, "entries")
	end := start + at + len(entries)
	name := bytes.LastIndexByte(b[:start+at], '"') // closes the name of entries
	name = bytes.LastIndexByte(b[:name], '"')
	blank := b[len(bytes.TrimRight(b[:name], " \t\r\n")):name]
	return splice(b, end, 0, ","+string(blank)+`"signature": `+value)
}

// memberAt returns the value of a member of an object, and where it begins.
func memberAt(object []byte, name string) (offset int, value []byte) {
	c := jsonwalk.NewCursor(object)
	for c.Next() {
		if c.Name() == name {
			_, offset = c.Offsets()
			return offset, c.Value
		}
	}
	return 0, nil
}

// splice replaces n bytes at an offset.
func splice(b []byte, offset, n int, text string) []byte {
	out := make([]byte, 0, len(b)-n+len(text))
	out = append(out, b[:offset]...)
	out = append(out, text...)
	return append(out, b[offset+n:]...)
}
