package jsonrpc

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/ethereum/go-ethereum/rpc"
)

// Fault is a kind of failure of an endpoint: what may cure it.
type Fault int

// Kinds of failure. FaultRange and FaultMalformed are taken for density: a
// shorter range is tried. The others leave the range alone.
const (
	// FaultRange: too many blocks, results, bytes or seconds, and every refusal in
	// words that nobody knows.
	FaultRange Fault = iota
	// FaultRate: too many requests in a time.
	FaultRate
	// FaultPruned: the endpoint does not keep what is that old.
	FaultPruned
	// FaultNoMethod: the endpoint does not offer the method, or not in this form.
	FaultNoMethod
	// FaultBehind: the endpoint does not have the block yet, or no longer.
	FaultBehind
	// FaultAuth: key, path or plan are refused.
	FaultAuth
	// FaultTransient: no connection, or a gateway without a node behind it.
	FaultTransient
	// FaultMalformed: an answer that is none.
	FaultMalformed
)

// String is the fault's label in metrics.
func (f Fault) String() string {
	return [...]string{"range", "rate", "pruned", "no_method", "behind", "auth", "transient", "malformed"}[f]
}

// Verdict is what a failed question to an endpoint means.
type Verdict struct {
	Fault Fault
	// Blocks is how many the endpoint says it would answer, 0 when it does not say.
	// It is what the words seem to mean: to lower a range by, never to trust.
	Blocks uint64
	// RetryAfter is how long the endpoint wants to be left alone, 0 when it does not say.
	RetryAfter time.Duration
}

// IsTransient tells failures that waiting or another endpoint may cure and a
// shorter range does not: no connection, rate limits, refusals, a node behind its
// own head. Everything else, timeouts and truncated answers included, is taken for
// a range too large.
func IsTransient(err error) bool {
	fault := Judge(err).Fault
	return fault != FaultRange && fault != FaultMalformed
}

// RangeHint is how many blocks the endpoint says it would answer, 0 when it does
// not say.
func RangeHint(err error) uint64 { return Judge(err).Blocks }

// Judged is an error that knows what it means for the request.
type Judged interface{ Verdict() Verdict }

// Judge reads a Source's error. The codes of JSON-RPC decide almost nothing:
// providers give each of them several meanings.
func Judge(err error) Verdict {
	var judged Judged
	var said rpc.Error
	var status rpc.HTTPError
	var network *net.OpError
	switch {
	case errors.As(err, &judged):
		return judged.Verdict()
	case errors.Is(err, context.DeadlineExceeded):
		return Verdict{Fault: FaultRange}
	case errors.As(err, &said):
		return judgeRefusal(said)
	case errors.As(err, &status):
		return judgeStatus(status.StatusCode, string(status.Body), 0)
	case errors.As(err, &network) && !network.Timeout(), errors.Is(err, context.Canceled),
		errors.Is(err, rpc.ErrClientQuit):
		return Verdict{Fault: FaultTransient}
	case errors.Is(err, ErrNoBlock):
		return Verdict{Fault: FaultBehind}
	}
	return Verdict{Fault: FaultRange}
}

// judgeRefusal reads an error of JSON-RPC.
func judgeRefusal(said rpc.Error) Verdict {
	w := words{message: said.Error()}
	var detailed rpc.DataError
	if errors.As(said, &detailed) {
		w.read(detailed.ErrorData())
	}
	var ours *Refusal
	if errors.As(said, &ours) {
		w.retry = max(w.retry, ours.Retry)
	}
	fault, known := w.fault()
	switch {
	case known:
	case ours != nil && ours.Status == http.StatusTooManyRequests:
		fault = FaultRate
	case said.ErrorCode() == codeNoMethod:
		fault = FaultNoMethod
	case said.ErrorCode() == codePruned:
		fault = FaultPruned
	}
	return w.verdict(fault)
}

// Codes that have one meaning.
const (
	codeNoMethod = -32601
	codePruned   = 4444
)

// judgeStatus reads a response that is no JSON-RPC.
func judgeStatus(code int, body string, retry time.Duration) Verdict {
	w := words{message: body, retry: retry}
	fault, known := w.fault()
	if known {
		return w.verdict(fault)
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
	return w.verdict(fault)
}

// ConnError is a request that got no HTTP answer.
type ConnError struct {
	Err     error
	Timeout bool
}

// Error is the cause's: the request's URL may hold a key.
func (e *ConnError) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *ConnError) Unwrap() error { return e.Err }

// Verdict implements Judged. A connection that cannot be made in time is no matter of the range.
func (e *ConnError) Verdict() Verdict {
	var network *net.OpError
	if e.Timeout && !(errors.As(e.Err, &network) && network.Op == "dial") {
		return Verdict{Fault: FaultRange}
	}
	return Verdict{Fault: FaultTransient}
}

// AnswerError is an answer that contradicts itself or the question.
type AnswerError struct{ What string }

// Error names the contradiction.
func (e *AnswerError) Error() string { return "answer does not hold together: " + e.What }

// Verdict implements Judged. Pages that are no JSON-RPC may still say what is wrong.
func (e *AnswerError) Verdict() Verdict {
	w := words{message: e.What}
	if fault, known := w.fault(); known && fault == FaultRate {
		return w.verdict(fault)
	}
	return Verdict{Fault: FaultMalformed}
}

// ErrNoBlock is returned for a block that the endpoint should have and answered null for.
var ErrNoBlock = errors.New("the node does not have the block")

// Verdict implements Judged.
func (e *StatusError) Verdict() Verdict { return judgeStatus(e.Code, e.Body, e.Retry) }

// Verdict implements Judged.
func (e *tooLargeError) Verdict() Verdict { return Verdict{Fault: FaultRange} }

// outageError is a refusal that means a range too large or an outage, given
// again: then it is an outage.
type outageError struct{ error }

// Outage makes a failure count as an outage of the endpoint, whatever its words.
func Outage(err error) error { return outageError{err} }

// Unwrap gives the refusal.
func (e outageError) Unwrap() error { return e.error }

// Verdict implements Judged.
func (e outageError) Verdict() Verdict { return Verdict{Fault: FaultTransient} }
