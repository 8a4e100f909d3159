package bulk

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"repute"
	"repute/cmd/repute/internal/cli"
	"repute/cmd/repute/internal/config"
	"repute/orchestrator/control/apikeys"
	"repute/store"
	"repute/store/keydb"
)

// KeysCommand makes, lists and revokes API keys.
func KeysCommand(p *cli.Program) *cobra.Command {
	cmd := &cobra.Command{Use: "apikeys", Short: "make, list and revoke keys that raise the limits of callers"}
	cmd.AddCommand(addKey(p), listKeys(p), revokeKey(p))
	return cmd
}

// addKey prints the text of a new key alone, so that a script can take it. A name is never used again, also after the
// key was revoked, because logs name it.
func addKey(p *cli.Program) *cobra.Command {
	var k keydb.Key
	var days int
	cmd := &cobra.Command{
		Use:   "add NAME",
		Short: "make a key and print it; it is stored nowhere and cannot be printed again",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			k.Name = args[0]
			if days < 0 {
				return repute.Invalid("days", fmt.Sprintf("%d is out of range", days),
					"1 or more; 0 for a key that never expires")
			}
			if days > 0 {
				end := time.Now().UTC().AddDate(0, 0, days)
				k.Expires = &end
			}
			return p.WithStore(cmd.Context(), func(_ config.Config, db *store.DB) error {
				text, err := keydb.Add(cmd.Context(), db, k)
				if err == nil {
					fmt.Fprintln(p.Stdout, text)
				}
				return err
			})
		},
	}
	p.Flags.Database(cmd.Flags())
	cmd.Flags().StringSliceVar(&k.Scopes, "scope", []string{"read"}, "what it is for: read, export")
	cmd.Flags().IntVar(&k.Rate, "rate", 200, "requests per second")
	cmd.Flags().IntVar(&days, "days", 0, "days after which it expires; 0 for never")
	return cmd
}

// listKeys returns `repute apikeys list`. Its JSON is that of the route, and has revoked and expired keys too.
func listKeys(p *cli.Program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "print the keys as JSON, without their texts",
		Args:  cobra.NoArgs,
		RunE: p.OnStore(func(ctx context.Context, _ config.Config, db *store.DB, _ []string) error {
			keys, err := keydb.List(ctx, db)
			if err != nil {
				return err
			}
			out := []apikeys.APIKey{}
			for _, k := range keys {
				out = append(out, apikeys.Encode(k))
			}
			return p.PrintJSON(out)
		}),
	}
	p.Flags.Database(cmd.Flags())
	return cmd
}

// revokeKey returns `repute apikeys revoke`. A key that is revoked already keeps its time. The five seconds are those
// for which the API remembers keys.
func revokeKey(p *cli.Program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "revoke NAME",
		Short: "make a key stop working, within five seconds in every process",
		Args:  cobra.ExactArgs(1),
		RunE: p.OnStore(func(ctx context.Context, _ config.Config, db *store.DB, args []string) error {
			k, err := keydb.Revoke(ctx, db, args[0])
			if err == nil {
				fmt.Fprintf(p.Stdout, "%s is revoked since %s\n", k.Name, k.Revoked.Format(time.RFC3339))
			}
			return err
		}),
	}
	p.Flags.Database(cmd.Flags())
	return cmd
}
