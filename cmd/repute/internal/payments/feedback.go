package payments

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"os"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/spf13/cobra"

	"repute"
	"repute/agent/signed"
	"repute/cmd/repute/internal/cli"
	"repute/cmd/repute/internal/config"
	"repute/contracts/bindings"
	"repute/orchestrator/transaction"
	"repute/orchestrator/wallet"
	"repute/store"
	"repute/x402"
)

// FeedbackCommand is repute feedback.
func FeedbackCommand(p *cli.Program) *cobra.Command {
	cmd := &cobra.Command{Use: "feedback", Short: "rate agents on the chain"}
	cmd.AddCommand(feedbackGiveCommand(p))
	return cmd
}

// feedbackFlags are those of repute feedback give. Empty flags take their value from the receipt where it has one.
type feedbackFlags struct {
	receipt, value, tag, tag2, as, agent, to, endpoint, out, uri string
}

// feedbackGiveCommand returns `repute feedback give`.
func feedbackGiveCommand(p *cli.Program) *cobra.Command {
	var f feedbackFlags
	cmd := &cobra.Command{
		Use:   "give --receipt FILE --value 90 --tag quality",
		Short: "rate the agent that was paid, with the payment as proof",
		Long: `Reads what repute pay --json printed, or a signed answer as curl -i prints it, writes the
feedback file with the proof of payment, and sends giveFeedback with the key that paid, from
orchestrator.wallets. The transaction is stored before it is sent: the same command again does
not rate twice, and another rating of the same payment is refused. The file is given as a data:
URI, or written to --out for you to publish at --uri.`,
		Example: "  repute pay https://agent.example/report --json > paid.json\n" +
			"  repute feedback give --receipt paid.json --value 90 --tag quality",
		Args: cobra.NoArgs,
		RunE: p.OnStore(func(ctx context.Context, c config.Config, db *store.DB, _ []string) error {
			return f.give(ctx, p, &c, db)
		}),
	}
	p.Flags.Database(cmd.Flags())
	set := cmd.Flags()
	set.StringVar(&f.receipt, "receipt", "", "file of repute pay --json or of a signed answer; - is standard input")
	set.StringVar(&f.value, "value", "", "the rating: a decimal number, such as 90 or 4.5")
	set.StringVar(&f.tag, "tag", "", "first tag, such as quality")
	set.StringVar(&f.tag2, "tag2", "", "second tag")
	set.StringVar(&f.as, "as", "",
		"slug of the identity in orchestrator.wallets that paid; may be left out where one has a key")
	set.StringVar(&f.agent, "agent", "", "agent that is rated; the one of the receipt")
	set.StringVar(&f.to, "to", "", "account that was paid; the receipt's, or the agent's wallet")
	set.StringVar(&f.endpoint, "endpoint", "", "endpoint that is rated; the receipt's URL")
	set.StringVar(&f.out, "out", "", "write the feedback file there; needs --uri")
	set.StringVar(&f.uri, "uri", "", "where the file of --out is published")
	p.JSONFlag(set, "print JSON")
	return cmd
}

// purchase is what a receipt says was paid. Nothing of it is checked: a receipt is a file of the caller. What is rated
// is checked against the wallet, and the index proves the payment on the chain before it counts.
type purchase struct {
	agent       string // id of the agent that was paid; empty where the receipt names none
	payer       string // address
	payTo       string // address; empty in a signed answer, which does not name it
	network     string // CAIP-2, such as eip155:8453
	transaction string // hash of the settlement
	endpoint    string // URL that was asked
	at          time.Time
}

// maxReceipt bounds the file, in bytes. An answer of an agent is part of the receipt.
const maxReceipt = 16 << 20

// read reads the receipt. The two kinds are told apart by their first bytes: an answer as curl -i prints it begins with
// HTTP/.
func (f *feedbackFlags) read(p *cli.Program) (b purchase, err error) {
	if f.receipt == "" {
		return b, repute.Invalid("receipt", "is missing", "a file of repute pay --json or of a signed answer")
	}
	raw, err := p.ReadInput("receipt", f.receipt, maxReceipt)
	if err != nil {
		return b, err
	}
	if bytes.HasPrefix(raw, []byte("HTTP/")) {
		return ofAnswer(raw)
	}
	return ofPay(raw)
}

