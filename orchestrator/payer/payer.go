package payer

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"repute"
	"repute/internal/httprule"
	"repute/internal/indexclient"
	"repute/orchestrator/journal"
	"repute/orchestrator/outbound"
	"repute/policy"
	"repute/store"
	"repute/store/walletdb"
	"repute/x402"
)

// Options configure a Payer.
type Options struct {
	Index string       // base URL of the index that is asked whom to trust
	HTTP  *http.Client // that reaches servers; http.DefaultClient when nil. Redirects are not followed
	// Keys returns the key that pays on a chain; repute.ErrNotFound where none does.
	Keys  func(chainID uint64) (x402.Signer, error)
	Coins []repute.Stablecoin // that are paid with
	Agent string              // slug of the identity that pays
	By    string              // the caller, for the records
	Task  string              // the orchestrator's task that is paid for; empty for none

	MaxCall, MaxHost, MaxDay repute.Micros // caps; nothing is paid where one is 0
	MaxTask                  repute.Micros // cap of the task; not checked without a task
	// MinScore is compared with the lower bound of the payee's score.
	MinScore float64
	// AllowUnknown pays accounts that belong to no known agent, and agents that nobody has rated.
	AllowUnknown bool
	Log          *slog.Logger // nil discards
}

// Payer pays. It is safe for concurrent use, by any number of processes on one database.
type Payer struct {
	db    *store.DB
	index index
	o     Options
}

// New returns a Payer. repute.ErrInvalid where the index is no URL.
func New(db *store.DB, o Options) (*Payer, error) {
	api, err := indexclient.New(o.Index, nil)
	if err != nil {
		return nil, err
	}
	o.HTTP = outbound.Direct(cmp.Or(o.HTTP, http.DefaultClient)) // a payment MUST NOT follow a redirect to another host
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Payer{db: db, index: index{api}, o: o}, nil
}

// Request is what is asked of a server.
type Request struct {
	Method string // GET where it is empty
	URL    string
	Type   string // of the body
	Body   []byte
	// Header is sent with the request, beside the type and the payment.
	Header http.Header
	// Call names the call of a run. At most one payment is signed for a call, at any time and by any
	// process. Empty outside runs: then a payment is repeated only until it expires.
	Call string
	// Still is asked before a payment is signed; an error refuses it. Nil asks nothing.
	Still func(ctx context.Context) error
	// Judge is asked before a payment that the caps and the payee's score allow is signed; an error refuses it.
	// Nil asks nothing.
	Judge func(ctx context.Context, p *policy.Payment) error
}

// purchaseID is the id of the only purchase of a call, of the form that payment-identifier takes.
func purchaseID(call string) string {
	sum := sha256.Sum256([]byte(call))
	return "buy_" + hex.EncodeToString(sum[:20])
}

// digest names a request.
func (r *Request) digest() string {
	return journal.Digest([]byte(r.Method), []byte(r.URL), []byte(r.Type), r.Body)
}

// Answer is what a server answered. Receipt is nil where nothing was paid.
type Answer struct {
	Status  int
	Header  http.Header
	Body    []byte
	Receipt *Receipt
	At      time.Time     // when the answered request was sent
	Elapsed time.Duration // until the whole answer had come, rounded up to milliseconds
}

// Receipt is a purchase that has ended with an answer. It is stored.
type Receipt struct {
	ID          string              `json:"id"`
	URL         string              `json:"url"`
	Method      string              `json:"method"`
	Status      int                 `json:"status"`
	Payee       *Payee              `json:"payee"` // null where nobody could be named
	Payer       string              `json:"payer"`
	PayTo       string              `json:"payTo"`
	Network     string              `json:"network"`
	Asset       string              `json:"asset"`
	Amount      string              `json:"amount"` // smallest units
	Dollars     string              `json:"dollars"`
	Transaction string              `json:"transaction"` // "" where the server names none
	Signed      *x402.SignedReceipt `json:"signed,omitempty"`
	Time        time.Time           `json:"time"`
}

// Refused is a payment that was not made, or that the server did not accept.
type Refused struct {
	Reason string
	Payee  *Payee // nil where nobody could be named
}

