package resolver

// Words says in words why a document cannot be read. Unlike Error and Detail it quotes nobody: neither addresses nor
// what a server or a library wrote.
func (r Reason) Words() string {
	switch r {
	case ReasonEmpty:
		return "the URI is empty"
	case ReasonUnsupportedScheme, ReasonNotURI:
		return "it is no URI that is read"
	case ReasonBadURL:
		return "the URL does not parse"
	case ReasonHTTPDisabled:
		return "plain http is not read"
	case ReasonBlockedHost:
		return "the host is not a public one"
	case ReasonBlockedPort:
		return "the port is not an allowed one"
	case ReasonBadDataURI, ReasonBadBase64:
		return "the data: URI does not decode"
	case ReasonBadCID:
		return "the CID is none, or a weak one"
	case ReasonBadGzip, ReasonUnsupportedEncoding:
		return "the content is compressed in a way that is not read"
	case ReasonTooLarge, ReasonRatio:
		return "the file has more bytes than the limit"
	case ReasonRedirects:
		return "there are too many redirects, or one to another origin"
	case ReasonNotFound:
		return "there is no such file"
	case ReasonHTTPStatus:
		return "the server answered with an error"
	case ReasonBadDAG:
		return "the CID names no readable file"
	case ReasonDirectory:
		return "the CID is a directory, not a file"
	}
	return r.networkWords()
}

// networkWords are the words of reasons that are found on the network.
func (r Reason) networkWords() string {
	switch r {
	case ReasonDNS:
		return "the host name does not resolve"
	case ReasonBlockedAddress:
		return "the host leads to an address that is not public"
	case ReasonNetwork:
		return "the connection failed"
	case ReasonTLS:
		return "the host has no certificate that holds"
	case ReasonTimeout:
		return "no complete answer in time"
	case ReasonTooSlow:
		return "the answer comes too slowly"
	case ReasonGateway, ReasonNoGateway:
		return "no ipfs gateway gave the document"
	case ReasonCIDMismatch:
		return "a gateway gave bytes that are not the CID's"
	case ReasonCanceled:
		return "the request ended before"
	}
	return string(r)
}
