package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"repute"
	"repute/x402"
)

// Problem is an answer that is no success (appendix B). Its texts are shown to clients, so that they
// MUST NOT contain what a handler, a facilitator or a node wrote.
type Problem struct {
	Status  int           `json:"status"`
	Code    string        `json:"code"` // for programs: the specification's member error
	Message string        `json:"message"`
	Hint    string        `json:"hint,omitempty"`
	Retry   time.Duration `json:"-"` // pause before the same request may be sent again; 0: it does not help
	// Demand is what is to be paid, of 402 and 412.
	Demand *x402.Demand `json:"-"`
	// Cause is what happened, for the log.
	Cause error `json:"-"`
}

// Error returns the message, and the cause for the log.
func (p *Problem) Error() string {
	if p.Cause != nil {
		return p.Message + ": " + p.Cause.Error()
	}
	return p.Message
}

// Unwrap returns the cause.
func (p *Problem) Unwrap() error { return p.Cause }

// problem is an answer that tells a client what is wrong with its request.
func problem(status int, code, message string) *Problem {
	return &Problem{Status: status, Code: code, Message: message}
}

// internal is a fault on the agent's side.
func internal(message string, cause error) *Problem {
	return &Problem{Status: http.StatusInternalServerError, Code: "internal", Message: message, Cause: cause}
}

// sendAgain is the answer where a payment's end is open.
func sendAgain(cause error) *Problem {
	return &Problem{Status: http.StatusServiceUnavailable, Code: "payment_pending",
		Message: "the end of the payment is not known yet: send the same payment again, never another one",
		Retry:   2 * time.Second, Cause: cause}
}

// problemOf converts an error of a known kind; others are internal.
func problemOf(err error) *Problem {
	var p *Problem
	if errors.As(err, &p) {
		return p
	}
	var input *repute.InputError
	switch {
	case errors.As(err, &input):
		return &Problem{Status: http.StatusBadRequest, Code: "invalid", Message: input.Field + ": " + input.Reason,
			Hint: input.Hint, Cause: err}
	case errors.Is(err, repute.ErrInvalid):
		return &Problem{Status: http.StatusBadRequest, Code: "invalid", Message: "the request is malformed", Cause: err}
	case errors.Is(err, repute.ErrConflict):
		return &Problem{Status: http.StatusConflict, Code: "conflict",
			Message: "the payment, or its name, was used for another request", Hint: "sign another payment", Cause: err}
	case errors.Is(err, x402.ErrUnknownEnd):
		return sendAgain(err)
	case errors.Is(err, x402.ErrUnavailable), errors.Is(err, repute.ErrUnavailable), errors.Is(err, repute.ErrFenced),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return &Problem{Status: http.StatusServiceUnavailable, Code: "unavailable",
			Message: "the request cannot be answered now: send it again, with the same payment if there is one",
			Retry:   2 * time.Second, Cause: err}
	}
	return internal("something broke on our side; it has been logged", err)
}

// badInput is for input that the capability's schema refuses.
func badInput(err error) *Problem {
	text := err.Error()
	if !strings.HasPrefix(text, "input") { // the field of a wrong value begins with it
		text = "input: " + text
	}
	return &Problem{Status: http.StatusBadRequest, Code: "invalid",
		Message: fmt.Sprintf("%.500s", text), Hint: "see the capability's inputSchema"}
}