// Error gives the reason.
func (r *Refused) Error() string { return "not paid: " + r.Reason }

// Unwrap makes it a repute.ErrInvalid.
func (r *Refused) Unwrap() error { return repute.ErrInvalid }

// Do asks a server and pays for the answer where it demands that. A *Refused was not paid for;
// repute.ErrLimited would pass a cap; outbound.ErrPaymentOpen says that the answer of a payment is
// lost: the same request, asked again before the payment expires, is asked with the same payment.
func (p *Payer) Do(ctx context.Context, r Request) (Answer, error) {
	u, err := r.check()
	if err != nil {
		return Answer{}, err
	}
	if begun, err := p.begun(ctx, &r); err == nil {
		return p.finish(ctx, &r, begun)
	} else if !errors.Is(err, repute.ErrNotFound) {
		return Answer{}, err
	}
	first, demand, version, err := p.ask(ctx, &r)
	if err != nil || demand == nil {
		return first, err
	}
	purchase, err := p.buy(ctx, &r, u, demand, version)
	if err != nil {
		return Answer{}, err
	}
	return p.finish(ctx, &r, purchase)
}

// check completes a request and returns its address.
func (r *Request) check() (*url.URL, error) {
	r.Method = cmp.Or(r.Method, http.MethodGet)
	u, err := url.Parse(r.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, repute.Invalid("url", fmt.Sprintf("%.200q is no URL", r.URL), "http or https")
	}
	return u, nil
}

// serverOf returns the host that a URL names, with its port where that is not the usual one, as caps and rules know it.
// An agent writes the URL, and a host has many spellings: each would have a cap of its own, and pass a rule about
// another.
func serverOf(u *url.URL) string {
	host, port := httprule.Host(u.Hostname()), httprule.Port(u)
	if ip, err := netip.ParseAddr(host); err == nil {
		host = ip.Unmap().String()
	}
	if n, err := strconv.Atoi(port); err == nil {
		port = strconv.Itoa(n) // 0443 is dialed as 443
	}
	if port != httprule.Port(&url.URL{Scheme: u.Scheme}) {
		return net.JoinHostPort(host, port)
	}
	if strings.Contains(host, ":") { // an address of IPv6
		return "[" + host + "]"
	}
	return host
}

// ask sends a request without a payment. demand is nil where the server demands none.
func (p *Payer) ask(ctx context.Context,
	r *Request) (first Answer, demand *x402.PaymentRequired, version int, err error) {
	first, err = p.send(ctx, r, nil)
	if err != nil || first.Status != http.StatusPaymentRequired {
		return first, nil, 0, err
	}
	d, version, err := x402.DemandOf(first.Header, first.Body)
	if err != nil {
		return first, nil, 0, repute.Invalid("demand", "cannot be read: "+err.Error(),
			"a demand of x402 version 1 or 2")
	}
	return first, &d, version, nil
}

// begun returns the purchase of a request whose payment is signed already. repute.ErrNotFound when
// there is none.
func (p *Payer) begun(ctx context.Context, r *Request) (*walletdb.Purchase, error) {
	if r.Call == "" {
		known, err := walletdb.OpenPurchase(ctx, p.db, p.o.Agent, r.digest())
		return &known, err
	}
	known, err := walletdb.ReadPurchase(ctx, p.db, purchaseID(r.Call))
	return &known, err
}

// offer is a way to pay that this payer can use.
type offer struct {
	x402.Requirements
	chain  uint64
	worth  repute.Micros
	signer x402.Signer
}

// choose takes the cheapest way to pay for which there are a coin and a key.
func (p *Payer) choose(d *x402.PaymentRequired) (best *offer, err error) {
	for _, r := range d.Accepts {
		chain, err := x402.ChainOf(r.Network)
		if err != nil || r.Check() != nil {
			continue
		}
		coin, known := p.coin(chain, &r)
		if !known {
			continue
		}
		signer, err := p.o.Keys(chain)
		if errors.Is(err, repute.ErrNotFound) {
			continue
		} else if err != nil {
			return nil, err
		}
		o := &offer{r, chain, worth(coin, r.Amount.Big()), signer}
		if best == nil || o.worth < best.worth {
			best = o
		}
	}
	if best == nil {
		return nil, &Refused{Reason: p.lacking(d)}
	}
	return best, nil
}