// ofPay reads what repute pay --json prints. Members that are not known are ignored, so that receipts of later versions
// are read.
func ofPay(raw []byte) (b purchase, err error) {
	var a paidAnswer
	if err := json.Unmarshal(raw, &a); err != nil {
		return b, repute.Invalid("receipt", fmt.Sprintf("%.200s", err.Error()),
			"what repute pay --json prints, or curl -i")
	}
	r := a.Receipt
	if r == nil {
		return b, repute.Invalid("receipt", "says that nothing was paid", "the receipt of a payment")
	}
	b = purchase{payer: r.Payer, payTo: r.PayTo, network: r.Network, transaction: r.Transaction, endpoint: r.URL,
		at: r.Time}
	if r.Payee != nil {
		b.agent = r.Payee.Agent
	}
	return b, nil
}

// ofAnswer reads a signed answer with the header of its settlement. The signature is verified against the body, and its
// signer is not: whether it is the agent's key does not matter, since the chain must show the payment. The time is
// bounded, because a signed number may be any.
func ofAnswer(raw []byte) (b purchase, err error) {
	_, h, body, err := signed.ParseHTTP(bytes.NewReader(raw))
	if err != nil {
		return b, err
	}
	r, err := signed.ReadResponse(h)
	if err != nil {
		return b, err
	}
	if _, err := r.Verify(body); err != nil {
		return b, err
	}
	s, ok := x402.SettlementOf(h)
	if !ok || !s.Success {
		return b, repute.Invalid("receipt", "the answer has no settlement (header PAYMENT-RESPONSE)",
			"an answer that was paid for")
	}
	id := repute.AgentID{ChainID: r.Domain.ChainID, Registry: r.Domain.Registry, TokenID: r.AgentID}
	return purchase{agent: id.String(), payer: s.Payer, network: s.Network, transaction: s.Transaction,
		at: time.Unix(int64(min(r.Timestamp, 1<<40)), 0)}, nil
}

// rating is a purchase and its rating, checked. from is the payer and rater, to the account that was paid. value has
// decimals digits after the point.
type rating struct {
	id       repute.AgentID
	slug     string
	from, to common.Address
	chain    uint64 // of the payment
	tx       common.Hash
	at       time.Time
	value    *big.Int
	decimals uint8
	endpoint string
}

// rated checks a purchase against the wallet. An agent without a chain is one of the chain of the payment. The registry
// is that of the configuration; an agent of another one is refused, because the transaction would rate a different
// agent.
func (f *feedbackFlags) rated(ctx context.Context, w *wallet.Wallet, list []wallet.ChainConfig,
	b *purchase) (r rating, err error) {
	r.at, r.endpoint = b.at.UTC(), cmp.Or(f.endpoint, b.endpoint)
	if r.value, r.decimals, err = valueOf(f.value); err != nil {
		return r, err
	}
	if r.chain, err = x402.ChainOf(b.network); err != nil {
		return r, repute.Invalid("receipt", fmt.Sprintf("%.40q is no network", b.network), "eip155:CHAIN")
	}
	if r.tx = common.HexToHash(b.transaction); r.tx == (common.Hash{}) || len(b.transaction) != 66 {
		return r, repute.Invalid("receipt", "names no transaction", "the receipt of a settled payment")
	}
	agent := cmp.Or(f.agent, b.agent)
	ref, err := repute.ParseAgentRef(agent)
	if err != nil {
		return r, repute.Invalid("agent", fmt.Sprintf("%.80q is no agent, and the receipt names none", agent),
			repute.AgentIDForms)
	}
	r.id = repute.AgentID{ChainID: ref.ChainID, TokenID: ref.TokenID}
	if r.id.ChainID == 0 {
		r.id.ChainID = r.chain
	}
	registries, _, err := w.Contracts(r.id.ChainID)
	if err != nil {
		return r, err
	}
	if r.id.Registry = registries.Identity; ref.Registry != nil && *ref.Registry != r.id.Registry {
		return r, repute.Invalid("agent", "is of a registry that is not configured", r.id.Registry.Hex())
	}
	return r, f.accounts(ctx, w, list, b, &r)
}

