package main

import (
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/spf13/cobra"

	"repute"
	"repute/trust/rootfile"
	"repute/trust/statement"
)

// signingConfig says by which key final scores are signed, if any.
type signingConfig struct {
	KeyFile  string        `yaml:"key_file"` // 64 hex digits; nobody but its owner may read it
	KeyEnv   string        `yaml:"key_env"`  // name of a variable with the same, instead of a file
	Lifetime time.Duration `yaml:"lifetime"` // of a statement
	Since    string        `yaml:"since"`    // from when on the key signs; empty: always
	Retired  []retiredKey  `yaml:"retired"`  // keys that signed before, still published
	signer   *statement.Signer
}

// retiredKey is a key that signs no more.
type retiredKey struct {
	Address string `yaml:"address"`
	From    string `yaml:"from"`
	To      string `yaml:"to"`
}

// checkSigning reads the key once, so that what is wrong with it is known before anything
// is opened. Neither the key nor a part of it is ever shown.
func (c *config) checkSigning() error {
	s := &c.Signing
	switch {
	case s.KeyFile == "" && s.KeyEnv == "":
		if len(s.Retired) > 0 || s.Since != "" {
			return repute.Invalid("signing.key_file", "is missing", "name the file of the key in use, or leave out signing")
		}
		return nil
	case s.KeyFile != "" && s.KeyEnv != "":
		return repute.Invalid("signing.key_env", "stands beside key_file", "give one of them")
	case s.Lifetime < time.Second || s.Lifetime > statement.MaxLife:
		return repute.Invalid("signing.lifetime", s.Lifetime.String()+" is out of range", "1s to 168h, e.g. 1h")
	}
	since, err := rootfile.ParseExpiry(s.Since, time.Time{})
	if err != nil {
		return repute.Invalid("signing.since", "is no time", "e.g. 2030-01-31T12:00:00Z")
	}
	retired, err := s.retired()
	if err != nil {
		return err
	}
	field, text, err := s.key()
	if err != nil {
		return err
	}
	key, err := statement.ParseKey(field, text)
	if err != nil {
		return err
	}
	s.signer = statement.NewSigner(key, s.Lifetime, since, retired)
	return nil
}

// warn says so where nothing is signed yet: a date in the future may be a slip.
func (s *signingConfig) warn(log *slog.Logger, now time.Time) {
	if s.signer != nil && s.signer.Since().After(now) {
		log.Warn("nothing is signed before the key's time", "field", "signing.since", "since", s.signer.Since().UTC().Format(time.RFC3339))
	}
}

func (s *signingConfig) key() (field, text string, err error) {
	if s.KeyEnv != "" {
		text = os.Getenv(s.KeyEnv)
		if text == "" {
			err = repute.Invalid("signing.key_env", "the environment has no "+s.KeyEnv, "set it to the key's 64 hex digits")
		}
		return "signing.key_env", text, err
	}
	const field1 = "signing.key_file"
	file, err := os.Open(s.KeyFile)
	if err != nil {
		return field1, "", repute.Invalid(field1, err.Error(), "repute keys new FILE makes one")
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return field1, "", repute.Invalid(field1, err.Error(), "give a readable file")
	}
	if info.Mode().Perm()&0o077 != 0 {
		return field1, "", repute.Invalid(field1, fmt.Sprintf("others may read %s (mode %04o)", s.KeyFile, info.Mode().Perm()), "chmod 600 "+s.KeyFile)
	}
	raw, err := io.ReadAll(io.LimitReader(file, 1<<10))
	if err != nil {
		return field1, "", repute.Invalid(field1, err.Error(), "give a readable file")
	}
	return field1, string(raw), nil
}

func (s *signingConfig) retired() (keys []statement.Key, err error) {
	for i, r := range s.Retired {
		field := fmt.Sprintf("signing.retired[%d]", i)
		var k statement.Key
		if k.Address, err = repute.ParseAddress(field+".address", r.Address); err != nil {
			return nil, err
		}
		for name, at := range map[string]struct {
			text string
			time *time.Time
		}{"from": {r.From, &k.From}, "to": {r.To, &k.To}} {
			if *at.time, err = rootfile.ParseExpiry(at.text, time.Time{}); err != nil {
				return nil, repute.Invalid(field+"."+name, "is no time", "e.g. 2030-01-31T12:00:00Z")
			}
		}
		if k.To.IsZero() {
			return nil, repute.Invalid(field+".to", "is missing", "when it signed for the last time")
		}
		keys = append(keys, k)
	}
	return keys, nil
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
