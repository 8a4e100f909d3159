package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/url"
	"os"
	"path/filepath"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"go.yaml.in/yaml/v4"

	"repute"
	"repute/api/wire"
	"repute/contracts/bindings/fixtures"
	"repute/devnet"
	"repute/orchestrator/agents"
	"repute/orchestrator/control"
	"repute/policy"
)

// seller is the agent that sells forecasts: the product's own runtime serves it.
const seller = "seller"

// What a forecast costs, in the units of the demo's token and in dollars.
const (
	forecastUnits = 10_000
	forecastPrice = "0.01"
)

// forecast is the seller's capability.
const forecast = "forecast"

// coin is the demo's token, which is paid by EIP-3009 as USDC is.
type coin struct {
	at      common.Address
	settler devnet.Account // sends settlements and pays their gas
}

// Name, symbol and version of the token.
const (
	coinName    = "USDC"
	coinVersion = "2"
)

// deployCoin deploys the token.
func (c *crew) deployCoin(b *devnet.Batch) {
	b.Send(c.owner, nil, append(common.FromHex(fixtures.AuthorizedTokenMetaData.Bin),
		fixtures.NewAuthorizedToken().PackConstructor(coinName, coinVersion)...))
}

// mint gives the reporter a dollar to pay for what it measures.
func (c *crew) mint(b *devnet.Batch) {
	b.Send(c.owner, &c.coin.at, fixtures.NewAuthorizedToken().PackMint(c.member(agents.Reporter).wallet.Address,
		big.NewInt(100*forecastUnits)))
}

// stablecoins is the token as the product is told of it.
func (c *crew) stablecoins() []string {
	return []string{fmt.Sprintf("%s %s 6", c.coin.at.Hex(), coinName)}
}

// balance is what a member's wallet has of the token. It is read from the chain and not from the index, which it is
// compared with.
func (d *demo) balance(ctx context.Context, slug string) (int64, error) {
	out, err := d.chain.Client().CallContract(ctx, ethereum.CallMsg{To: &d.crew.coin.at,
		Data: fixtures.NewAuthorizedToken().PackBalanceOf(d.crew.member(slug).wallet.Address)}, nil)
	return new(big.Int).SetBytes(out).Int64(), err
}

// forecastURL is where forecasts are sold.
func forecastURL(address string) string { return "http://" + address + "/capability/" + forecast }

// writeSeller writes the seller's agent.yaml and returns its path.
func (d *demo) writeSeller() (string, error) {
	chain, m := d.chain.Chain(), d.crew.member(seller)
	key := filepath.Join(d.dir, "seller-wallet")
	text, err := yaml.Marshal(map[string]any{
		"agent": map[string]any{"id": m.identity(chain).String(), "key": "file:" + key, "rpc": d.chain.RPCURL(),
			"reputation": chain.Reputation.Hex()},
		"profile":   map[string]any{"name": m.title(), "description": "Sells forecasts.", "url": "http://" + d.selling},
		"listen":    d.selling,
		"log_level": "error",
		"payments": map[string]any{"settler": settlerSlug, "tokens": []any{map[string]any{"network": fmt.Sprintf("eip155:%d", chain.ID),
			"asset": d.crew.coin.at.Hex(), "symbol": coinName, "decimals": 6, "name": coinName,
			"version": coinVersion}}},
		"capabilities": []any{map[string]any{"name": forecast, "version": "1.0.0", "description": "weather of a place",
			"inputSchema":  map[string]any{"type": "object", "required": []string{"place"}},
			"outputSchema": map[string]any{"type": "object", "required": []string{"wind"}},
			"pricing":      map[string]any{"amount": forecastPrice, "currency": coinName},
			"handler":      map[string]any{"exec": []string{"/bin/echo", `{"wind":"4 Bft","rain":false}`}},
			"repeatable":   true}},
	})
	if err != nil {
		return "", err
	}
	file := filepath.Join(d.dir, "agent.yaml")
	return file, errors.Join(os.WriteFile(key, []byte(m.wallet.PrivateKey()), 0o600), os.WriteFile(file, text, 0o600))
}

// settlerSlug names the key that settles payments in the configuration.
const settlerSlug = "settler"