// accounts finds who paid and who was paid. The rater MUST be the payer: another one's payment is no proof. Where
// neither flag nor receipt names the account, the agent's wallet is read from the chain.
func (f *feedbackFlags) accounts(ctx context.Context, w *wallet.Wallet, list []wallet.ChainConfig, b *purchase,
	r *rating) error {
	var err error
	choice := Buying{as: f.as}
	if r.slug, err = choice.identity(list); err != nil {
		return err
	}
	if r.from, err = w.Identity(r.id.ChainID, r.slug); err != nil {
		return err
	}
	if !strings.EqualFold(b.payer, r.from.Hex()) {
		return repute.Invalid("as", fmt.Sprintf("%s is %s, and %.60s paid", r.slug, r.from, b.payer),
			"the identity whose key paid")
	}
	if to := cmp.Or(f.to, b.payTo); to != "" {
		r.to, err = repute.ParseAddress("to", to)
		return err
	}
	raw, err := w.Read(ctx, r.id.ChainID, r.id.Registry,
		bindings.NewIdentityRegistry().PackGetAgentWallet(r.id.TokenID.ToBig()))
	if r.to = common.BytesToAddress(raw); err == nil && r.to == (common.Address{}) {
		return repute.Invalid("to", "is missing: the receipt does not name it, and the agent has no wallet",
			"the account that was paid")
	}
	return err
}

// valueOf reads a rating as the registry takes it. It is an integer with up to 18 decimals (ERC-8004, valueDecimals),
// and more than 30 digits are refused. Zeros at the end are kept: 90.0 is stored with one decimal. repute.ErrInvalid
// for a plus sign and for exponents.
func valueOf(text string) (*big.Int, uint8, error) {
	whole, fraction, _ := strings.Cut(strings.TrimPrefix(text, "-"), ".")
	digits := whole + fraction
	n, ok := new(big.Int).SetString(digits, 10)
	if !ok || whole == "" || len(digits) > 30 || len(fraction) > repute.MaxDecimals ||
		strings.Trim(digits, "0123456789") != "" {
		return nil, 0, repute.Invalid("value", fmt.Sprintf("%.40q is no rating", text),
			"a decimal number, such as 90 or 4.5")
	}
	if strings.HasPrefix(text, "-") {
		n.Neg(n)
	}
	return n, uint8(len(fraction)), nil
}

// feedbackDocument is the feedback file of ERC-8004. Nothing in it differs when it is written again. Its members are in
// the order in which they are hashed. Numbers are raw JSON: they may be larger than a float64 holds.
type feedbackDocument struct {
	AgentRegistry string          `json:"agentRegistry"`
	AgentID       json.RawMessage `json:"agentId"`
	ClientAddress string          `json:"clientAddress"`
	CreatedAt     string          `json:"createdAt"`
	Value         json.RawMessage `json:"value"`
	Decimals      uint8           `json:"valueDecimals"`
	Tag1          string          `json:"tag1,omitempty"`
	Tag2          string          `json:"tag2,omitempty"`
	Endpoint      string          `json:"endpoint,omitempty"`
	Proof         paymentProof    `json:"proofOfPayment"`
}

// paymentProof is the standard's proofOfPayment. The chain is that of the payment, which may be another one than that
// of the agent; ChainID is decimal text.
type paymentProof struct {
	From    string `json:"fromAddress"`
	To      string `json:"toAddress"`
	ChainID string `json:"chainId"`
	TxHash  string `json:"txHash"`
}

