package agents

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"repute"
	"repute/agent/capability"
	"repute/agent/signed"
	"repute/cmd/repute/internal/cli"
)

// verified is what verify-response prints. Signer is for the caller to compare: the command is offline and does not
// know the agent's owner and wallet.
type verified struct {
	Valid      bool   `json:"valid"`
	Signer     string `json:"signer"`
	Agent      string `json:"agent"`
	TaskHash   string `json:"taskHash"`
	ResultHash string `json:"resultHash"`
	Time       string `json:"time"`
	Status     int    `json:"status"`
	Metadata   string `json:"metadata"`
	Task       string `json:"task,omitempty"` // "same" where --input was compared
}

// VerifyCommand is repute agent verify-response.
func VerifyCommand(p *cli.Program) *cobra.Command {
	var signer, input, name, version string
	cmd := &cobra.Command{
		Use:   "verify-response FILE",
		Short: "verify the signature of an answer of an agent, offline",
		Long: `Reads an answer as curl -i prints it, and checks that its body is the signed one and whose
key signed. Compare the signer with the agent's owner or wallet, or give it by --signer.
With --input and --capability it also checks that the answer is about that task. Answers of
contract wallets cannot be verified offline.`,
		Example: `  curl -i -d '{"text":"hi"}' -H Content-Type:application/json http://127.0.0.1:3000/capability/echo > a.txt
  repute agent verify-response a.txt --input input.json --capability echo`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			in, err := p.OpenInput(args[0])
			if err != nil {
				return err
			}
			defer in.Close()
			out, r, err := verify(in)
			if err != nil {
				return err
			}
			if signer != "" {
				if err := sameSigner(signer, out.Signer); err != nil {
					return err
				}
			}
			if input != "" {
				if err := sameTask(p, r, name, version, input); err != nil {
					return err
				}
				out.Task = "same"
			}
			return p.Show(out, out.write)
		},
	}
	cmd.Flags().StringVar(&signer, "signer", "", "address that must have signed")
	cmd.Flags().StringVar(&input, "input", "", "file with the input that was sent")
	cmd.Flags().StringVar(&name, "capability", "", "name of the capability that was asked, for --input")
	cmd.Flags().StringVar(&version, "capability-version", "1.0.0", "its version, for --input")
	p.JSONFlag(cmd.Flags(), "print JSON")
	return cmd
}

// verify reads an answer and checks its signature.
func verify(in io.Reader) (*verified, *signed.Response, error) {
	status, h, body, err := signed.ParseHTTP(in)
	if err != nil {
		return nil, nil, err
	}
	r, err := signed.ReadResponse(h)
	if err != nil {
		return nil, nil, err
	}
	by, err := r.Verify(body)
	if err != nil {
		return nil, nil, err
	}
	id := repute.AgentID{ChainID: r.Domain.ChainID, Registry: r.Domain.Registry, TokenID: r.AgentID}
	return &verified{Valid: true, Signer: by.Hex(), Agent: id.String(), TaskHash: r.TaskHash.Hex(),
		ResultHash: r.ResultHash.Hex(), Time: time.Unix(int64(min(r.Timestamp, 1<<40)), 0).UTC().Format(time.RFC3339),
		Status: status, Metadata: r.Metadata}, &r, nil
}

// sameSigner refuses an answer that another account signed than the caller expects.
func sameSigner(want, got string) error {
	address, err := repute.ParseAddress("signer", want)
	if err != nil {
		return err
	}
	if address.Hex() != got {
		return repute.Invalid("signer", "the answer is signed by "+got, "an answer that "+want+" signed")
	}
	return nil
}

// sameTask compares the task of an answer with an input. The hash covers the agent, the name and the version of the
// capability, so that all three must be given as they were asked.
func sameTask(p *cli.Program, r *signed.Response, name, version, input string) error {
	raw, err := p.ReadInput("input", input, capability.MaxBytes)
	if err != nil {
		return err
	}
	task, err := capability.TaskHash(r.AgentID.Dec(), name, version, raw)
	if err != nil {
		return err
	}
	if task != r.TaskHash {
		return repute.Invalid("input", fmt.Sprintf("its task is %s, the answer is about %s", task, r.TaskHash),
			"the input, capability and version that were asked")
	}
	return nil
}

// write prints an answer's signed fields as text.
func (v *verified) write(w io.Writer) error {
	_, err := fmt.Fprintf(w,
		"valid: signed by %s\nagent: %s\ntask: %s\nresult: %s\ntime: %s\nstatus: %d\nmetadata: %s\n",
		v.Signer, v.Agent, v.TaskHash, v.ResultHash, v.Time, v.Status, v.Metadata)
	return err
}
