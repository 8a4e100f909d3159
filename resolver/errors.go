package resolver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"code.dny.dev/ssrf"
)

// Reason is the code of the failure to read a document. The list is closed; values are stored and
// published, so that their meaning never changes.
type Reason string

// Reasons found in the URI or in the bytes. Another try repeats them.
const (
	ReasonEmpty               Reason = "empty"                // the URI is empty or blank
	ReasonUnsupportedScheme   Reason = "unsupported_scheme"   // ar://, ipns://, file paths, …
	ReasonNotURI              Reason = "not_a_uri"            // plain text, a hex address, or other text
	ReasonBadURL              Reason = "bad_url"              // http(s) that does not parse
	ReasonHTTPDisabled        Reason = "http_disabled"        // plain http, which is off
	ReasonBlockedHost         Reason = "blocked_host"         // userinfo, single label, .local, public IP literal, …
	ReasonBlockedPort         Reason = "blocked_port"         // a port outside the allowed ones
	ReasonBadDataURI          Reason = "bad_data_uri"         // no comma, or no bytes
	ReasonBadBase64           Reason = "bad_base64"           // neither base64 nor plain JSON
	ReasonBadCID              Reason = "bad_cid"              // ipfs URI without a valid, strong CID
	ReasonBadGzip             Reason = "bad_gzip"             // claimed gzip that does not inflate
	ReasonUnsupportedEncoding Reason = "unsupported_encoding" // zstd, br, …
	ReasonTooLarge            Reason = "too_large"            // more bytes than the limit
	ReasonRatio               Reason = "ratio"                // inflates too much: a bomb
)

// Reasons that are found on the network. Retry reports whether a retry may help.
const (
	ReasonBlockedAddress Reason = "blocked_address" // resolves to a private or special address
	ReasonDNS            Reason = "dns"             // the host name does not resolve
	ReasonNetwork        Reason = "network"         // connection refused, reset or broken
	ReasonTimeout        Reason = "timeout"         // no complete answer in time
	ReasonTooSlow        Reason = "too_slow"        // the body makes almost no progress
	ReasonTLS            Reason = "tls"             // handshake or certificate
	ReasonRedirects      Reason = "redirects"       // more than three, or one to another origin
	ReasonNotFound       Reason = "not_found"       // 404 or 410, or no such path in an ipfs directory
	ReasonHTTPStatus     Reason = "http_status"     // any other status than 200; see Status
	ReasonNoGateway      Reason = "no_gateway"      // ipfs, and no gateway is configured
	ReasonGateway        Reason = "gateway"         // no ipfs gateway gave the blocks
	ReasonCIDMismatch    Reason = "cid_mismatch"    // a gateway gave bytes that are not the CID's
	ReasonBadDAG         Reason = "bad_dag"         // verified blocks that are no readable file
	ReasonDirectory      Reason = "directory"       // the CID is a directory, not a file
	ReasonCanceled       Reason = "canceled"        // the caller gave up
)

// Reasons returns all stored reasons of failed fetches.
func Reasons() []Reason {
	return []Reason{ReasonEmpty, ReasonUnsupportedScheme, ReasonNotURI, ReasonBadURL, ReasonHTTPDisabled,
		ReasonBlockedHost, ReasonBlockedPort,
		ReasonBadDataURI, ReasonBadBase64, ReasonBadCID, ReasonBadGzip, ReasonUnsupportedEncoding, ReasonTooLarge,
		ReasonRatio, ReasonBlockedAddress,
		ReasonDNS, ReasonNetwork, ReasonTimeout, ReasonTooSlow, ReasonTLS, ReasonRedirects, ReasonNotFound,
		ReasonHTTPStatus, ReasonNoGateway,
		ReasonGateway, ReasonCIDMismatch, ReasonBadDAG, ReasonDirectory}
}

// Error is every failure of this package.
type Error struct {
	Reason Reason
	// Retry: the same URI may work later. False means that trying again is
	// pointless until the document, the URI or the configuration changes.
	Retry bool
	// RetryAfter is the pause that the server asked for, 0 for none.
	RetryAfter time.Duration
	Status     int // HTTP status, 0 when there was none
	// AfterRedirect reports that another host failed, to which the URI's host redirected.
	AfterRedirect bool
	Err           error // the cause, may be nil
}

// Error reads "reason: cause". Causes quote strangers, so the text is cut and cleaned
// of everything a database or a log could trip over.
func (e *Error) Error() string {
	if e.Err == nil {
		return string(e.Reason)
	}
	return storable(string(e.Reason)+": "+e.Err.Error(), maxErrorText)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// IsSilent reports whether a host did not answer.
func (e *Error) IsSilent() bool {
	switch e.Reason {
	case ReasonTimeout, ReasonTooSlow, ReasonDNS, ReasonNetwork, ReasonTLS:
		return true
	}
	return false
}

// Rest is the pause that a busy server asked for, 0 for none.
func (e *Error) Rest() time.Duration {
	if e.Status == http.StatusTooManyRequests || e.Status == http.StatusServiceUnavailable {
		return e.RetryAfter
	}
	return 0
}

// final returns an error that a retry would repeat.
func final(reason Reason, format string, args ...any) *Error {
	return &Error{Reason: reason, Err: fmt.Errorf(format, args...)}
}

// passing returns an error that may be gone at the next try.
func passing(reason Reason, format string, args ...any) *Error {
	return &Error{Reason: reason, Retry: true, Err: fmt.Errorf(format, args...)}
}

// networkError names the failure of a request. parent is the caller's context: its
// cancellation is "canceled", while the end of its time, or of ours, is "timeout".
func networkError(parent context.Context, err error) *Error {
	var own *Error
	var dns *net.DNSError
	switch {
	case errors.As(err, &own):
		return own
	case errors.Is(parent.Err(), context.Canceled):
		return passing(ReasonCanceled, "%w", err)
	case errors.Is(err, ssrf.ErrProhibitedPort):
		return final(ReasonBlockedPort, "%w", err)
	case errors.Is(err, ssrf.ErrProhibitedIP), errors.Is(err, ssrf.ErrProhibitedNetwork),
		errors.Is(err, ssrf.ErrInvalidHostPort):
		return final(ReasonBlockedAddress, "%w", err)
	case errors.As(err, &dns):
		return passing(ReasonDNS, "%w", err)
	case isLongHeader(err):
		return final(ReasonTooLarge, "%w", err)
	case isTimeout(err):
		return passing(ReasonTimeout, "%w", err)
	case isTLS(err):
		return passing(ReasonTLS, "%w", err)
	}
	return passing(ReasonNetwork, "%w", err)
}

// isTimeout reports whether an error means that the time was up.
func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &t) && t.Timeout()
}

// isLongHeader reports whether an error is that of a header over the limit, for which the standard
// library has no error value.
func isLongHeader(err error) bool {
	text := err.Error()
	return strings.Contains(text, "server response headers exceeded") ||
		strings.Contains(text, "response header list larger than advertised limit")
}

// isTLS reports whether an error is about the certificate or the TLS connection.
func isTLS(err error) bool {
	var header tls.RecordHeaderError
	var alert tls.AlertError
	var verify *tls.CertificateVerificationError
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	return errors.As(err, &header) || errors.As(err, &alert) || errors.As(err, &verify) ||
		errors.As(err, &unknown) || errors.As(err, &name) ||
		// The standard library has no type for the alerts a peer sends.
		strings.Contains(err.Error(), "tls: ")
}
