package files

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"repute"
	"repute/agent/publication"
	"repute/cmd/repute/internal/cli"
	"repute/manifest/agentjson"
	"repute/manifest/agentjson/identity"
)

// manifestNewCommand returns `repute manifest new`. The key file is needed for its public half alone; the file that is
// written is not signed.
func manifestNewCommand(p *cli.Program) *cobra.Command {
	var d publication.Draft
	var keyFile string
	cmd := &cobra.Command{
		Use:     "new FILE --domain DOMAIN",
		Short:   "write a new agent.json for a domain",
		Example: "  repute manifest new agent.json --domain shop.example --payout 0x… --key shop.pem",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if keyFile != "" {
				key, err := readKey(keyFile)
				if err != nil {
					return err
				}
				d.PublicKey = publicOf(key)
			}
			b, err := d.Write()
			if err != nil {
				return err
			}
			if err := cli.WriteNew(args[0], b, 0o644); err != nil {
				return err
			}
			fmt.Fprintf(p.Stdout, "%s: serve it at https://%s/.well-known/agent.json\n", args[0], d.Domain)
			return nil
		},
	}
	cmd.Flags().StringVar(&d.Domain, "domain", "", "the host that will serve the file")
	cmd.Flags().StringVar(&d.PayoutAddress, "payout", "",
		"address that payments go to; the zero address, which check reports, when empty")
	cmd.Flags().StringVar(&d.DisplayName, "name", "", "name of the service for people")
	cmd.Flags().StringVar(&d.Description, "description", "", "what the service does")
	cmd.Flags().StringVar(&keyFile, "key", "", "file of keygen: adds the identity of the domain with this key")
	return cmd
}

// manifestKeygenCommand returns `repute manifest keygen`. The private key goes into the file and nowhere else. A file
// that exists is never overwritten: a lost key cannot be made again.
func manifestKeygenCommand(p *cli.Program) *cobra.Command {
	return &cobra.Command{
		Use:   "keygen FILE",
		Short: "write a new Ed25519 key to a new file that only its owner can read, and print its public key",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			_, key, err := ed25519.GenerateKey(nil)
			if err != nil {
				return err
			}
			b, err := identity.EncodePrivateKey(key)
			if err != nil {
				return err
			}
			if err := cli.WriteNew(args[0], b, 0o600); err != nil {
				return err
			}
			public := publicOf(key)
			fmt.Fprintf(p.Stdout, "public_key %s\ndid:key    %s\n", identity.EncodeKey(public), identity.DIDKey(public))
			return nil
		},
	}
}

// manifestSignCommand returns `repute manifest sign`. The file is replaced as a whole once the signature is made, so
// that a failure leaves it as it was. Only the commitments are signed: other members can change without a new
// signature.
func manifestSignCommand(p *cli.Program) *cobra.Command {
	var keyFile string
	cmd := &cobra.Command{
		Use:   "sign FILE --key KEY",
		Short: "sign the commitments of an agent.json, which is changed in place",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			key, err := readKey(keyFile)
			if err != nil {
				return err
			}
			b, err := readFileDocument(args[0])
			if err != nil {
				return err
			}
			signed, err := agentjson.SignCommitments(b, key)
			if err != nil {
				return err
			}
			if err := p.WriteFile(args[0], func(w io.Writer) error {
				_, err := w.Write(signed)
				return err
			}); err != nil {
				return err
			}
			fmt.Fprintf(p.Stdout, "%s: commitments signed by %s\n", args[0], identity.EncodeKey(publicOf(key)))
			return nil
		},
	}
	cmd.Flags().StringVar(&keyFile, "key", "", "file of keygen")
	return cmd
}

// manifestDIDCommand returns `repute manifest did`. It fetches nothing: whether the domain serves the document is what
// manifest check finds.
func manifestDIDCommand(p *cli.Program) *cobra.Command {
	var domain, keyFile string
	cmd := &cobra.Command{
		Use:   "did --domain DOMAIN --key KEY",
		Short: "print the DID document of a domain, to be served at /.well-known/did.json",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return errors.New("takes no argument, give --domain HOST")
			}
			return nil
		},
		RunE: func(*cobra.Command, []string) error {
			if domain == "" {
				return repute.Invalid("domain", "is missing", "--domain HOST, without scheme, port and path")
			}
			if !isDomain(domain) {
				return repute.Invalid("domain", fmt.Sprintf("%.80q is no domain", domain),
					"the host that serves agent.json")
			}
			key, err := readKey(keyFile)
			if err != nil {
				return err
			}
			b, err := identity.NewDIDDocument(domain, publicOf(key))
			if err != nil {
				return fmt.Errorf("write the DID document: %w", err)
			}
			_, err = fmt.Fprintf(p.Stdout, "%s\n", b)
			return err
		},
	}
	cmd.Flags().StringVar(&domain, "domain", "", "the host that serves agent.json")
	cmd.Flags().StringVar(&keyFile, "key", "", "file of keygen")
	return cmd
}

// publicOf returns the public key of a key.
func publicOf(key ed25519.PrivateKey) ed25519.PublicKey { return key.Public().(ed25519.PublicKey) }

// readKey reads a file of keygen. The error of a file that has no key does not quote it.
func readKey(name string) (ed25519.PrivateKey, error) {
	if name == "" {
		return nil, repute.Invalid("key", "is missing", "--key with a file of repute manifest keygen")
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, repute.Invalid("key", err.Error(), "a file of repute manifest keygen")
	}
	return identity.ParsePrivateKey(b)
}
