package manifest

import (
	"slices"
	"strings"
)

// explanation describes a code.
type explanation struct {
	code    string
	areas   string // letters of the kinds of documents it is used for
	meaning string
	hint    string // what to write instead
}

// Hint returns what to write instead of the text that a code reports; "" for an unknown code.
func Hint(code string) string { return explain(code).hint }

// explain finds a code, whichever kind of document it was given for.
func explain(code string) explanation {
	if len(code) < 2 {
		return explanation{}
	}
	for _, e := range explanations() {
		if e.code[:1] == code[:1] && e.code[2:] == code[2:] && strings.Contains(e.areas, code[1:2]) {
			return e
		}
	}
	return explanation{}
}

// explanations returns all codes in the order of the documentation.
func explanations() []explanation {
	return slices.Concat(aboutDocuments(), aboutText(), aboutRegistrations(), aboutLinks(), aboutFeedback(),
		aboutCards())
}

// aboutDocuments explains problems for which no file could be read at all.
func aboutDocuments() []explanation {
	return []explanation{
		{CodeEmpty, "AFC", "the document is empty", "publish the JSON itself behind the URI"},
		{CodeNotJSON, "AFC", "not JSON: text, binary, a syntax error, NaN",
			"check it with a JSON parser; quotes are double, commas never trail, NaN and Infinity are no JSON"},
		{CodeHTML, "AFC", "the document is HTML or XML",
			"point the URI to the JSON file, not to a web page; answer 404 for what is missing"},
		{CodeUTF16, "AFC", "the document is UTF-16 or UTF-32 text",
			"save the file as UTF-8, without a byte order mark"},
		{CodeTooDeep, "AFC", "nested deeper than 64 levels", "flatten it; five levels are enough"},
		{CodeNotObject, "AFC", "JSON, but an array, a string or a number", "put one object at the top: { … }"},
		{CodeEncrypted, "AFC", "the document is encrypted",
			"publish it in the clear: the standard's readers have no key"},
		{CodeA2ACard, "AF", "the document is an A2A agent card",
			"publish a registration file and name the card in services: {\"name\":\"A2A\",\"endpoint\":\"https://…/.well-known/agent-card.json\"}"},
		{CodeErrorBody, "AFC", "the document is a server's error message",
			"make the server answer with the file, or with status 404"},
		{CodeJSONLD, "AFC", "the document is JSON-LD",
			"publish the standard's members beside it, or a file of its own"},
		{CodeNFT, "A", "NFT metadata without anything of an agent; name, description and image are read",
			"add type, services and registrations"},
		{CodeUnknown, "AFC", "nothing of the kind in the document",
			"start from the example in docs/reference/documents.md"},
		{CodeIsFeedback, "AC", "the document is a feedback file", "check that the URI is the agent's own"},
		{CodeIsValidation, "AFC", "the document is a validation file", "check that the URI is the right one"},
		{CodeIsRegistration, "FC", "the document is a registration file", "check that the URI is the right one"},
	}
}

// aboutText explains problems of the JSON text that files of every kind can have.
func aboutText() []explanation {
	return []explanation{
		{CodeDuplicate, "AFC", "a member is repeated; the last one counts",
			"keep one of them: readers differ in which one they take"},
		{CodeSurrogate, "AFC", "half a surrogate pair, read as U+FFFD", "write the character itself in UTF-8"},
		{CodeNUL, "AFC", "a NUL character, read as U+FFFD", "remove \\u0000"},
		{CodeInvalidUTF8, "AFC", "invalid UTF-8, read as U+FFFD", "save the file as UTF-8"},
		{CodeBOM, "AFC", "a byte order mark before the document", "save the file as UTF-8 without a byte order mark"},
		{CodeTooLong, "AFC", "text cut, or a URL or an unknown member dropped, for its length",
			"shorten it: names 1 KiB, descriptions 16 KiB, URLs 8 KiB, unknown members 64 KiB together"},
		{CodeTooMany, "AFC", "a list cut for its length",
			"shorten it: 256 services, skills or tools, 1024 registrations, 64 trust models"},
		{CodeMore, "AFC", "more problems than are listed", "mend the listed ones first"},
		{CodeWrongType, "AFC", "another JSON type than the standard's", "use the type the standard names"},
		{CodeAlias, "AFC", "another spelling of a member, read as that member", "use the standard's spelling"},
		{CodeAliasIgnored, "AFC", "a second spelling beside the right one, ignored", "remove the other spelling"},
	}
}

