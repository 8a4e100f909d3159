package config

import (
	"net/url"
	"strings"

	"repute"
	"repute/orchestrator/wallet/keys"
)

// keyRef says where a private key is, never what it is: env:NAME, file:PATH,
// keystore:PATH?password_file=PATH, or the http or https URL of a remote signer. A fragment
// is the address that the key must have, which a remote signer needs:
// https://signer.example/#0xADDRESS. Empty: no key.
type keyRef string

// keyForms is what an error says is allowed.
const keyForms = "env:NAME, file:PATH, keystore:PATH?password_file=PATH or https://SIGNER#ADDRESS"

// signer reads the reference. The error does not repeat it: somebody may have written the
// key itself.
func (k keyRef) signer(field string) (s keys.Config, err error) {
	if k == "" {
		return s, nil
	}
	text, address, expected := strings.Cut(string(k), "#")
	kind, rest, _ := strings.Cut(text, ":")
	switch kind {
	case "env":
		s.KeyEnv = rest
	case "file":
		s.KeyFile = rest
	case "keystore":
		path, query, _ := strings.Cut(rest, "?")
		values, err := url.ParseQuery(query)
		if err != nil || values.Get("password_file") == "" {
			return s, repute.Invalid(field, "has no password_file", keyForms)
		}
		s.Keystore, s.PasswordFile = path, values.Get("password_file")
	case "http", "https":
		s.URL = text
	default:
		return s, repute.Invalid(field, "is no reference to a key", keyForms)
	}
	if rest == "" {
		return s, repute.Invalid(field, "names no key", keyForms)
	}
	if expected {
		s.Address, err = repute.ParseAddress(field, address)
	}
	return s, err
}
