package intentcall

import (
	"context"
	"fmt"
	"net/http"

	"repute"
	"repute/manifest/agentjson"
	"repute/orchestrator/outbound"
	"repute/orchestrator/payer"
)

// Sender sends a request: a payer.Payer, or Free.
type Sender interface {
	Do(ctx context.Context, r payer.Request) (payer.Answer, error)
}

// Limit returns the most that a call may cost where the caller allows so much; a nil bound pays nothing. A price that
// the manifest states is not exceeded. repute.ErrInvalid: the intent has a price and there is no bound, or a lower one.
func (p *Plan) Limit(most *repute.Micros) (repute.Micros, error) {
	least, highest, stated := p.stated()
	if most == nil {
		if p.priced() {
			return 0, repute.Invalid("max", fmt.Sprintf("is missing, and %.64s has a price%s", p.Intent.Name,
				p.priceText()),
				"the most that the call may cost, in dollars")
		}
		return 0, nil
	}
	if !stated {
		return *most, nil
	}
	if least > *most {
		return 0, repute.Invalid("max", fmt.Sprintf("the price is %s dollars, at most %s are paid for a call", least,
			*most),
			"at least the price")
	}
	return min(*most, highest), nil
}

// priced reports whether the manifest says that a call costs something.
func (p *Plan) priced() bool {
	if t := p.Terms.Price; t != nil && isMore(t.Amount) {
		return true
	}
	for _, w := range p.Terms.Ways {
		if isMore(w.Direct) || isMore(w.Ticket) {
			return true
		}
	}
	return false
}

// isMore reports whether an amount is given and not zero.
func isMore(d agentjson.Decimal) bool { return d != "" && d.Cmp("0") > 0 }

// priceText is the stated price for people; "" where the manifest has only those of ways to pay.
func (p *Plan) priceText() string {
	if t := p.Terms.Price; t != nil {
		return fmt.Sprintf(": %.40s %s %s", t.Amount, t.Currency, t.Model)
	}
	return ""
}

// stated returns the lowest and the highest price of one call that the manifest states in dollars. It states none
// where units are counted, or a price is in something else.
func (p *Plan) stated() (least, highest repute.Micros, ok bool) {
	ways := p.Terms.Ways
	if t := p.Terms.Price; t != nil && len(ways) == 0 { // only the service's answer tells how it is paid
		ways = []agentjson.Way{{Direct: t.Amount, Currency: t.Currency, Unit: t.Model}}
	}
	for _, w := range ways {
		if !isMore(w.Direct) {
			continue
		}
		dollars, err := repute.ParseDollars("price", string(w.Direct))
		if err != nil || w.Currency != "USD" && w.Currency != "USDC" || w.Unit == "per_unit" {
			return 0, 0, false
		}
		if !ok || dollars < least {
			least = dollars
		}
		highest, ok = max(highest, dollars), true
	}
	return least, highest, ok
}

// Call sends the request of the plan. A redirect is not followed: where nothing was paid it is an error.
func Call(ctx context.Context, s Sender, r payer.Request) (payer.Answer, error) {
	a, err := s.Do(ctx, r)
	if err == nil && a.Status >= 300 && a.Status < 400 && a.Receipt == nil {
		return a, repute.Invalid("endpoint", fmt.Sprintf("redirects with status %d", a.Status),
			"an endpoint that answers itself: no redirect is followed")
	}
	return a, err
}

// Free sends requests and pays nothing. A demand for payment is a repute.ErrInvalid.
type Free struct{ Client *http.Client }

// Do implements Sender.
func (f Free) Do(ctx context.Context, r payer.Request) (payer.Answer, error) {
	a, err := payer.Send(ctx, outbound.Direct(f.Client), &r)
	if err == nil && a.Status == http.StatusPaymentRequired {
		err = repute.Invalid("max", "is missing, and the service demands payment for an intent without a price",
			"the most that the call may cost, in dollars")
	}
	return a, err
}
