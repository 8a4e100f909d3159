package main

import (
	"encoding/hex"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/spf13/cobra"

	"repute/cmd/repute/internal/cli"
	"repute/trust/statement"
)

// keysCommand returns `repute keys`. These keys sign statements about final scores and the heads of decisions. They are
// no keys of wallets, although they have the same form.
func keysCommand(p *cli.Program) *cobra.Command {
	cmd := &cobra.Command{Use: "keys", Short: "make and list the keys that sign final scores"}
	cmd.AddCommand(keysNewCommand(p), keysListCommand(p))
	return cmd
}

// keysNewCommand returns `repute keys new`. The key comes into use by signing.key of the configuration.
func keysNewCommand(p *cli.Program) *cobra.Command {
	return &cobra.Command{
		Use:   "new FILE",
		Short: "write a new key to a new file that only its owner can read, and print its address",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			address, err := newKey(args[0])
			if err != nil {
				return err
			}
			fmt.Fprintln(p.Stdout, address.Hex())
			return nil
		},
	}
}

// newKey writes a new key to a new file and returns its address.
func newKey(path string) (common.Address, error) {
	key, err := crypto.GenerateKey()
	if err != nil {
		return common.Address{}, fmt.Errorf("new key: %w", err)
	}
	text := hex.EncodeToString(crypto.FromECDSA(key)) + "\n"
	return crypto.PubkeyToAddress(key.PublicKey), cli.WriteNew(path, []byte(text), 0o600)
}

// keysListCommand returns `repute keys list`. It opens no database. Without a configured key the list is empty.
func keysListCommand(p *cli.Program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "print what /.well-known/repute-keys.json gives with this configuration",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			c, err := p.Flags.Load()
			if err != nil {
				return err
			}
			keys := statement.KeyList{}
			if c.Signing.Signer != nil {
				keys = c.Signing.Signer.Keys()
			}
			return p.PrintJSON(keys)
		},
	}
	p.Flags.Database(cmd.Flags())
	return cmd
}
