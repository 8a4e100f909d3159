package identity

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mr-tron/base58"
)

// Form is how a key is written.
// Forms are shown in verdicts, so that a publisher learns of a form that other verifiers do not read.
type Form string

// Forms of keys, the standard ones first in their kind.
const (
	FormMultikey    Form = "multikey-base58btc" // z6Mk…: base58btc of ed01 and the key
	FormBase58Raw   Form = "multibase-raw"      // z and base58btc of the bare key
	FormProse       Form = "z-base64url"        // z and base64url of the bare key, as agent.json's prose has it
	FormMultikeyURL Form = "multikey-base64url" // u and base64url of ed01 and the key
	FormJWK         Form = "jwk"                // publicKeyJwk, OKP, Ed25519
	FormBase58      Form = "base58"             // publicKeyBase58
	FormDIDKey      Form = "did-key"            // did:key:z6Mk…
)

// Candidate is one reading of the text of a key. A text can have two.
type Candidate struct {
	Key  ed25519.PublicKey
	Form Form
}

// maxKeyText bounds the texts of keys. Base58 takes the square of the length.
const maxKeyText = 128

// multicodec is the prefix of Ed25519 public keys.
// It is 0xed as a varint, from the multicodec table.
func multicodec() []byte { return []byte{0xed, 0x01} }

// errWeak is returned for a key of small order: for such a key there are signatures that are valid for any message.
var errWeak = errors.New("a point of small order, which is no key")

// decodeURL decodes base64url. Padding is accepted, and reported; any other alphabet, white space and stray bits are
// not.
// Strict: two texts never give the same bytes, as stray bits in the last character would allow.
func decodeURL(s string) (b []byte, padded bool, err error) {
	text := strings.TrimRight(s, "=")
	padded = len(text) < len(s)
	if padded && (len(s)%4 != 0 || len(s)-len(text) > 2) {
		return nil, true, errors.New("has wrong padding")
	}
	if strings.ContainsAny(text, "+/") {
		return nil, padded, errors.New("is base64 of the standard alphabet, not base64url")
	}
	if strings.ContainsAny(text, "\r\n") { // which the decoder skips
		return nil, padded, errors.New("has line breaks")
	}
	b, err = base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return nil, padded, errors.New("is no base64url")
	}
	return b, padded, nil
}

// DecodeKey reads the key of a manifest: 32 bytes in base64url. Padded reports needless padding.
// A key of small order is returned, and refused where a signature is verified: IsPlaceholder names it to its
// publisher.
func DecodeKey(s string) (key ed25519.PublicKey, padded bool, err error) {
	if len(s) > maxKeyText {
		return nil, false, fmt.Errorf("%d characters are no key", len(s))
	}
	b, padded, err := decodeURL(s)
	switch {
	case err != nil:
		return nil, padded, err
	case len(b) != ed25519.PublicKeySize:
		return nil, padded, fmt.Errorf("has %d bytes, a key has %d", len(b), ed25519.PublicKeySize)
	}
	return b, padded, nil
}

// EncodeKey writes a key as manifests have it.
func EncodeKey(key ed25519.PublicKey) string { return base64.RawURLEncoding.EncodeToString(key) }

// IsPlaceholder reports whether nobody has the private key of a key: it is text, one byte repeated, or of small order.
// A real key is printable text once in 10^13.
func IsPlaceholder(key ed25519.PublicKey) bool {
	text, same := true, true
	for _, c := range key {
		text = text && c >= ' ' && c <= '~'
		same = same && c == key[0]
	}
	return text || same || isWeak(key)
}

// weak returns the encodings of the points of small order in hex, with the sign bit cleared: 0, 1, two points of order
// 8, -1, and 0 and 1 with the field's prime added.
// These encodings are all that crypto/ed25519 decodes to such a point, those that are not reduced included.
func weak() []string {
	const zeros, ones = "000000000000000000000000000000", "ffffffffffffffffffffffffffffff"
	return []string{
		"00" + zeros + zeros + "00",
		"01" + zeros + zeros + "00",
		"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
		"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
		"ec" + ones + ones + "7f",
		"ed" + ones + ones + "7f",
		"ee" + ones + ones + "7f",
	}
}

// isWeak reports whether a key is a point of small order.
func isWeak(key ed25519.PublicKey) bool {
	if len(key) != ed25519.PublicKeySize {
		return true
	}
	plain := bytes.Clone(key)
	plain[len(plain)-1] &= 0x7f
	return slices.Contains(weak(), hex.EncodeToString(plain))
}

// multibase returns the readings of publicKeyMultibase, the likelier one first. Base58 and base64url share most of
// their alphabet: one of 70 keys in the prose form is base58 of some other 32 bytes as well.
func multibase(s string) []Candidate {
	if len(s) < 2 || len(s) > maxKeyText {
		return nil
	}
	switch s[0] {
	case 'u':
		b, padded, err := decodeURL(s[1:])
		if key, ok := bytes.CutPrefix(b, multicodec()); err == nil && !padded && ok {
			return candidate(key, FormMultikeyURL)
		}
		return nil
	case 'z':
		return fromZ(s[1:])
	}
	return nil
}

// fromZ returns the readings of a multibase text that begins with z.
// Multikey has its prefix and length checked, so that it needs no second reading; the bare forms have nothing that
// tells them apart.
func fromZ(text string) []Candidate {
	var out []Candidate
	if b, err := base58.Decode(text); err == nil {
		if key, ok := bytes.CutPrefix(b, multicodec()); ok && len(b) == len(multicodec())+ed25519.PublicKeySize {
			return candidate(key, FormMultikey)
		}
		out = candidate(b, FormBase58Raw)
	}
	if b, padded, err := decodeURL(text); err == nil && !padded {
		out = append(out, candidate(b, FormProse)...)
	}
	return out
}

// candidate returns a reading if the bytes are a key, and none otherwise.
func candidate(b []byte, form Form) []Candidate {
	if len(b) != ed25519.PublicKeySize {
		return nil
	}
	return []Candidate{{Key: b, Form: form}}
}

// fromBase58 reads publicKeyBase58.
func fromBase58(s string) []Candidate {
	if s == "" || len(s) > maxKeyText {
		return nil
	}
	b, err := base58.Decode(s)
	if err != nil {
		return nil
	}
	return candidate(b, FormBase58)
}

// encodeMultikey writes a key in the standard form z6Mk….
func encodeMultikey(key ed25519.PublicKey) string {
	return "z" + base58.Encode(append(multicodec(), key...))
}

// DIDKey returns the did:key of a key.
func DIDKey(key ed25519.PublicKey) string { return "did:key:" + encodeMultikey(key) }

// ParseDIDKey returns the key that a did:key is. Only the standard form is one.
// A DID that nobody writes otherwise is not guessed.
func ParseDIDKey(did string) (ed25519.PublicKey, error) {
	text, ok := strings.CutPrefix(did, "did:key:")
	if !ok {
		return nil, errors.New("is no did:key")
	}
	for _, c := range multibase(text) {
		if c.Form == FormMultikey {
			return c.Key, nil
		}
	}
	return nil, errors.New("is no did:key of an Ed25519 key")
}
