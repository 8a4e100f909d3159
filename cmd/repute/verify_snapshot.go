package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"repute"
	"repute/cmd/repute/internal/cli"
	"repute/cmd/repute/internal/config"
	"repute/trust/statement"
)

const (
	// maxStatement bounds statements and lists of keys, in bytes.
	maxStatement = 1 << 20
	// keysHint says what to give where a server does not answer with keys: that is no
	// result of the statement.
	keysHint = "the URL of an index that signs, https://…/.well-known/repute-keys.json, or a file of its keys"
	// keysTimeout is how long a list of keys may take to come.
	keysTimeout = 10 * time.Second
)

// verifySnapshotCommand returns `repute verify-snapshot`. A statement that is not valid is exit code 1; what keeps it
// from being judged, such as a list of keys that does not come, is 2.
func verifySnapshotCommand(p *cli.Program) *cobra.Command {
	var key, keys, agent string
	var maxAge time.Duration
	cmd := &cobra.Command{
		Use:   "verify-snapshot FILE|- (--key ADDRESS | --keys URL|FILE) [--agent AGENT] [--max-age DURATION]",
		Short: "verify a signed score offline",
		Long: `FILE is a reputation answer asked with ?signed=1, or the object signed of one.
--key names the address that must have signed; --keys the operator's list, which
/.well-known/repute-keys.json gives. Nothing else is asked of anybody. --agent is the
agent that the statement must be about; --max-age how old the block may be as of which it holds.

Exit codes: 0 the statement is valid now, 1 it is not, 2 wrong usage or input,
or the keys cannot be read.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			trusted, err := trustedKeys(cmd.Context(), p, key, keys)
			if err != nil {
				return err
			}
			in, err := p.OpenInput(args[0])
			if err != nil {
				return err
			}
			defer in.Close()
			signed, err := readStatement(in)
			if err != nil {
				return err
			}
			about, err := expectedAgent(agent, signed.Agent)
			if err != nil {
				return err
			}
			if maxAge < 0 {
				return repute.Invalid("max-age", "is negative", "a duration such as 24h; 0 for any age")
			}
			if err := statement.VerifyFor(signed, about, maxAge, trusted, time.Now()); err != nil {
				return fmt.Errorf("not valid: %w", err)
			}
			return printStatement(p, signed)
		},
	}
	cmd.Flags().StringVar(&key, "key", "", "address that must have signed")
	cmd.Flags().StringVar(&keys, "keys", "",
		"URL (https, or http of this machine) or file of the operator's list of keys")
	cmd.Flags().StringVar(&agent, "agent", "",
		"agent that the statement must be about: CHAIN:TOKEN, or with its registry eip155:CHAIN:REGISTRY:TOKEN")
	cmd.Flags().DurationVar(&maxAge, "max-age", 0,
		"how old the block may be as of which the score holds, such as 24h; 0 for any age")
	return cmd
}

// expectedAgent is the agent that was asked for; what the reference leaves open is as in
// the statement.
func expectedAgent(asked string, stated repute.AgentID) (repute.AgentID, error) {
	if asked == "" {
		return stated, nil
	}
	ref, err := repute.ParseAgentRef(asked)
	if err != nil {
		return stated, repute.Invalid("agent", "names no agent", "CHAIN:TOKEN, or eip155:CHAIN:REGISTRY:TOKEN")
	}
	stated.TokenID = ref.TokenID
	if ref.ChainID != 0 {
		stated.ChainID = ref.ChainID
	}
	if ref.Registry != nil {
		stated.Registry = *ref.Registry
	}
	return stated, nil
}

// trustedKeys are those of the flags; one of the two must be given. A key that is given by its address has no time of
// its own: it is trusted whenever the statement was issued.
func trustedKeys(ctx context.Context, p *cli.Program, key, keys string) ([]statement.Key, error) {
	switch {
	case key != "" && keys != "":
		return nil, repute.Invalid("keys", "stands beside --key", "give one of them")
	case key != "":
		address, err := repute.ParseAddress("key", key)
		return []statement.Key{{Address: address}}, err
	case keys == "":
		return nil, repute.Invalid("key", "whose signature is trusted is not said",
			"give --key ADDRESS, or --keys URL|FILE")
	}
	body, err := readKeys(ctx, p, keys)
	if err != nil {
		return nil, err
	}
	var list statement.KeyList
	err = list.UnmarshalJSON(body)
	return list.Keys, err
}

// readKeys reads a list of keys from a file or a URL. No redirect is followed: the operator's own host must give the
// list. Errors never name the URL, which may hold a secret.
func readKeys(ctx context.Context, p *cli.Program, from string) ([]byte, error) {
	if !strings.Contains(from, "://") {
		in, err := p.OpenInput(from)
		if err != nil {
			return nil, err
		}
		defer in.Close()
		return bounded(in)
	}
	u, err := url.Parse(from)
	if err != nil || u.Scheme != "https" && !(u.Scheme == "http" && config.Loopback(u.Hostname())) {
		return nil, repute.Invalid("keys", "is no https URL", "https://…/.well-known/repute-keys.json")
	}
	ctx, cancel := context.WithTimeout(ctx, keysTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
		return errors.New("the list of keys is somewhere else: give that URL")
	}}
	response, err := client.Do(request)
	if err != nil {
		var failed *url.Error
		if errors.As(err, &failed) {
			err = failed.Err // without the URL
		}
		return nil, repute.Invalid("keys", "cannot be read: "+err.Error(), keysHint)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, repute.Invalid("keys", "cannot be read: the server answers "+response.Status, keysHint)
	}
	return bounded(response.Body)
}

// bounded reads a statement or a list of keys. One that is too large is refused and not cut.
func bounded(in io.Reader) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(in, maxStatement+1))
	if err == nil && len(body) > maxStatement {
		err = repute.Invalid("file", "is larger than 1 MiB", "give a signed statement or a list of keys")
	}
	return body, err
}

// readStatement takes the statement out of an answer, where it is in one. The statement is read from the raw bytes of
// its member, so that no number loses a digit on the way.
func readStatement(in io.Reader) (signed statement.Signed, err error) {
	body, err := bounded(in)
	if err != nil {
		return signed, err
	}
	var answer outerAnswer
	if err := json.Unmarshal(body, &answer); err != nil {
		return signed, repute.Invalid("file", "is no JSON object: "+err.Error(),
			"give an answer asked with ?signed=1, or the object signed of one")
	}
	switch {
	case answer.Signed != nil:
		if err := signed.UnmarshalJSON(answer.Signed); err != nil {
			return signed, err
		}
		return signed, answer.compare(signed)
	case answer.Agent != nil:
		return signed, repute.Invalid("file", "the answer is not signed", "ask with signed=1")
	}
	return signed, signed.UnmarshalJSON(body)
}

// outerAnswer is what a reputation answer says beside its statement. Members are pointers: one that is missing is not
// compared.
type outerAnswer struct {
	Signed json.RawMessage `json:"signed"`
	Agent  *string         `json:"agent"`
	Status *string         `json:"status"`
	Score  *json.Number    `json:"score"`
	Low    *json.Number    `json:"low"`
	High   *json.Number    `json:"high"`
	Tier   *int            `json:"tier"`
	Guard  json.RawMessage `json:"guard"`
}

// compare returns an error where an answer differs from the statement that was signed with it: a reader of the answer
// would rely on values that nobody signed.
func (a outerAnswer) compare(s statement.Signed) error {
	differs := func(member string) error {
		return fmt.Errorf("not valid: %s of the answer is not what was signed", member)
	}
	if a.Agent != nil && !strings.EqualFold(*a.Agent, s.Agent.String()) {
		return differs("agent")
	}
	if a.Status != nil && *a.Status != string(s.Status) {
		return differs("status")
	}
	if a.Tier != nil && *a.Tier != s.Tier {
		return differs("tier")
	}
	if a.Guard != nil && (string(a.Guard) != "null") != s.Guarded {
		return differs("guard")
	}
	for _, m := range []struct {
		name   string
		given  *json.Number
		signed repute.Points
	}{{"score", a.Score, s.Score}, {"low", a.Low, s.Low}, {"high", a.High, s.High}} {
		if m.given == nil {
			continue
		}
		if n, err := m.given.Float64(); err != nil || repute.Points(math.Round(n*1000)) != m.signed {
			return differs(m.name)
		}
	}
	return nil
}

// statementReport is what verify-snapshot prints for a valid statement. Score, Low and High are points from -100 to
// 100, Confidence is 0 to 1. Block is the block that the score is of; it still held at HoldsBlock.
type statementReport struct {
	Valid      bool          `json:"valid"`
	Agent      string        `json:"agent"`
	Status     string        `json:"status"`
	Score      repute.Points `json:"score"`
	Low        repute.Points `json:"low"`
	High       repute.Points `json:"high"`
	Confidence float64       `json:"confidence"`
	Tier       int           `json:"tier"`
	Guarded    bool          `json:"guarded"`
	Block      uint64        `json:"block"`
	BlockHash  string        `json:"blockHash"`
	BlockTime  time.Time     `json:"blockTime"`
	HoldsBlock uint64        `json:"holdsBlock"`
	HoldsTime  time.Time     `json:"holdsTime"`
	Signer     string        `json:"signer"`
	IssuedAt   time.Time     `json:"issuedAt"`
	ExpiresAt  time.Time     `json:"expiresAt"`
}

// printStatement prints a valid statement as JSON, whatever the flags.
func printStatement(p *cli.Program, s statement.Signed) error {
	return p.PrintJSON(statementReport{Valid: true, Agent: s.Agent.String(), Status: string(s.Status), Score: s.Score,
		Low:        s.Low,
		High:       s.High,
		Confidence: float64(s.Confidence) / 1e6, Tier: s.Tier, Guarded: s.Guarded, Block: s.Block.Number,
		BlockHash: s.Block.Hash.Hex(), BlockTime: s.Block.Time, HoldsBlock: s.Holds.Number, HoldsTime: s.Holds.Time,
		Signer: s.Signer.Hex(), IssuedAt: s.IssuedAt, ExpiresAt: s.ExpiresAt})
}
