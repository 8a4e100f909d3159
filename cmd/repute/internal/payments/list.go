package payments

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"repute"
	"repute/cmd/repute/internal/cli"
	"repute/cmd/repute/internal/config"
	"repute/orchestrator/payer"
	"repute/store"
	"repute/store/walletdb"
)

// maxListed bounds how many purchases repute pay list shows.
const maxListed = 1000

// payListCommand returns `repute pay list`. It needs no key.
func payListCommand(p *cli.Program) *cobra.Command {
	limit := 20
	cmd := &cobra.Command{
		Use:   "list",
		Short: "list what was paid for answers, and what was refused, newest first",
		Long: `Lists the stored purchases of repute pay and of the orchestrator's agents, newest first.
A purchase is open while no answer was received: its payment may still be settled.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 || limit > maxListed {
				return repute.Invalid("limit", fmt.Sprintf("%d is out of range", limit),
					fmt.Sprintf("1 to %d", maxListed))
			}
			return p.WithStore(cmd.Context(), func(_ config.Config, db *store.DB) error {
				list, err := walletdb.Purchases(cmd.Context(), db, limit)
				if err != nil {
					return err
				}
				return p.Show(listedOf(list), func(w io.Writer) error { return printPurchases(w, list) })
			})
		},
	}
	p.Flags.Database(cmd.Flags())
	cmd.Flags().IntVar(&limit, "limit", limit, "how many, 1 to 1000")
	p.JSONFlag(cmd.Flags(), "print JSON")
	return cmd
}

// listedPurchase is a purchase as repute pay list --json prints it.
type listedPurchase struct {
	ID      string          `json:"id"`
	State   string          `json:"state"` // paid, refused, failed or open
	Created time.Time       `json:"created"`
	By      string          `json:"by"`
	As      string          `json:"as"` // slug of the identity that pays
	Task    string          `json:"task,omitempty"`
	Host    string          `json:"host"`
	Dollars string          `json:"dollars"`
	Reason  string          `json:"reason,omitempty"` // why it was refused or failed
	Payee   *payer.Payee    `json:"payee"`            // null where nobody could be named
	Receipt json.RawMessage `json:"receipt"`          // null where there is no answer
}

// stateOf is the state of a purchase, and the reason for it. A purchase whose answer was lost stays open until its
// payment expires, because the server may still settle it.
func stateOf(b *walletdb.Purchase) (state, reason string) {
	switch {
	case b.Refused != "":
		return "refused", b.Refused
	case b.Error != "":
		return "failed", b.Error
	case b.Ended.IsZero():
		return "open", ""
	}
	return "paid", ""
}

// listedOf converts purchases.
func listedOf(list []walletdb.Purchase) []listedPurchase {
	out := make([]listedPurchase, len(list))
	for i := range list {
		b := &list[i]
		state, reason := stateOf(b)
		out[i] = listedPurchase{ID: b.ID, State: state, Created: b.Created.UTC(), By: b.By, As: b.Agent, Task: b.Task,
			Host: b.Host, Dollars: b.Worth.String(), Reason: reason, Payee: payeeOf(b), Receipt: b.Receipt}
	}
	return out
}

// payeeOf is the agent that a purchase was decided about; nil where nobody could be named. A decision that cannot be
// read, such as one of a later version, names nobody.
func payeeOf(b *walletdb.Purchase) *payer.Payee {
	var d struct{ Payee *payer.Payee }
	if json.Unmarshal(b.Decision, &d) != nil {
		return nil
	}
	return d.Payee
}

// printPurchases writes a table. What servers and indexes say is made visible.
func printPurchases(w io.Writer, list []walletdb.Purchase) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(w, "no payments yet")
		return err
	}
	t := cli.NewTable(w, "TIME", "STATE", "DOLLARS", "HOST", "PAYEE", "AS", "BY", "ID", "REASON")
	for i := range list {
		b := &list[i]
		state, reason := stateOf(b)
		payee := "-"
		if who := payeeOf(b); who != nil {
			payee = who.Agent
		}
		t.Row(b.Created.UTC().Format(time.RFC3339), state, b.Worth, cli.Visible(b.Host), cli.Visible(payee),
			cmp.Or(b.Agent, "-"), cli.Visible(b.By), b.ID, cli.Visible(reason))
	}
	return t.Flush()
}
