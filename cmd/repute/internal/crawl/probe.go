package crawl

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"repute"
	"repute/cmd/repute/internal/cli"
	"repute/cmd/repute/internal/config"
	"repute/store"
	"repute/store/manifestdb"
)

// ProbeCommand returns the command that lets the crawl probe endpoints of domains. Domains are brought into their
// stored spelling before the first is changed. They are changed one by one: an unknown domain ends the command, and
// those before it stay changed.
func ProbeCommand(p *cli.Program) *cobra.Command {
	var off bool
	cmd := &cobra.Command{
		Use:   "probe DOMAIN...",
		Short: "let the crawl probe an endpoint of a domain, for its commitments",
		Long: `Let the crawl compare commitments of latency and uptime with an endpoint of the manifest in
place of the manifest itself. At each check, once an hour at most, the crawl asks the
endpoint for its header (HEAD): that of the first intent that is read by GET and has no
price. A domain whose robots.txt forbids the path is not probed. What was measured before is
forgotten. Ask who runs the domain: a service may count such requests.`,
		Example: "  repute manifest probe shop.example\n  repute manifest probe shop.example --off",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			for i, text := range args {
				if args[i] = domainOf(text); args[i] == "" {
					return repute.Invalid("domain", fmt.Sprintf("%.100q is none", text),
						"a public host name without scheme, port and path, e.g. shop.example.com")
				}
			}
			return p.WithStore(cmd.Context(), func(_ config.Config, db *store.DB) error {
				for _, domain := range args {
					if err := manifestdb.SetProbed(cmd.Context(), db, domain, !off); err != nil {
						return unprobed(err)
					}
				}
				return nil
			})
		},
	}
	p.Flags.Database(cmd.Flags())
	cmd.Flags().BoolVar(&off, "off", false, "probe it no more")
	return cmd
}

// unprobed adds to the error of a domain that is not known how it becomes known. Other failures have another remedy.
func unprobed(err error) error {
	if errors.Is(err, repute.ErrNotFound) {
		return fmt.Errorf("%w: repute manifest import lists domains", err)
	}
	return err
}
