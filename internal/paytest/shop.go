package paytest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"repute/x402"
)

// Shop is a server that echoes bodies for money: it verifies a payment, settles it, and runs its
// handler once for each payment.
type Shop struct {
	Facilitator x402.Facilitator
	Accepts     []x402.Requirements
	Signer      x402.Signer // of offers and receipts; nil for none

	mu     sync.Mutex
	lose   int // how many answers to payments are still to be cut off
	runs   int
	served map[string]string // answers by payment
}

// Runs is how often the handler ran.
func (s *Shop) Runs() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runs
}

// Lose makes the next n answers to payments be cut off after the work is done.
func (s *Shop) Lose(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lose = n
}

// demand is what the shop asks for.
func (s *Shop) demand(r *http.Request) (x402.Demand, error) {
	d := x402.Demand{Resource: x402.Resource{URL: "http://" + r.Host + r.URL.Path, Description: "echo",
		MimeType: "application/json"}, Accepts: s.Accepts}
	if err := d.Extensions.OfferPaymentID(false); err != nil {
		return d, err
	}
	if err := d.Extensions.AddDiscovery(x402.Discovery{Method: http.MethodPost}); err != nil || s.Signer == nil {
		return d, err
	}
	return d, d.AddOffers(r.Context(), s.Signer, uint64(time.Now().Add(time.Minute).Unix()))
}

// ServeHTTP implements http.Handler.
func (s *Shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d, err := s.demand(r)
	if err == nil {
		err = s.serve(w, r, &d)
	}
	var refused *x402.Refusal
	switch {
	case errors.Is(err, x402.ErrNoPayment):
		err = d.Write(w)
	case errors.As(err, &refused):
		d.Error = string(refused.Reason)
		err = d.Write(w)
	case errors.Is(err, x402.ErrUnknownEnd) || errors.Is(err, x402.ErrUnavailable):
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// serve answers a paid request.
func (s *Shop) serve(w http.ResponseWriter, r *http.Request, d *x402.Demand) error {
	p, err := x402.PaymentOf(r.Header)
	if err != nil {
		return err
	}
	own, err := d.Match(&p)
	if err != nil {
		return err
	}
	settled, err := s.Facilitator.Settle(r.Context(), p, own)
	if err != nil {
		return err
	}
	if !settled.Success {
		return &x402.Refusal{Reason: settled.ErrorReason, Message: settled.ErrorText}
	}
	if s.Signer != nil {
		if err := settled.AddReceipt(r.Context(), s.Signer,
			x402.Receipt{Network: own.Network, ResourceURL: d.Resource.URL,
				Payer: settled.Payer, IssuedAt: uint64(time.Now().Unix()),
				Transaction: settled.Transaction}); err != nil {
			return err
		}
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		return err
	}
	if err := x402.WriteSettlement(w.Header(), p.Version, settled); err != nil {
		return err
	}
	text, lost := s.run(settled.Transaction, body)
	if lost {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json")
	_, err = io.WriteString(w, text)
	return err
}

// run runs the handler once for a payment. lost tells that the answer is to be cut off.
func (s *Shop) run(payment string, body []byte) (text string, lost bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.served == nil {
		s.served = map[string]string{}
	}
	if _, known := s.served[payment]; !known {
		s.runs++
		quoted, _ := json.Marshal(string(body)) // a string always is JSON
		s.served[payment] = fmt.Sprintf(`{"echo":%s,"run":%d}`, quoted, s.runs)
	}
	if lost = s.lose > 0; lost {
		s.lose--
	}
	return s.served[payment], lost
}
