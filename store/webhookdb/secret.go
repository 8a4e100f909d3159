package webhookdb

import (
	"crypto/rand"
	"encoding/base64"
	"log/slog"
)

// Secret signs the messages of a webhook. It prints as a placeholder, so that no log or error shows it.
type Secret []byte

// secretSize is the size of secrets in bytes; the specification of Standard Webhooks wants 24 to 64.
const secretSize = 32

// newSecret returns a random secret.
func newSecret() Secret {
	s := make(Secret, secretSize)
	rand.Read(s) // which never fails
	return s
}

// Text returns the secret as its receiver configures it: whsec_ and base64. It is shown once, to the owner of the
// webhook.
func (s Secret) Text() string { return "whsec_" + base64.StdEncoding.EncodeToString(s) }

// String returns a placeholder.
func (Secret) String() string { return "[secret]" }

// GoString returns a placeholder.
func (Secret) GoString() string { return "[secret]" }

// LogValue returns a placeholder.
func (Secret) LogValue() slog.Value { return slog.StringValue("[secret]") }

// MarshalText returns a placeholder.
func (Secret) MarshalText() ([]byte, error) { return []byte("[secret]"), nil }