// lacking says which tokens and keys would be needed to pay a demand that the payer cannot pay.
func (p *Payer) lacking(d *x402.PaymentRequired) string {
	const most = 3 // a server may demand any number of tokens
	var parts []string
	for _, r := range d.Accepts {
		chain, err := x402.ChainOf(r.Network)
		if err != nil || r.Check() != nil || len(parts) == most {
			continue
		}
		needed := "add a key for the chain to orchestrator.wallets[].identities"
		if _, known := p.coin(chain, &r); !known {
			needed = "list the token in chains[].stablecoins, and have a key for the chain in orchestrator.wallets[].identities"
		}
		part := fmt.Sprintf("the server demands token %s on chain %d: %s", r.Asset.Hex(), chain, needed)
		if !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	if len(parts) == 0 {
		return "the server demands no way to pay that is supported"
	}
	return strings.Join(parts, "; ")
}

// coin finds the listed coin that is demanded.
func (p *Payer) coin(chain uint64, r *x402.Requirements) (repute.Stablecoin, bool) {
	i := slices.IndexFunc(p.o.Coins,
		func(c repute.Stablecoin) bool { return c.ChainID == chain && c.Address == r.Asset })
	if i < 0 {
		return repute.Stablecoin{}, false
	}
	return p.o.Coins[i], true
}

// worth is what an amount counts for, rounded up: caps MUST NOT be passed by parts of a millionth.
func worth(c repute.Stablecoin, amount *big.Int) repute.Micros {
	w := c.Worth(amount)
	if w < repute.MaxPaid && amount.Sign() > 0 {
		unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(c.Decimals)), nil)
		exact := new(big.Int).Mul(amount, big.NewInt(1e6))
		if new(big.Int).Mul(big.NewInt(int64(w)), unit).Cmp(exact) < 0 {
			w++
		}
	}
	return w
}

// buy decides about a demand, signs the payment and stores the purchase. A refusal is stored too.
func (p *Payer) buy(ctx context.Context, r *Request, u *url.URL, d *x402.PaymentRequired, version int) (
	*walletdb.Purchase, error) {
	o, payee, err := p.examine(ctx, u, d)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	out := &walletdb.Purchase{ID: newID(), By: p.o.By, ChainID: o.chain, Agent: p.o.Agent, Request: r.digest(),
		Host: serverOf(u), Worth: o.worth, Task: p.o.Task, Call: r.Call,
		Expires: now.Add(time.Duration(o.MaxTimeoutSeconds) * time.Second)}
	if out.Decision, err = json.Marshal(decision{Payee: payee, MinScore: p.o.MinScore,
		Payment: o.Requirements}); err != nil {
		return nil, fmt.Errorf("decision: %w", err)
	}
	refused := p.judge(o, payee)
	if refused == nil && r.Judge != nil {
		if err := r.Judge(ctx, o.described(u, payee)); errors.Is(err, repute.ErrInvalid) {
			refused = &Refused{Reason: err.Error(), Payee: payee}
		} else if err != nil {
			return nil, err
		}
	}
	if refused != nil {
		out.Refused, out.Payment = refused.Reason, json.RawMessage("null")
		p.o.Log.Warn("payment refused", "host", out.Host, "reason", refused.Reason)
		_, err := walletdb.AddPurchase(ctx, p.db, *out, walletdb.Caps{})
		return nil, errors.Join(refused, err)
	}
	return p.sign(ctx, r, d, version, o, out)
}

// examine chooses a way to pay and finds who is paid.
func (p *Payer) examine(ctx context.Context, u *url.URL, d *x402.PaymentRequired) (*offer, *Payee, error) {
	o, err := p.choose(d)
	if err != nil {
		return nil, nil, err
	}
	payee, err := p.index.payee(ctx, o.chain, o.PayTo, httprule.Host(u.Hostname()))
	return o, payee, err
}