// document is the feedback file of a rating. The bytes are hashed into the transaction, and MUST be the same when the
// command is repeated: the time is therefore that of the purchase.
func (f *feedbackFlags) document(r *rating) ([]byte, error) {
	return json.Marshal(feedbackDocument{AgentRegistry: fmt.Sprintf("eip155:%d:%s", r.id.ChainID, r.id.Registry.Hex()),
		AgentID:       json.RawMessage(r.id.TokenID.Dec()),
		ClientAddress: fmt.Sprintf("eip155:%d:%s", r.id.ChainID, r.from.Hex()),
		CreatedAt:     r.at.Format(time.RFC3339), Value: json.RawMessage(r.value.String()), Decimals: r.decimals,
		Tag1: f.tag, Tag2: f.tag2, Endpoint: r.endpoint,
		Proof: paymentProof{From: r.from.Hex(), To: r.to.Hex(), ChainID: fmt.Sprint(r.chain), TxHash: r.tx.Hex()}})
}

// publish gives the file a URI, and writes it to --out. The file of --out is written before the transaction is sent,
// and is overwritten when the command is repeated, with the same bytes.
func (f *feedbackFlags) publish(document []byte) (string, error) {
	if (f.out == "") != (f.uri == "") {
		return "", repute.Invalid("out", "and --uri belong together", "both, or none for a data: URI")
	}
	if f.out == "" {
		return "data:application/json;base64," + base64.StdEncoding.EncodeToString(document), nil
	}
	if err := os.WriteFile(f.out, document, 0o644); err != nil {
		return "", repute.Invalid("out", err.Error(), "a file that can be written")
	}
	return f.uri, nil
}

// given is what repute feedback give prints.
type given struct {
	// Agent is the full id of the rated agent, and Client the address that rated it, which is the payer.
	Agent  string `json:"agent"`
	Client string `json:"client"`
	// Value is the rating as it was typed, and Transaction that of the rating.
	Value       string `json:"value"`
	Transaction string `json:"transaction"`
	Payment     string `json:"payment"` // transaction of the payment
	// URI is that of the feedback file, whose hash the transaction has.
	URI string `json:"uri"`
}

// give rates. The intent's name is of the payment and the agent: a payment proves one rating. Another rating of the
// same payment has the same name with other data, which the wallet refuses as repute.ErrConflict.
//
// A transaction that the registry reverted is stored as sent: the same command reports it again and sends no other one.
func (f *feedbackFlags) give(ctx context.Context, p *cli.Program, c *config.Config, db *store.DB) error {
	b, err := f.read(p)
	if err != nil {
		return err
	}
	w, list, err := openWallet(p, c, db)
	if err != nil {
		return err
	}
	defer w.Close()
	r, err := f.rated(ctx, w, list, &b)
	if err != nil {
		return err
	}
	document, err := f.document(&r)
	if err != nil {
		return fmt.Errorf("feedback file: %w", err)
	}
	uri, err := f.publish(document)
	if err != nil {
		return err
	}
	registries, _, err := w.Contracts(r.id.ChainID)
	if err != nil {
		return err
	}
	data := bindings.NewReputationRegistry().PackGiveFeedback(r.id.TokenID.ToBig(), r.value, r.decimals, f.tag, f.tag2,
		r.endpoint,
		uri, crypto.Keccak256Hash(document))
	name := crypto.Keccak256Hash(fmt.Appendf(nil, "%s %d %s", r.id, r.chain, r.tx))
	sent, err := w.Send(ctx, transaction.Intent{ID: "feedback-" + name.Hex(), Origin: transaction.Origin{Agent: r.slug},
		Tx: transaction.Tx{ChainID: r.id.ChainID, Target: registries.Reputation, Data: data,
			Purpose: "feedback for agent " + r.id.Short()}})
	switch {
	case err != nil:
		return err
	case !sent.OK:
		return repute.Invalid("agent", "the registry refused the feedback in transaction "+sent.Hash.Hex(),
			"an agent that is registered and not the rater's own")
	}
	out := given{r.id.String(), r.from.Hex(), f.value, sent.Hash.Hex(), r.tx.Hex(), uri}
	return p.Show(out, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "rated %s with %s in transaction %s; proof of payment %s\n", out.Agent, out.Value,
			out.Transaction, out.Payment)
		return err
	})
}
