package config

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/orchestrator/wallet/keys"
	"repute/trust/rootfile"
	"repute/trust/statement"
)

// signingConfig says by which key final scores are signed, if any.
type signingConfig struct {
	// Key that signs scores and heads of decisions: env:NAME or file:PATH with 64 hex digits.
	// Empty: nothing is signed.
	Key keyRef `yaml:"key"`
	// Keys that signed before and are still published: "ADDRESS FROM/TO". The key in use signs
	// from the last TO on.
	Retired []string `yaml:"retired"`
	Signer  *statement.Signer
}

// checkSigning reads the key once, so that what is wrong with it is known before anything
// is opened. Neither the key nor a part of it is ever shown. The key signs from the time on
// at which the last retired one ended.
func (c *Config) checkSigning() error {
	s := &c.Signing
	if s.Key == "" {
		if len(s.Retired) > 0 {
			return repute.Invalid("signing.key", "is missing", "name the key in use, or leave out signing")
		}
		return nil
	}
	retired, since, err := s.retired()
	if err != nil {
		return err
	}
	text, err := s.key()
	if err != nil {
		return err
	}
	key, err := statement.ParseKey("signing.key", text)
	if err != nil {
		return err
	}
	s.Signer = statement.NewSigner(key, signedLifetime, since, retired)
	return nil
}

// Warn logs that nothing is signed yet: a date in the future may be a slip.
func (s *signingConfig) Warn(log *slog.Logger, now time.Time) {
	if s.Signer != nil && s.Signer.Since().After(now) {
		log.Warn("nothing is signed before the end of the last retired key", "field", "signing.retired", "until",
			s.Signer.Since().UTC().Format(time.RFC3339))
	}
}

// key returns the configured key. Errors never contain a part of it.
func (s *signingConfig) key() (text string, err error) {
	const field = "signing.key"
	from, err := s.Key.signer(field)
	switch {
	case err != nil:
		return "", err
	case from.KeyEnv != "":
		if text = os.Getenv(from.KeyEnv); text == "" {
			err = repute.Invalid(field, "the environment has no "+from.KeyEnv, "set it to the key's 64 hex digits")
		}
		return text, err
	case from.KeyFile == "" || from.Address != (common.Address{}):
		return "", repute.Invalid(field, "is neither a variable nor a file", "env:NAME or file:PATH")
	}
	raw, err := keys.SecretFile(field, from.KeyFile, 1<<10)
	return string(raw), err
}

// retired reads the keys that sign no more, and when the last of them ended. Retired keys are published for as long as
// they are configured, so that what they signed can still be verified.
func (s *signingConfig) retired() (keys []statement.Key, last time.Time, err error) {
	for i, text := range s.Retired {
		field := fmt.Sprintf("signing.retired[%d]", i)
		address, times, _ := strings.Cut(strings.TrimSpace(text), " ")
		from, to, found := strings.Cut(strings.TrimSpace(times), "/")
		var k statement.Key
		if k.Address, err = repute.ParseAddress(field, address); err != nil {
			return nil, last, err
		}
		var errFrom, errTo error
		k.From, errFrom = rootfile.ParseExpiry(from, time.Time{})
		k.To, errTo = rootfile.ParseExpiry(to, time.Time{})
		if !found || errFrom != nil || errTo != nil || k.To.IsZero() {
			return nil, last, repute.Invalid(field, "has no period of signing",
				`"ADDRESS FROM/TO", e.g. "0x… 2029-01-31T12:00:00Z/2030-01-31T12:00:00Z"; without FROM since ever`)
		}
		if k.To.After(last) {
			last = k.To
		}
		keys = append(keys, k)
	}
	return keys, last, nil
}

// Seal signs heads of decisions; nil where no key is configured.
func (s *signingConfig) Seal() func(repute.DecisionsHead) (repute.SealedHead, error) {
	if s.Signer == nil {
		return nil
	}
	return func(h repute.DecisionsHead) (repute.SealedHead, error) { return s.Signer.SealHead(h, time.Now()) }
}

// Published are the keys that others verify with.
func (s *signingConfig) Published() []statement.Key {
	if s.Signer == nil {
		return nil
	}
	return s.Signer.Keys().Keys
}