// described is an offer as the rules of a policy see it.
func (o *offer) described(u *url.URL, payee *Payee) *policy.Payment {
	out := &policy.Payment{Host: serverOf(u), Network: o.Network, Asset: o.Asset.Hex(), To: o.PayTo.Hex(),
		Amount: o.Amount.Big().String(), USD: float64(o.worth) / 1e6}
	if payee != nil {
		out.Payee, out.By, out.Status = payee.Agent, payee.By, payee.Status
		out.Score, out.Low, out.Tier = payee.Score, payee.Low, payee.Tier
	}
	return out
}

// Quote asks a server what it demands for an answer, and pays nothing. The payment is nil where it demands none.
// A *Refused says why it would not be made, beside the payment where the demand could be read.
func (p *Payer) Quote(ctx context.Context, r Request) (*policy.Payment, error) {
	u, err := r.check()
	if err != nil {
		return nil, err
	}
	_, demand, _, err := p.ask(ctx, &r)
	if err != nil || demand == nil {
		return nil, err
	}
	o, payee, err := p.examine(ctx, u, demand)
	if err != nil {
		return nil, err
	}
	if refused := p.judge(o, payee); refused != nil {
		return o.described(u, payee), refused
	}
	return o.described(u, payee), nil
}

// sign signs the payment of a purchase and stores it. What is returned is the stored purchase, which
// another process may have signed for the same call: only its payment MUST be sent.
func (p *Payer) sign(ctx context.Context, r *Request, d *x402.PaymentRequired, version int, o *offer,
	out *walletdb.Purchase) (*walletdb.Purchase, error) {
	if r.Call != "" {
		out.ID = purchaseID(r.Call)
	}
	if r.Still != nil {
		if err := r.Still(ctx); err != nil {
			return nil, err
		}
	}
	payment, err := x402.Pay(ctx, o.signer, d, version, o.Requirements, time.Now())
	if err != nil {
		return nil, err
	}
	if len(payment.Extensions) > 0 {
		if err := payment.Extensions.SetPaymentID(out.ID); err != nil {
			return nil, err
		}
	}
	if out.Payment, err = json.Marshal(payment); err != nil {
		return nil, fmt.Errorf("payment: %w", err)
	}
	stored, err := walletdb.AddPurchase(ctx, p.db, *out,
		walletdb.Caps{Host: p.o.MaxHost, Day: p.o.MaxDay, Task: p.o.MaxTask})
	return &stored, err
}

// decision is what a purchase follows from, as it is stored.
type decision struct {
	Payee    *Payee            `json:"payee"`
	MinScore float64           `json:"minScore"`
	Payment  x402.Requirements `json:"requirements"`
}

// judge says why a demand is not paid; nil where it is.
func (p *Payer) judge(o *offer, payee *Payee) *Refused {
	refuse := func(format string, args ...any) *Refused {
		return &Refused{Reason: fmt.Sprintf(format, args...), Payee: payee}
	}
	switch {
	case o.worth > p.o.MaxCall:
		return refuse("the price is %s dollars, at most %s are paid for a call", o.worth, p.o.MaxCall)
	case payee == nil && !p.o.AllowUnknown:
		return refuse("%s belongs to no agent that the index knows, by wallet, owner or proven domain", o.PayTo)
	case payee == nil:
		return nil
	case payee.Status == "unrated" && !p.o.AllowUnknown:
		return refuse("nobody has rated agent %s, which %s belongs to (by %s)", payee.Agent, o.PayTo, payee.By)
	case payee.Status != "unrated" && payee.Low < p.o.MinScore:
		return refuse("agent %s, which %s belongs to (by %s), has a score of at least %g, %g are needed", payee.Agent,
			o.PayTo, payee.By, payee.Low, p.o.MinScore)
	}
	return nil
}

// newID makes a name that sorts by time, of the form that payment-identifier takes.
func newID() string {
	var b [10]byte
	rand.Read(b[:]) // never fails
	return fmt.Sprintf("buy_%012x%s", time.Now().UnixMilli(), hex.EncodeToString(b[:]))
}