// aboutRegistrations explains problems of registration files.
func aboutRegistrations() []explanation {
	return []explanation{
		{CodeTypeMissing, "A", "no type", "add \"type\": \"" + TypeRegistration + "\""},
		{CodeTypeOther, "A", "type is not the standard's", "write \"type\": \"" + TypeRegistration + "\""},
		{CodeNoName, "AC", "no name", "add \"name\": what people call the agent"},
		{CodeNoText, "AC", "no description",
			"add \"description\": what the agent does, what it costs, how to reach it"},
		{CodeNoImage, "A", "no image", "add \"image\": an https, ipfs or data URL"},
		{CodeImageNotURL, "A", "image is not a URL of an image", "use an https, ipfs or data:image/… URL, not a path"},
		{CodeTrustUnknown, "A", "a trust model the standard does not name",
			"the standard's are reputation, crypto-economic and tee-attestation; readers may not know others"},
		{CodeMisspelled, "A", "a member nobody knows, whose name looks like a known one",
			"use the standard's spelling, or another name if it is meant to be something else"},
		{CodeTemplate, "A", "a value of a template or an example that was not replaced",
			"write the agent's own value, or leave the member out"},
		{CodeCredentials, "A", "a password or a key in an endpoint's URL",
			"revoke it: everybody has read it; give keys to clients in private"},
		{CodeChecksum, "AF", "an address whose capitals are no EIP-55 checksum",
			"check for a typo; write it in lower case or with the right checksum"},
		{CodeOASFUnknown, "A", "an OASF skill or domain that no release of the taxonomy has",
			"take the class's path from https://schema.oasf.outshift.com"},
		{CodeLegacyEndpoints, "A", "services under their old name, endpoints", "rename endpoints to services"},
		{CodeServiceShape, "A", "services is not an array", "write \"services\": [{\"name\": …, \"endpoint\": …}]"},
		{CodeServiceText, "A", "a service is a plain string", "write {\"name\": …, \"endpoint\": …}"},
		{CodeServiceNoName, "A", "a service without a name",
			"add \"name\": MCP, A2A, OASF, web, ENS, DID, email, agentWallet, …"},
		{CodeServiceNoURL, "A", "a service without an endpoint",
			"add \"endpoint\": a URL, or an identifier such as eip155:1:0x…"},
		{CodeNoServices, "A", "no service at all", "add at least one service, or nobody can reach the agent"},
		{CodeEndpointNotURL, "A", "the endpoint of a web, MCP, A2A or OASF service is not a URL",
			"write the whole URL: https://{host}/{path}"},
		{CodeEndpointScheme, "A",
			"the endpoint's scheme reaches no service (javascript:, file:, ftp:, data: of a page, …)",
			"use an https URL"},
		{CodePlainHTTP, "A", "plain http or ws: anybody on the way can read and change it",
			"serve it over https (or wss)"},
		{CodeEndpointLocal, "A", "a URL of a private network or of the author's own machine",
			"give the host that the public reaches it at"},
		{CodeEmailForm, "A", "the endpoint of an email service is no e-mail address", "write name@host"},
		{CodeWalletForm, "A", "the endpoint of a wallet is no account", "write eip155:{chain}:{address}"},
	}
}

// aboutLinks explains problems of the members by which a file names agents on a chain.
func aboutLinks() []explanation {
	return []explanation{
		{CodeLinkIDText, "AF", "agentId is a string, read as a number", "write the number without quotes"},
		{CodeLinkID, "AF", "agentId is missing, null or no token id",
			"write the token id of the mint: \"agentId\": 22"},
		{CodeLinkRegistry, "AF", "agentRegistry is missing or no account (CAIP-10)",
			"write \"agentRegistry\": \"eip155:1:0x8004A169FB4a3325136EB29fA0ceB6D2e539a432\" with your chain and registry"},
		{CodeRegistryForm, "AF", "agentRegistry in another form, read as eip155:{chain}:{address}",
			"write it as eip155:{chain}:{address}"},
		{CodeNoLinks, "A", "no registrations: the file proves no agent",
			"after the mint add \"registrations\": [{\"agentId\": …, \"agentRegistry\": \"eip155:…\"}] and set the URI again"},
		{CodeLinkOther, "A", "registrations name other agents, this one is not among them",
			"compare agentId and agentRegistry with the mint"},
	}
}

