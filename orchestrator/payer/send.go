package payer

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"repute"
	"repute/orchestrator/outbound"
	"repute/store/walletdb"
	"repute/x402"
)

// maxBody bounds an answer of a server, in bytes.
const maxBody = 10 << 20

// A payment whose answer is lost is sent again, after pauses that double.
const (
	attempts   = 4
	firstPause = 500 * time.Millisecond
)

// send makes one request, with a payment where there is one.
func (p *Payer) send(ctx context.Context, r *Request, payment *x402.Payment) (Answer, error) {
	if payment == nil {
		return Send(ctx, p.o.HTTP, r)
	}
	text, err := x402.Encode(payment)
	if err != nil {
		return Answer{}, err
	}
	name := x402.HeaderPayment
	if payment.Version == x402.V1 {
		name = x402.HeaderPaymentV1
	}
	paid := *r
	paid.Header = http.Header{}
	for name, values := range r.Header {
		paid.Header[http.CanonicalHeaderKey(name)] = values
	}
	paid.Header.Set(name, text) // whatever the request says of it
	return Send(ctx, p.o.HTTP, &paid)
}

// Send makes one request as it is, and reads the whole answer, of at most 10 MiB. repute.ErrUnavailable where no whole
// answer is received. The errors quote no address, which may hold a secret.
func Send(ctx context.Context, client *http.Client, r *Request) (a Answer, err error) {
	req, err := http.NewRequestWithContext(ctx, r.Method, r.URL, bytes.NewReader(r.Body))
	if err != nil {
		return a, repute.Invalid("url", err.Error(), "http or https")
	}
	for name, values := range r.Header {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	if r.Type != "" {
		req.Header.Set("Content-Type", r.Type)
	}
	began := time.Now()
	res, err := client.Do(req)
	if err != nil {
		return a, fmt.Errorf("%w: %w", repute.ErrUnavailable, outbound.Reason(req, err))
	}
	defer res.Body.Close()
	a = Answer{Status: res.StatusCode, Header: res.Header, At: began.UTC()}
	if a.Body, err = io.ReadAll(io.LimitReader(res.Body, maxBody+1)); err != nil {
		return a, fmt.Errorf("%s: %w: %w", req.URL.Host, repute.ErrUnavailable, err)
	}
	if len(a.Body) > maxBody {
		return a, fmt.Errorf("%s: the answer has more than %d bytes: %w", req.URL.Host, maxBody, repute.ErrLimited)
	}
	a.Elapsed = (time.Since(began) + time.Millisecond - 1).Truncate(time.Millisecond)
	return a, nil
}

// finish sends the payment of a stored purchase until it is answered, and stores the receipt.
func (p *Payer) finish(ctx context.Context, r *Request, b *walletdb.Purchase) (a Answer, err error) {
	if b.Error != "" { // another payment of the same call could be the second one
		return a, &Refused{Reason: b.Error}
	}
	var payment x402.Payment
	if err := json.Unmarshal(b.Payment, &payment); err != nil {
		return a, fmt.Errorf("stored payment %s: %w", b.ID, err)
	}
	pause := firstPause
	for i := range attempts {
		a, err = p.send(ctx, r, &payment)
		if err == nil && !open(&a) {
			return p.ended(ctx, r, b, &payment, a)
		}
		if err == nil {
			err = fmt.Errorf("%s answers %d: %w", b.Host, a.Status, repute.ErrUnavailable)
		}
		if i == attempts-1 {
			break
		}
		p.o.Log.Warn("paid request will be repeated with the same payment", "id", b.ID, "host", b.Host, "error", err)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return a, fmt.Errorf("%w: %w", outbound.ErrPaymentOpen, ctx.Err())
		}
		pause *= 2
	}
	return a, fmt.Errorf("purchase %s: %w: %w", b.ID, outbound.ErrPaymentOpen, err)
}

// open reports whether an answer leaves the end of its payment open: the server failed, or is not
// done with it.
func open(a *Answer) bool {
	if s, ok := x402.SettlementOf(a.Header); ok && s.Success {
		return false
	}
	return a.Status >= 500 || a.Status == http.StatusTooManyRequests || a.Status == http.StatusConflict
}

// ended stores what became of a purchase. An answer that refuses the payment is a *Refused.
func (p *Payer) ended(ctx context.Context, r *Request, b *walletdb.Purchase, payment *x402.Payment, a Answer) (Answer,
	error) {
	s, settled := x402.SettlementOf(a.Header)
	if refusedBy(&a, &s, settled) {
		reason := fmt.Sprintf("%s does not accept the payment (status %d, %.100q)", b.Host, a.Status,
			whyRefused(&a, &s))
		if len(b.Receipt) > 0 && string(b.Receipt) != "null" {
			reason = fmt.Sprintf("%s was paid, and does not give its answer again (status %d)", b.Host, a.Status)
		}
		err := walletdb.EndPurchase(ctx, p.db, b.ID, nil, reason)
		if err != nil {
			return a, err
		}
		return a, &Refused{Reason: reason}
	}
	var d decision
	if err := json.Unmarshal(b.Decision, &d); err != nil {
		return a, fmt.Errorf("stored decision %s: %w", b.ID, err)
	}
	a.Receipt = &Receipt{ID: b.ID, URL: r.URL, Method: r.Method, Status: a.Status, Payee: d.Payee,
		Payer: payment.Payload.Payer().Hex(), PayTo: d.Payment.PayTo.Hex(), Network: d.Payment.Network,
		Asset: d.Payment.Asset.Hex(), Amount: d.Payment.Amount.String(), Dollars: b.Worth.String(),
		Transaction: s.Transaction, Time: time.Now().UTC()}
	if signed, ok, err := s.Receipt(); ok && err == nil {
		a.Receipt.Signed = &signed
	}
	text, err := json.Marshal(a.Receipt)
	if err != nil {
		return a, fmt.Errorf("receipt: %w", err)
	}
	return a, walletdb.EndPurchase(ctx, p.db, b.ID, text, "")
}

// whyRefused is the server's own reason: that of its settlement, or of its new demand.
func whyRefused(a *Answer, s *x402.Settlement) string {
	if s.ErrorReason != "" {
		return string(s.ErrorReason)
	}
	demand, _, err := x402.DemandOf(a.Header, a.Body)
	if err != nil {
		return ""
	}
	return demand.Error
}

// refusedBy reports whether a server refused a payment.
func refusedBy(a *Answer, s *x402.Settlement, settled bool) bool {
	if settled {
		return !s.Success
	}
	return a.Status == http.StatusPaymentRequired || a.Status == http.StatusPreconditionFailed ||
		a.Status == http.StatusBadRequest
}
