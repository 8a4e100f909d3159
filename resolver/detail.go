package resolver

import (
	"errors"
	"net"
	"net/url"
)

// Detail describes the failure for publication. Unlike Error, which is for logs, it contains
// neither addresses of this machine's network nor names of the servers in use (name servers,
// gateways).
func (e *Error) Detail() string {
	say := func(words string) string { return storable(string(e.Reason)+": "+words, maxErrorText) }
	switch e.Reason {
	case ReasonDNS, ReasonBlockedAddress, ReasonTooSlow, ReasonTimeout, ReasonGateway, ReasonNoGateway,
		ReasonCIDMismatch:
		return say(e.Reason.Words())
	case ReasonNetwork, ReasonTLS:
		if e.Err != nil {
			return say(innermost(e.Err).Error())
		}
	}
	return e.Error()
}

// innermost returns the cause below the errors that contain addresses.
func innermost(err error) error {
	var op *net.OpError
	var asked *url.Error
	switch {
	case errors.As(err, &op) && op.Err != nil:
		return op.Err
	case errors.As(err, &asked) && asked.Err != nil:
		return asked.Err
	}
	return err
}
