package identity

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"repute/internal/jsonwalk"
)

// Bounds of what is signed.
const (
	maxSigned = 512 << 10 // bytes
	maxDepth  = 64
)

// maxInteger is the largest integer that every JSON reader keeps (RFC 7493).
const maxInteger = 1<<53 - 1

// Canonical returns the canonical form (RFC 8785) of JSON as written. JSON that readers may read differently has none:
// with a repeated member, half a surrogate pair, invalid UTF-8, or a number that binary64 cannot hold.
//
// It refuses more than RFC 8785 does, so that a signature means one text for every reader, also for one that keeps
// the first of repeated members or rounds numbers.
func Canonical(raw json.RawMessage) ([]byte, error) {
	if len(raw) > maxSigned {
		return nil, fmt.Errorf("%d bytes, at most %d are signed", len(raw), maxSigned)
	}
	lex := jsonwalk.Scan(raw)
	switch {
	case lex.Depth > maxDepth:
		return nil, fmt.Errorf("nested deeper than %d levels", maxDepth)
	case lex.Surrogates > 0:
		return nil, errors.New("half a surrogate pair")
	case !utf8.Valid(raw):
		return nil, errors.New("invalid UTF-8")
	case !json.Valid(raw):
		return nil, errors.New("no JSON")
	}
	if err := CheckNumbers(raw); err != nil {
		return nil, err
	}
	v := jsontext.Value(raw).Clone()
	if err := v.Canonicalize(); err != nil {
		return nil, errors.New("a member is repeated")
	}
	return v, nil
}

// CheckNumbers refuses numbers that change when they are read as binary64. The text MUST be valid JSON, or empty.
// It descends as deep as the text, whose depth the caller MUST have bounded.
func CheckNumbers(raw []byte) error {
	value := bytes.TrimSpace(raw)
	if len(value) == 0 {
		return nil
	}
	if jsonwalk.IsContainer(value) {
		c := jsonwalk.NewCursor(value)
		for c.Next() {
			if err := CheckNumbers(c.Value); err != nil {
				return err
			}
		}
		return nil
	}
	if value[0] != '-' && (value[0] < '0' || value[0] > '9') {
		return nil
	}
	mantissa, _, _ := bytes.Cut(bytes.ToLower(value), []byte("e"))
	f, err := strconv.ParseFloat(string(value), 64)
	switch {
	case err != nil:
		return fmt.Errorf("the number %.40s is out of range", value)
	case f == 0 && bytes.ContainsAny(mantissa, "123456789"):
		return fmt.Errorf("the number %.40s is too small", value)
	case !bytes.ContainsAny(value, ".eE") && math.Abs(f) > maxInteger:
		return fmt.Errorf("the integer %.40s is beyond 2^53", value)
	}
	return nil
}

// DecodeSignature reads a signature: 64 bytes in base64url. Padded reports needless padding.
func DecodeSignature(s string) (signature []byte, padded bool, err error) {
	if len(s) > maxKeyText {
		return nil, false, fmt.Errorf("%d characters are no signature", len(s))
	}
	b, padded, err := decodeURL(s)
	switch {
	case err != nil:
		return nil, padded, err
	case len(b) != ed25519.SignatureSize:
		return nil, padded, fmt.Errorf("has %d bytes, a signature has %d", len(b), ed25519.SignatureSize)
	}
	return b, padded, nil
}

// VerifyJSON reports why a signature over the canonical form of JSON is not valid; nil if it is. It says nothing about
// whose key it is.
// The errors are for people and of no kind.
func VerifyJSON(raw json.RawMessage, signature string, key ed25519.PublicKey) error {
	sig, _, err := DecodeSignature(signature)
	if err != nil {
		return fmt.Errorf("the signature %w", err)
	}
	message, err := Canonical(raw)
	if err != nil {
		return fmt.Errorf("no canonical form: %w", err)
	}
	return verify(key, message, sig)
}

// verify checks a signature. Wrong lengths, on which crypto/ed25519 panics, and keys for which signatures prove nothing
// are errors.
func verify(key ed25519.PublicKey, message, signature []byte) error {
	switch {
	case len(key) != ed25519.PublicKeySize:
		return fmt.Errorf("the key has %d bytes", len(key))
	case isWeak(key):
		return fmt.Errorf("the key is %w", errWeak)
	case !ed25519.Verify(key, message, signature):
		return errors.New("the signature is not that of the key over this text")
	}
	return nil
}

// SignJSON signs the canonical form of JSON and returns the signature in base64url.
// It does not look at what it signs beyond that: the caller MUST have checked that the key is the one which verifiers
// will use.
func SignJSON(raw json.RawMessage, key ed25519.PrivateKey) (string, error) {
	message, err := Canonical(raw)
	if err != nil {
		return "", fmt.Errorf("no canonical form: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(ed25519.Sign(key, message)), nil
}
