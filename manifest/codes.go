package manifest

import "repute"

// Codes of problems. The letters follow the convention of the 8004scan lists:
// E(rror), W(arning) or I(nfo), then A(gent). EA001 and WA031 mean what they mean
// there; numbers from 500 are ours. A code never changes its meaning.
const (
	// The document as a whole. After one of these the registration is empty or
	// holds only what happened to be readable.
	CodeEmpty     = "EA001" // no bytes
	CodeNotJSON   = "EA500" // not JSON: text, binary, a syntax error, NaN
	CodeHTML      = "EA501" // a web page
	CodeTooDeep   = "EA502" // nested deeper than MaxDepth
	CodeNotObject = "EA503" // JSON, but an array, a string, a number
	CodeEncrypted = "EA504" // an encrypted envelope
	CodeA2ACard   = "EA505" // an A2A agent card instead of a registration
	CodeErrorBody = "EA506" // a server's error message
	CodeJSONLD    = "EA507" // a JSON-LD document
	CodeNFT       = "EA508" // NFT metadata without anything of an agent
	CodeUnknown   = "EA509" // an object with nothing of a registration in it

	// The text.
	CodeDuplicate   = "WA510" // a member is repeated; the last one counts
	CodeSurrogate   = "WA511" // half a surrogate pair, replaced by U+FFFD
	CodeNUL         = "WA512" // a NUL character, replaced by U+FFFD
	CodeInvalidUTF8 = "WA513" // invalid UTF-8, replaced by U+FFFD
	CodeBOM         = "IA514" // a byte order mark before the document
	CodeTooLong     = "WA515" // text cut, or a URL dropped, for its length
	CodeTooMany     = "WA516" // a list cut for its length
	CodeMore        = "IA517" // more problems than are listed

	// Members.
	CodeWrongType    = "WA520" // another JSON type than the standard's
	CodeAlias        = "WA521" // another spelling of a member, read as that member
	CodeAliasIgnored = "WA522" // a second spelling beside the right one, ignored
	CodeTypeMissing  = "WA523" // no type
	CodeTypeOther    = "WA524" // type is not the standard's
	CodeNoName       = "WA525" // no name
	CodeNoText       = "WA526" // no description
	CodeNoImage      = "IA527" // no image
	CodeImageNotURL  = "WA528" // image is not a URL

	// Services.
	CodeLegacyEndpoints = "WA031" // services under their old name, endpoints
	CodeServiceShape    = "WA530" // services is not an array
	CodeServiceText     = "WA531" // a service is a plain string
	CodeServiceNoName   = "WA532" // a service without a name
	CodeServiceNoURL    = "WA533" // a service without an endpoint
	CodeNoServices      = "IA534" // no service at all

	// Registrations and trust.
	CodeLinkIDText   = "IA540" // agentId is a string, read as a number
	CodeLinkID       = "WA541" // agentId is missing, null or no token id
	CodeLinkRegistry = "WA542" // agentRegistry is not eip155:{chain}:{address}
	CodeNoLinks      = "IA543" // no registrations: the file proves no agent
)

// severity reads a code's first letter.
func severity(code string) repute.Severity {
	switch code[0] {
	case 'E':
		return repute.SeverityError
	case 'W':
		return repute.SeverityWarning
	}
	return repute.SeverityInfo
}

// HasErrors tells whether a document is no usable registration.
func HasErrors(problems []repute.Problem) bool {
	for _, p := range problems {
		if p.Severity == repute.SeverityError {
			return true
		}
	}
	return false
}