// aboutFeedback explains problems of feedback files.
func aboutFeedback() []explanation {
	return []explanation{
		{CodeNoClient, "F", "no clientAddress",
			"add \"clientAddress\": \"eip155:{chain}:{address}\" of whoever sends the rating"},
		{CodeClientForm, "F", "clientAddress is no account", "write eip155:{chain}:{address}"},
		{CodeClientBare, "F", "clientAddress without its chain", "write eip155:{chain}:{address}"},
		{CodeNoCreated, "F", "no createdAt", "add \"createdAt\": \"2026-01-31T12:00:00Z\""},
		{CodeCreatedForm, "F", "createdAt is no ISO 8601 time", "write \"2026-01-31T12:00:00Z\""},
		{CodeNoValue, "F", "no value", "add \"value\" and \"valueDecimals\" as sent to the registry"},
		{CodeValueForm, "F", "value is no number", "write the integer sent to the registry"},
		{CodeDecimalsForm, "F", "valueDecimals is no integer from 0 to 18", "write the integer sent to the registry"},
		{CodeScaleForm, "F", "the scale of the value is none, or is given differently in several places",
			"write \"maxValue\": the largest value that could be given"},
		{CodeRating, "F", "the older score or rating instead of value", "write \"value\" and \"valueDecimals\""},
		{CodeFlat, "F", "a flat member (mcpTool, a2aSkills, skill, …) instead of the standard's nested one",
			"nest it: \"mcp\": {\"tool\": …}, \"a2a\": {\"skills\": […]}, \"oasf\": {…}"},
		{CodePaymentPart, "F", "proofOfPayment lacks a member", "give fromAddress, toAddress, chainId and txHash"},
		{CodePaymentForm, "F", "a member of proofOfPayment is no address, chain id or transaction hash",
			"on EVM chains addresses have 20 bytes, a txHash 32, in hex with 0x; chainId is decimal or CAIP-2"},
		{CodeCapabilityForm, "F", "capability does not say which part of MCP it names",
			"write \"mcp\": {\"tool\": …}, {\"prompt\": …} or {\"resource\": …}"},
		{CodeOtherClient, "F", "clientAddress is not who sent the rating",
			"the file belongs to another rating: check the feedbackURI"},
		{CodeOtherAgent, "F", "the file rates another agent",
			"the file belongs to another rating: check the feedbackURI"},
		{CodeOtherValue, "F", "value differs from the rating on chain",
			"the chain counts; publish the value that was sent"},
		{CodeOtherTag, "F", "a tag differs from the rating on chain",
			"the chain counts; publish the tags that were sent"},
		{CodeOtherEndpoint, "F", "endpoint differs from the rating on chain",
			"the chain counts; publish the endpoint that was sent"},
	}
}

// aboutCards explains problems of agent cards.
func aboutCards() []explanation {
	return []explanation{
		{CodeCardNoVersion, "C", "no version", "add \"version\": the agent's own, e.g. \"1.0.0\""},
		{CodeCardNoURL, "C", "no way to reach the agent",
			"add \"supportedInterfaces\": [{\"url\": …, \"protocolBinding\": \"JSONRPC\", \"protocolVersion\": \"1.0\"}]"},
		{CodeCardURL, "C", "the URL of an interface is missing or not https", "give an absolute https URL"},
		{CodeCardNoSkills, "C", "no skills",
			"add \"skills\": [{\"id\": …, \"name\": …, \"description\": …, \"tags\": […]}]"},
		{CodeSkillNoID, "C", "a skill without an id", "add \"id\""},
		{CodeSkillNoName, "C", "a skill without a name", "add \"name\""},
		{CodeSkillDuplicate, "C", "two skills with one id", "give each skill its own id"},
		{CodeNoCapabilities, "C", "no capabilities", "add \"capabilities\": {}"},
		{CodeNoProtocol, "C", "no protocol version", "add \"protocolVersion\", in 1.0 to each interface"},
		{CodeSigned, "C", "the card is signed; the signature was not verified", "nothing to do"},
		{CodeSchemeUndefined, "C", "security names a scheme that securitySchemes does not define",
			"define it in securitySchemes"},
	}
}
