package scores

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/spf13/cobra"

	"repute"
	"repute/cmd/repute/internal/cli"
	"repute/cmd/repute/internal/config"
	"repute/store"
	"repute/trust/source"
)

// answerView is the answer of one source about one address.
type answerView struct {
	Source string `json:"source"`
	Says   string `json:"says"` // yes, no, unknown or off
	Weight string `json:"weight"`
	// Why is the reason for which a credential gives no weight, for yes, and for which there is no answer, for unknown
	// and off. It is "" when the credential gives weight, and for no.
	Why        string             `json:"why,omitempty"`
	Credential *source.Credential `json:"credential"`
}

// sourcesCheckCommand returns `repute sources check`.
func sourcesCheckCommand(p *cli.Program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check ADDRESS [--chain NAME --rpc URL]",
		Short: "ask all sources of a chain about one address now, and tell which weight it has and why",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			address, err := repute.ParseAddress("address", args[0])
			if err != nil {
				return err
			}
			return p.WithStore(cmd.Context(), func(c config.Config, db *store.DB) error {
				return ask(cmd.Context(), p, c, db, false, func(a *asking) error {
					return checkAddress(cmd.Context(), p, a, address)
				})
			})
		},
	}
	p.JSONFlag(cmd.Flags(), "print JSON")
	return cmd
}

// checkView is what check prints as JSON.
type checkView struct {
	ChainID uint64         `json:"chainId"`
	Address common.Address `json:"address"`
	// Block is the block of the chain at which the weight holds; each source is read at a block of its own chain.
	Block   uint64       `json:"block"`
	Weight  string       `json:"weight"` // of all sources together
	Sources []answerView `json:"sources"`
}

// checkAddress reads all sources about one address and prints the answers. Sources that ask contracts are read at the
// newest block, as the next epoch would read them. Those that are read from payments are not read again, because that
// takes all payments of a chain: the last epoch answers for them.
func checkAddress(ctx context.Context, p *cli.Program, a *asking, address common.Address) error {
	at, err := a.reader.Now(ctx, a.chain, a.sources)
	if err != nil {
		return err
	}
	readings, err := a.reader.Read(ctx, a.chain, at, a.sources, []common.Address{address}, a.past)
	if err != nil {
		return err
	}
	now := uint64(max(0, at.Time.Unix()))
	v := checkView{ChainID: a.chain, Address: address, Block: at.Number, Weight: "0.00", Sources: []answerView{}}
	var all []source.Credential
	for i := range readings {
		held := a.policy.Settle(a.past.Credentials, &readings[i])
		held = slices.DeleteFunc(held, func(c source.Credential) bool { return c.Rater != address })
		all = append(all, held...)
		v.Sources = append(v.Sources, answerOf(a.policy, &readings[i], held, now))
	}
	for _, s := range a.spent {
		r := lastReading(s, a.past, address)
		all = append(all, r.Credentials...)
		v.Sources = append(v.Sources, answerOf(a.policy, &r, r.Credentials, now))
	}
	for _, r := range a.policy.Raters(all, now) {
		v.Weight = r.Weight.Decimal(2)
	}
	return p.Show(v, func(w io.Writer) error { return printCheck(w, v) })
}

// lastReading is what the last run found of one address by a source that is read from the index.
func lastReading(s *source.Source, past source.Past, address common.Address) source.Reading {
	r := source.Reading{State: source.State{Source: s.ID, Status: source.StatusIncomplete,
		Reason: "no epoch has read it yet"}, Unknown: []common.Address{address}}
	for _, st := range past.States {
		if st.Source == s.ID {
			r = source.Reading{State: st}
		}
	}
	for _, c := range past.Credentials {
		if c.Source == s.ID && c.Rater == address {
			r.Credentials = append(r.Credentials, c)
		}
	}
	return r
}

// answerOf converts the reading of one source about one address. held are the address's credentials after Settle, and
// now is the time in Unix seconds at which they are counted.
func answerOf(policy *source.Policy, r *source.Reading, held []source.Credential, now uint64) answerView {
	v := answerView{Source: r.Source, Says: "no", Weight: "0.00"}
	if len(held) > 0 {
		v.Credential, v.Says, v.Why = &held[0], "yes", string(policy.Counts(&held[0], now))
		if v.Why == "" {
			v.Weight = held[0].Weight.Decimal(2)
		}
	}
	switch {
	case r.Status == source.StatusOff:
		v.Says, v.Why = "off", r.Reason
	case len(r.Unknown) > 0:
		v.Says, v.Why = "unknown", r.Reason
	}
	return v
}

// printCheck prints the answers about one address as a table.
func printCheck(w io.Writer, v checkView) error {
	fmt.Fprintf(w, "%s on chain %d at block %d: weight %s from sources\n", v.Address, v.ChainID, v.Block, v.Weight)
	t := cli.NewTable(w, "SOURCE", "SAYS", "WEIGHT", "ISSUED", "WHY")
	for _, s := range v.Sources {
		issued := ""
		if s.Credential != nil {
			issued = time.Unix(int64(s.Credential.Issued), 0).UTC().Format(time.DateOnly)
		}
		t.Row(s.Source, s.Says, s.Weight, issued, cli.Visible(s.Why))
	}
	return t.Flush()
}
