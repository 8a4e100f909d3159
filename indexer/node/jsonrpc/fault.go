package jsonrpc

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/ethereum/go-ethereum/rpc"
)

// Fault is a kind of failure of an endpoint, by its remedy.
type Fault int

// Kinds of failure. FaultRange and FaultMalformed are taken for density: a
// shorter range is tried. The others leave the range alone.
const (
	// FaultRange: too many blocks, results, bytes or seconds, and every unrecognized refusal.
	FaultRange Fault = iota
	// FaultRate: too many requests in a time.
	FaultRate
	// FaultPruned: the endpoint no longer has data of that age.
	FaultPruned
	// FaultNoMethod: the endpoint does not offer the method, or not in this form.
	FaultNoMethod
	// FaultBehind: the endpoint does not have the block yet, or no longer.
	FaultBehind
	// FaultAuth: key, path or plan are refused.
	FaultAuth
	// FaultTransient: no connection, or a gateway without a node behind it.
	FaultTransient
	// FaultMalformed: the answer is no valid JSON-RPC.
	FaultMalformed
)

// String returns the label of the fault in metrics.
func (f Fault) String() string {
	return [...]string{"range", "rate", "pruned", "no_method", "behind", "auth", "transient", "malformed"}[f]
}

// Diagnosis is the classification of a failed request.
type Diagnosis struct {
	Fault Fault
	// Blocks is how many blocks the endpoint seems to accept, 0 when it names no number. It is a
	// guess from the text, used to shorten a range and never trusted.
	Blocks uint64
	// RetryAfter is the pause that the endpoint asks for, 0 when it asks for none.
	RetryAfter time.Duration
}

// IsTransient reports whether waiting or another endpoint may cure a failure and a shorter range
// does not: no connection, rate limits, refusals, a node behind its own head. Everything else,
// including timeouts and truncated answers, counts as a range too large.
func IsTransient(err error) bool {
	fault := Diagnose(err).Fault
	return fault != FaultRange && fault != FaultMalformed
}

// RangeHint returns how many blocks the endpoint seems to accept, 0 when it names no number.
func RangeHint(err error) uint64 { return Diagnose(err).Blocks }

// Diagnosed is implemented by errors that know their classification.
type Diagnosed interface{ Diagnosis() Diagnosis }

// Diagnose classifies an error of a Source. JSON-RPC codes decide almost nothing, because providers
// use each of them with several meanings.
func Diagnose(err error) Diagnosis {
	var diagnosed Diagnosed
	var refusal rpc.Error
	var status rpc.HTTPError
	var network *net.OpError
	switch {
	case errors.As(err, &diagnosed):
		return diagnosed.Diagnosis()
	case errors.Is(err, context.DeadlineExceeded):
		return Diagnosis{Fault: FaultRange}
	case errors.As(err, &refusal):
		return diagnoseRefusal(refusal)
	case errors.As(err, &status):
		return diagnoseStatus(status.StatusCode, string(status.Body), 0)
	case errors.As(err, &network) && !network.Timeout(), errors.Is(err, context.Canceled),
		errors.Is(err, rpc.ErrClientQuit):
		return Diagnosis{Fault: FaultTransient}
	case errors.Is(err, ErrNoBlock):
		return Diagnosis{Fault: FaultBehind}
	}
	return Diagnosis{Fault: FaultRange}
}

// diagnoseRefusal reads an error of JSON-RPC.
func diagnoseRefusal(refusal rpc.Error) Diagnosis {
	w := refusalText{message: refusal.Error()}
	var detailed rpc.DataError
	if errors.As(refusal, &detailed) {
		w.read(detailed.ErrorData())
	}
	var ours *Refusal
	if errors.As(refusal, &ours) {
		w.retry = max(w.retry, ours.Retry)
	}
	fault, known := w.fault()
	switch {
	case known:
	case ours != nil && ours.Status == http.StatusTooManyRequests:
		fault = FaultRate
	case refusal.ErrorCode() == codeNoMethod:
		fault = FaultNoMethod
	case refusal.ErrorCode() == codePruned:
		fault = FaultPruned
	}
	return w.diagnosis(fault)
}

// JSON-RPC codes that have only one meaning.
const (
	codeNoMethod = -32601
	codePruned   = 4444
)

// diagnoseStatus reads a response that is no JSON-RPC.
func diagnoseStatus(code int, body string, retry time.Duration) Diagnosis {
	w := refusalText{message: body, retry: retry}
	fault, known := w.fault()
	if known {
		return w.diagnosis(fault)
	}
	switch {
	case code == http.StatusTooManyRequests:
		fault = FaultRate
	case code == http.StatusBadGateway, code == http.StatusServiceUnavailable:
		fault = FaultTransient
	case code == http.StatusUnauthorized, code == http.StatusForbidden, code == http.StatusPaymentRequired,
		code == http.StatusNotFound, code == http.StatusMethodNotAllowed, code/100 == 3:
		fault = FaultAuth
	default:
		fault = FaultRange
	}
	return w.diagnosis(fault)
}

// ConnError is a request without an HTTP response.
type ConnError struct {
	Err     error
	Timeout bool
}

// Error is the text of the cause: the URL of the request may contain a key.
func (e *ConnError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *ConnError) Unwrap() error { return e.Err }

// Diagnosis implements Diagnosed. A connection that cannot be made in time is no matter of the range.
func (e *ConnError) Diagnosis() Diagnosis {
	var network *net.OpError
	if e.Timeout && !(errors.As(e.Err, &network) && network.Op == "dial") {
		return Diagnosis{Fault: FaultRange}
	}
	return Diagnosis{Fault: FaultTransient}
}

// AnswerError is an answer that contradicts itself or the request.
type AnswerError struct{ What string }

// Error names the contradiction.
func (e *AnswerError) Error() string { return "answer does not hold together: " + e.What }

// Diagnosis implements Diagnosed. A page that is no JSON-RPC may still name the reason.
func (e *AnswerError) Diagnosis() Diagnosis {
	w := refusalText{message: e.What}
	if fault, known := w.fault(); known && fault == FaultRate {
		return w.diagnosis(fault)
	}
	return Diagnosis{Fault: FaultMalformed}
}

// ErrNoBlock is returned when the endpoint answered null for a block that it should have.
var ErrNoBlock = errors.New("the node does not have the block")

// Diagnosis implements Diagnosed.
func (e *StatusError) Diagnosis() Diagnosis { return diagnoseStatus(e.Code, e.Body, e.Retry) }

// outageError is an ambiguous refusal, a range too large or an outage, that was repeated and
// therefore counts as an outage.
type outageError struct{ error }

// Outage makes a failure count as an outage of the endpoint, whatever its text.
func Outage(err error) error { return outageError{err} }

// Unwrap returns the refusal.
func (e outageError) Unwrap() error { return e.error }

// Diagnosis implements Diagnosed.
func (e outageError) Diagnosis() Diagnosis { return Diagnosis{Fault: FaultTransient} }