// sold is what became of the task that buys a forecast. Fields after Seconds are empty where the task did not complete,
// which the comparison reports.
type sold struct {
	taskShown
	Dollars     string          `json:"dollars"`     // that were paid
	Transaction string          `json:"transaction"` // of the payment
	Answer      string          `json:"answer"`
	Payment     string          `json:"payment"`  // state of the rating's payment in the index
	USD         string          `json:"usd"`      // that the index counts for it
	Received    int64           `json:"received"` // units that the seller's wallet has on the chain
	Report      agents.Reported `json:"-"`
}

// buy has the reporter buy a forecast of the seller, pay for it, and rate the seller with the payment as proof. The
// seller must be rated before, because the reporter pays nobody that the index does not trust.
func (d *demo) buy(ctx context.Context) (s sold, err error) {
	if err := d.awaitRated(ctx, d.crew.member(seller).id); err != nil {
		return s, err
	}
	err = d.await(ctx, "the seller's runtime answers", func() (bool, error) {
		return getJSON(ctx, "http://"+d.selling+"/health/ready", nil) == nil, nil
	})
	if err != nil {
		return s, err
	}
	least := float64(demoLeast)
	request := control.TaskRequest{Goal: "Buy a forecast and rate its seller", Coordinator: agents.Reporter,
		Input: encoded(agents.Report{Agent: d.crew.member(seller).ref(d.chain.Chain().ID),
			Endpoint: forecastURL(d.selling),
			Pay:      true, Body: json.RawMessage(`{"place":"harbor"}`)})}
	request.Threshold = policy.Threshold{RequireIdentity: true, MinReputation: &least}
	s.taskShown, err = d.task(ctx, request)
	if err != nil || s.Status != repute.TaskCompleted {
		return s, err
	}
	return s, d.followSale(ctx, &s)
}

// followSale reads what the run came to, waits until the index has proven the payment of the rating,
// and reads the seller's balance from the chain.
func (d *demo) followSale(ctx context.Context, s *sold) error {
	var run control.Run
	if err := d.call(ctx, demoAsk, "GET", "/v1/runs/"+s.Run, nil, &run); err != nil {
		return err
	}
	if len(run.Steps) != 1 || json.Unmarshal(run.Steps[0].Result, &s.Report) != nil || s.Report.Payment == nil {
		return nil // seen by the comparison
	}
	s.Dollars, s.Transaction, s.Answer = s.Report.Payment.Dollars, s.Report.Payment.Transaction, s.Report.Answer
	query := url.Values{"client": {d.crew.member(agents.Reporter).wallet.Address.Hex()}, "tag1": {"successRate"}}
	path := fmt.Sprintf("%s/agents/%s/feedback?%s", d.base, d.crew.member(seller).ref(d.chain.Chain().ID),
		query.Encode())
	err := d.await(ctx, "the index shows the rating as paid", func() (bool, error) {
		var list wire.FeedbackList
		if err := getJSON(ctx, path, &list); err != nil || len(list.Items) == 0 || list.Items[0].Payment == nil {
			return false, err
		}
		p := list.Items[0].Payment
		if s.Payment = p.State; p.USD != nil {
			s.USD = string(*p.USD)
		}
		return p.State == string(repute.PaymentVerified) || p.State == string(repute.PaymentRefused), nil
	})
	if err != nil {
		return err
	}
	s.Received, err = d.balance(ctx, seller)
	return err
}

// sold checks what became of the sale: the chain, the orchestrator and the index say the same.
func (v *verification) sold(s sold) {
	v.compare("task that buys a forecast", s.ID, s.Status, repute.TaskCompleted)
	v.compare("dollars paid for it", s.ID, s.Dollars, forecastPrice)
	v.compare("units that the seller has", s.Transaction, s.Received, forecastUnits)
	v.compare("answer that was paid for", s.ID, s.Answer, `{"wind":"4 Bft","rain":false}`)
	v.compare("payment that proves the rating", s.Transaction, s.Payment, repute.PaymentVerified)
	v.compare("dollars that the rating counts with", s.Transaction, s.USD, forecastPrice)
}

// print writes the sale for a person.
func (s sold) print(w io.Writer, base string) {
	fmt.Fprintf(w, "A task that buys a forecast from an agent runtime: %s in %.0f s.\n", s.Status, s.Seconds)
	if s.Dollars != "" {
		fmt.Fprintf(w,
			"  paid %s dollars by x402 in %s for %s\n  rated the seller; the index shows the payment as %s\n",
			s.Dollars, s.Transaction, s.Answer, s.Payment)
	}
	fmt.Fprintf(w, "  %s/v1/runs/%s\n\n", base, s.Run)
}
