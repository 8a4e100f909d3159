package node

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

// Judge reads a Source's error. The codes of JSON-RPC decide almost nothing:
// providers give each of them several meanings.
func Judge(err error) Verdict {
	var judged interface{ verdict() Verdict }
	var said rpc.Error
	var status rpc.HTTPError
	var network *net.OpError
	switch {
	case errors.As(err, &judged):
		return judged.verdict()
	case errors.Is(err, context.DeadlineExceeded):
		return Verdict{Fault: FaultRange}
	case errors.As(err, &said):
		return judgeRefusal(said)
	case errors.As(err, &status):
		return judgeStatus(status.StatusCode, string(status.Body), 0)
	case errors.As(err, &network) && !network.Timeout(), errors.Is(err, context.Canceled), errors.Is(err, rpc.ErrClientQuit):
		return Verdict{Fault: FaultTransient}
	case errors.Is(err, errNoBlock):
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
	var ours *rpcRefusal
	if errors.As(said, &ours) {
		w.retry = max(w.retry, ours.retry)
	}
	fault, known := w.fault()
	switch {
	case known:
	case ours != nil && ours.status == http.StatusTooManyRequests:
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

// connError is a request that got no HTTP answer.
type connError struct {
	err     error
	timeout bool
}

// Error is the cause's: the request's URL may hold a key.
func (e *connError) Error() string { return e.err.Error() }

// Unwrap gives the cause.
func (e *connError) Unwrap() error { return e.err }

// A connection that cannot be made in time is no matter of the range.
func (e *connError) verdict() Verdict {
	var network *net.OpError
	if e.timeout && !(errors.As(e.err, &network) && network.Op == "dial") {
		return Verdict{Fault: FaultRange}
	}
	return Verdict{Fault: FaultTransient}
}

// AnswerError is an answer that contradicts itself or the question.
type AnswerError struct{ What string }

// Error names the contradiction.
func (e *AnswerError) Error() string { return "answer does not hold together: " + e.What }

// Pages that are no JSON-RPC may still say what is wrong.
func (e *AnswerError) verdict() Verdict {
	w := words{message: e.What}
	if fault, known := w.fault(); known && fault == FaultRate {
		return w.verdict(fault)
	}
	return Verdict{Fault: FaultMalformed}
}

// capError is an answer that holds exactly as many logs as some providers answer
// at most, silently.
type capError struct{ logs int }

// Error names the number.
func (e *capError) Error() string {
	return "the answer may be cut off: it holds exactly " + decimal(e.logs) + " logs"
}

func (e *capError) verdict() Verdict { return Verdict{Fault: FaultRange} }

func (e *statusError) verdict() Verdict { return judgeStatus(e.code, e.body, e.retry) }

func (e *tooLargeError) verdict() Verdict { return Verdict{Fault: FaultRange} }

// outageError is a refusal that means a range too large or an outage, given
// again: then it is an outage.
type outageError struct{ error }

// Unwrap gives the refusal.
func (e outageError) Unwrap() error { return e.error }

func (e outageError) verdict() Verdict { return Verdict{Fault: FaultTransient} }
