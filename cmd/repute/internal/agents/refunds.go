package agents

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/spf13/cobra"

	"repute"
	"repute/agent"
	"repute/cmd/repute/internal/cli"
	"repute/cmd/repute/internal/config"
	"repute/contracts"
	"repute/store"
)

// RefundsCommand is repute agent refunds.
func RefundsCommand(p *cli.Program) *cobra.Command {
	var paid, transaction string
	cmd := &cobra.Command{
		Use:   "refunds AGENT [--paid PAYMENT --transaction HASH]",
		Short: "list the payments that an agent owes back, or store that one was paid back",
		Long: `Lists payments that were charged for calls that failed, where the policy of the agent says
refundPolicy onFailure. The money is in the account that the agent is paid to: send it to the payer
from there, and store the transaction by --paid, so that nobody sends it again. Payments that are
owed back are kept until then, however old they are.`,
		Example: `  repute agent refunds eip155:8453:0x8004A169FB4a3325136EB29fA0ceB6D2e539a432:42`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, err := repute.ParseAgentRef(args[0])
			if err != nil {
				return err
			}
			id, err := fullID(ref)
			if err != nil {
				return err
			}
			hash := common.HexToHash(transaction)
			if (paid == "") != (transaction == "") || transaction != "" && !strings.EqualFold(hash.Hex(), transaction) {
				return repute.Invalid("transaction",
					fmt.Sprintf("%.80q is no hash for --paid %.20q", transaction, paid),
					"both flags: a payment of the list, and the hash of the transaction that paid it back")
			}
			return p.WithStore(cmd.Context(), func(_ config.Config, db *store.DB) error {
				if paid != "" {
					return agent.PaidBack(cmd.Context(), db, id, paid, hash)
				}
				return listRefunds(cmd.Context(), p, db, id)
			})
		},
	}
	cmd.Flags().StringVar(&paid, "paid", "", "payment of the list that was paid back")
	cmd.Flags().StringVar(&transaction, "transaction", "", "hash of the transaction that paid it back")
	p.JSONFlag(cmd.Flags(), "print JSON")
	return cmd
}

// fullID completes the id of an agent by the Identity Registry of a known chain. Refunds are stored by the full id, and
// the command asks no chain for it.
func fullID(ref repute.AgentRef) (repute.AgentID, error) {
	id := repute.AgentID{ChainID: ref.ChainID, TokenID: ref.TokenID}
	switch {
	case ref.ChainID == 0:
		return id, repute.Invalid("AGENT", "names no chain", "CHAIN:ID, or eip155:CHAIN:REGISTRY:ID")
	case ref.Registry != nil:
		id.Registry = *ref.Registry
		return id, nil
	}
	d, err := contracts.FindDeployment(fmt.Sprint(ref.ChainID))
	if err != nil {
		return id, repute.Invalid("AGENT", fmt.Sprintf("the registry of chain %d is not known", ref.ChainID),
			fmt.Sprintf("eip155:%d:REGISTRY:%s", ref.ChainID, ref.TokenID.Dec()))
	}
	id.Registry = d.Chain().Identity
	return id, nil
}

// listRefunds prints what an agent owes.
func listRefunds(ctx context.Context, p *cli.Program, db *store.DB, id repute.AgentID) error {
	list, err := agent.Refunds(ctx, db, id)
	if err != nil {
		return err
	}
	return p.Show(list, func(w io.Writer) error {
		if len(list) == 0 {
			fmt.Fprintln(w, "nothing is owed back")
		}
		for _, o := range list {
			if _, err := fmt.Fprintf(w, "%s %s (%s on %s) to %s\n  charged %s by %s for %s\n  payment %s\n", o.Amount,
				cli.Visible(o.Currency), o.Asset, o.Network, o.Payer, o.Time.Format(time.RFC3339), o.Transaction,
				o.Capability, o.Payment); err != nil {
				return err
			}
		}
		return nil
	})
}
