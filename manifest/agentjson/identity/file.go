package identity

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"fmt"

	"repute"
)

// pemType is the type of PEM blocks of private keys in PKCS #8.
const pemType = "PRIVATE KEY"

// EncodePrivateKey writes a private key as PEM in PKCS #8, which OpenSSL reads as well.
func EncodePrivateKey(key ed25519.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode the key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: der}), nil
}

// ParsePrivateKey reads what EncodePrivateKey writes. repute.ErrInvalid for anything else; the error does not quote the
// text, which may be a key of another kind.
func ParsePrivateKey(b []byte) (ed25519.PrivateKey, error) {
	const hint = "a PEM file that repute manifest keygen wrote"
	block, _ := pem.Decode(b)
	if block == nil || block.Type != pemType {
		return nil, repute.Invalid("key", "is no PEM block of a private key", hint)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, repute.Invalid("key", "is no private key in PKCS #8", hint)
	}
	key, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, repute.Invalid("key", "is no Ed25519 key", hint)
	}
	return key, nil
}
