package agentjson

import (
	"bytes"
	"crypto/ed25519"
	"fmt"
	"strings"

	"repute"
	"repute/internal/jsonwalk"
	"repute/manifest/agentjson/identity"
)

// SignCommitments signs the commitments of a manifest and puts the signature into it; everything else stays as written.
// repute.ErrInvalid: the manifest has errors, no commitments, or another key than the one that signs.
//
// The text is edited in place and never written anew: the layout, the order of members and unknown members are the
// publisher's, and only a byte order mark is dropped. Signing again replaces the signature and changes nothing else.
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
// The offset is in object, and (0, nil) means that there is none.
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
