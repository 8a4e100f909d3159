package main

import (
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/spf13/cobra"

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
	signer  *statement.Signer
}

// checkSigning reads the key once, so that what is wrong with it is known before anything
// is opened. Neither the key nor a part of it is ever shown. The key signs from the time on
// at which the last retired one ended.
func (c *config) checkSigning() error {
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
	s.signer = statement.NewSigner(key, signedLifetime, since, retired)
	return nil
}

// warn logs that nothing is signed yet: a date in the future may be a slip.
func (s *signingConfig) warn(log *slog.Logger, now time.Time) {
	if s.signer != nil && s.signer.Since().After(now) {
		log.Warn("nothing is signed before the end of the last retired key", "field", "signing.retired", "until", s.signer.Since().UTC().Format(time.RFC3339))
	}
}

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

// retired reads the keys that sign no more, and when the last of them ended.
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
			return nil, last, repute.Invalid(field, "has no period of signing", `"ADDRESS FROM/TO", e.g. "0x… 2029-01-31T12:00:00Z/2030-01-31T12:00:00Z"; without FROM since ever`)
		}
		if k.To.After(last) {
			last = k.To
		}
		keys = append(keys, k)
	}
	return keys, last, nil
}

// seal signs heads of decisions; nil where no key is configured.
func (s *signingConfig) seal() func(repute.DecisionsHead) (repute.SealedHead, error) {
	if s.signer == nil {
		return nil
	}
	return func(h repute.DecisionsHead) (repute.SealedHead, error) { return s.signer.SealHead(h, time.Now()) }
}

// published are the keys that others verify with.
func (s *signingConfig) published() []statement.Key {
	if s.signer == nil {
		return nil
	}
	return s.signer.Keys().Keys
}

func (p *program) keysCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "keys", Short: "make and list the keys that sign final scores"}
	cmd.AddCommand(p.keysNewCommand(), p.keysListCommand())
	return cmd
}

func (p *program) keysNewCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "new FILE",
		Short: "write a new key to a new file that only its owner can read, and print its address",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			address, err := newKey(args[0])
			if err != nil {
				return err
			}
			fmt.Fprintln(p.stdout, address.Hex())
			return nil
		},
	}
}

// newKey never overwrites a file.
func newKey(path string) (common.Address, error) {
	key, err := crypto.GenerateKey()
	if err != nil {
		return common.Address{}, fmt.Errorf("new key: %w", err)
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return common.Address{}, repute.Invalid("file", err.Error(), "give a name that no file has")
	}
	defer file.Close()
	if _, err := file.WriteString(hex.EncodeToString(crypto.FromECDSA(key)) + "\n"); err != nil {
		return common.Address{}, fmt.Errorf("new key: %w", err)
	}
	return crypto.PubkeyToAddress(key.PublicKey), file.Close()
}

func (p *program) keysListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "print what /.well-known/repute-keys.json gives with this configuration",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			c, err := p.flags.load()
			if err != nil {
				return err
			}
			keys := statement.KeyList{}
			if c.Signing.signer != nil {
				keys = c.Signing.signer.Keys()
			}
			return p.printJSON(keys)
		},
	}
	p.flags.database(cmd.Flags())
	return cmd
}
