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
	case ReasonDNS:
		return say("the host name does not resolve")
	case ReasonBlockedAddress:
		return say("the host leads to an address that is not public")
	case ReasonTooSlow:
		return say("the answer comes too slowly")
	case ReasonTimeout:
		return say("no complete answer in time")
	case ReasonGateway, ReasonNoGateway:
		return say("no ipfs gateway gave the document")
	case ReasonCIDMismatch:
		return say("a gateway gave bytes that are not the CID's")
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
