package resolver

import "cmp"

// words says of each reason why a document cannot be read.
var words = map[Reason]string{
	ReasonEmpty:               "the URI is empty",
	ReasonUnsupportedScheme:   "it is no URI that is read",
	ReasonNotURI:              "it is no URI that is read",
	ReasonBadURL:              "the URL does not parse",
	ReasonHTTPDisabled:        "plain http is not read",
	ReasonBlockedHost:         "the host is not a public one",
	ReasonBlockedPort:         "the port is not an allowed one",
	ReasonBadDataURI:          "the data: URI does not decode",
	ReasonBadBase64:           "the data: URI does not decode",
	ReasonBadCID:              "the CID is none, or a weak one",
	ReasonBadGzip:             "the content is compressed in a way that is not read",
	ReasonUnsupportedEncoding: "the content is compressed in a way that is not read",
	ReasonTooLarge:            "the file has more bytes than the limit",
	ReasonRatio:               "the file has more bytes than the limit",
	ReasonRedirects:           "there are too many redirects, or one to another origin",
	ReasonNotFound:            "there is no such file",
	ReasonHTTPStatus:          "the server answered with an error",
	ReasonBadDAG:              "the CID names no readable file",
	ReasonDirectory:           "the CID is a directory, not a file",
	ReasonDNS:                 "the host name does not resolve",
	ReasonBlockedAddress:      "the host leads to an address that is not public",
	ReasonNetwork:             "the connection failed",
	ReasonTLS:                 "the host has no certificate that holds",
	ReasonTimeout:             "no complete answer in time",
	ReasonTooSlow:             "the answer comes too slowly",
	ReasonGateway:             "no ipfs gateway gave the document",
	ReasonNoGateway:           "no ipfs gateway gave the document",
	ReasonCIDMismatch:         "a gateway gave bytes that are not the CID's",
	ReasonCanceled:            "the request ended before",
}

// Words says in words why a document cannot be read. Unlike Error and Detail it quotes nobody: neither addresses nor
// what a server or a library wrote.
func (r Reason) Words() string { return cmp.Or(words[r], string(r)) }
