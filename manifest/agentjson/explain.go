package agentjson

import (
	"slices"
)

// explanation describes a code.
type explanation struct {
	code    string
	strict  bool // an error in the strict profile, whatever it is otherwise
	meaning string
	hint    string // what to write instead
}

// Hint returns what to write instead of the text that a code reports; "" for an unknown code.
//
// The code of a strict problem begins with E where the table has W or I: both find the same entry.
func Hint(code string) string {
	for _, e := range explanations() {
		if len(code) > 1 && e.code[1:] == code[1:] && (code[0] == e.code[0] || code[0] == 'E' && e.strict) {
			return e.hint
		}
	}
	return ""
}

// explanations returns all codes in the order of the documentation.
// It is a function and no variable, because a package of pure values has no state that a caller could change. A test
// compares it with the constants and with the documentation.
func explanations() []explanation {
	return slices.Concat(aboutDocuments(), aboutText(), aboutMembers(), aboutRoot(), aboutIntents(), aboutPayments(),
		aboutIdentity())
}

// isStrict reports whether a code is an error in the strict profile.
func isStrict(code string) bool {
	for _, e := range explanations() {
		if e.code == code {
			return e.strict
		}
	}
	return false
}

// aboutDocuments explains problems for which no manifest could be read at all.
func aboutDocuments() []explanation {
	return []explanation{
		{CodeEmpty, true, "the document is empty", "serve the JSON itself at /.well-known/agent.json"},
		{CodeTooLarge, true, "more than 512 KiB", "shorten it: readers take no more"},
		{CodeNotJSON, true, "not JSON: text, binary, a syntax error, NaN",
			"check it with a JSON parser; quotes are double, commas never trail, NaN and Infinity are no JSON"},
		{CodeHTML, true, "the document is HTML or XML",
			"serve the file itself and not a page; answer 404 for what is missing"},
		{CodeUTF16, true, "the document is UTF-16 or UTF-32 text", "save the file as UTF-8, without a byte order mark"},
		{CodeTooDeep, true, "nested deeper than 64 levels", "flatten it; eight levels are enough"},
		{CodeNotObject, true, "JSON, but an array, a string or a number", "put one object at the top: { … }"},
		{CodeA2ACard, true, "the document is an A2A agent card, whose old place is the same path",
			"move the card to /.well-known/agent-card.json and serve agent.json here"},
		{CodeOther, true, "another format that is also called agent.json; the message names it",
			"nothing, if that format is meant; else write version, origin and payout_address"},
		{CodeUnknown, true, "nothing of agent.json in the document", "begin with version, origin and payout_address"},
	}
}

// aboutText explains problems of the JSON text.
func aboutText() []explanation {
	return []explanation{
		{CodeDuplicate, true, "a member is repeated: readers differ in which value they take", "keep one of them"},
		{CodeSurrogate, true, "half a surrogate pair, read as U+FFFD", "write the character itself in UTF-8"},
		{CodeNUL, true, "a NUL character, read as U+FFFD", "remove \\u0000"},
		{CodeInvalidUTF8, true, "invalid UTF-8, read as U+FFFD", "save the file as UTF-8"},
		{CodeBOM, false, "a byte order mark before the document", "save the file as UTF-8 without a byte order mark"},
		{CodeTooLong, true, "text cut, or a URL or an unknown member dropped, for its length",
			"shorten it: texts 4 KiB, names 256 bytes, URLs 2 KiB, unknown members 64 KiB together"},
		{CodeTooMany, true, "a list cut for its length",
			"shorten it: 1,000 intents, 256 parameters, commitments or allowed values, 64 networks"},
		{CodeMore, false, "more problems than are listed", "mend the listed ones first"},
	}
}

// aboutMembers explains problems that members of every object can have.
func aboutMembers() []explanation {
	return []explanation{
		{CodeType, true, "another JSON type than the specification's; the member counts as absent",
			"use the type that the message names"},
		{CodeMissing, true, "a required member is missing or empty", "add it"},
		{CodeMember, true, "a member that the specification does not know; ignored",
			"check the spelling; put your own data into extensions or a member x-…"},
		{CodeOldPrefix, true, "a member x_…, the old prefix of own data; ignored",
			"put it into extensions, or name it x-…"},
		{CodeEnum, true, "a value that is not one of the allowed ones", "use one of those that the message names"},
		{CodeForm, true, "a text of the wrong form", "use the form that the message names"},
		{CodeLength, true, "a text shorter or longer than the specification asks for",
			"keep display_name to 100 characters, descriptions of the service and of intents to 500 (intents: at least 10), " +
				"of parameters and answers to 200"},
		{CodeNumber, true, "a number that is negative, not whole where it must be, or out of bounds",
			"write an amount of zero or more with at most 30 digits before and after the point"},
		{CodeEmptyList, true, "an empty list", "add an entry, or leave the member out"},
		{CodeChecksum, false, "an address whose capitals are no EIP-55 checksum",
			"check for a typo; write it in lower case or with the right checksum"},
	}
}

// aboutRoot explains problems of the root's members.
func aboutRoot() []explanation {
	return []explanation{
		{CodeVersion, true, "a version that is not read", "write \"1.0\", \"1.1\", \"1.2\", \"1.3\" or \"1.4\""},
		{CodeMinor, true, "a later minor version; what is unknown in it is ignored",
			"write \"1.0\", \"1.1\", \"1.2\", \"1.3\" or \"1.4\""},
		{CodeOrigin, true, "origin is not the host that served the manifest",
			"write the host exactly, without scheme, port, path or www. that is not part of it"},
		{CodeOriginName, false, "origin is no public domain name", "write the domain that serves the file"},
		{CodeZeroAddress, false, "payments go to an address that nobody owns", "write the address of your wallet"},
		{CodeAddress, false, "an address of no known form, or a value of a template",
			"write 0x and 40 hex digits, or the address form of the network"},
		{CodeLater, false, "a member of a later version than the manifest's", "raise version"},
	}
}

// aboutIntents explains problems of intents.
func aboutIntents() []explanation {
	return []explanation{
		{CodeDuplicateIntent, true, "two intents of one name", "give each intent its own name"},
		{CodeNoMethod, true, "an endpoint without a method; read as POST", "add \"method\""},
		{CodeMethodAlone, false, "a method without an endpoint", "add \"endpoint\", or remove \"method\""},
		{CodeEndpoint, true, "an endpoint outside the origin; it is never called",
			"write a path such as /api/search, or https://{origin}/…"},
		{CodeUnitParam, true, "a price per_unit without unit_param", "name the parameter that counts units"},
		{CodeUnitUnknown, false, "unit_param names no parameter of the intent", "declare the parameter"},
		{CodeNetworkTwice, false, "a network given twice in one list; the first counts", "remove one of them"},
		{CodeFiatNetwork, false, "a network beside a price in USD", "remove network, or use USDC"},
		{CodeSplits, true, "shares of a bounty do not add up to 1",
			"let orchestrator, platform and referrer add up to 1"},
	}
}

// aboutPayments explains problems of payment protocols.
func aboutPayments() []explanation {
	return []explanation{
		{CodeLegacy, false, "x402 beside payments.x402; the former is ignored", "remove x402, which is of version 1.2"},
		{CodeNoNetwork, false, "x402 without a network or an asset: nobody knows how to pay",
			"add network and asset, or networks"},
		{CodeUndeclared, false, "a price for a network that the root does not declare; ignored",
			"declare the network in the x402 member of the root"},
		{CodeTicket, false, "a ticket_price above the direct_price", "tickets are prepaid and cost less"},
		{CodeURL, false, "a facilitator that is no https URL", "write an https URL"},
		{CodeProtocol, false, "a payment protocol that is not known; kept as written", "nothing to do"},
		{CodeNoWay, false, "no network of x402 is one of the price's networks: the intent cannot be paid",
			"let price.network name a network of x402"},
	}
}

// aboutIdentity explains problems of identity and commitments.
func aboutIdentity() []explanation {
	return []explanation{
		{CodeDID, false, "a DID that is not did:web of the origin: it proves nothing about the origin",
			"write did:web:{origin}"},
		{CodeKey, false, "public_key is no Ed25519 key in base64url",
			"write the 32 bytes of the key as 43 characters of base64url: repute manifest keygen makes one"},
		{CodePlaceholder, false, "public_key is a placeholder: text, one byte repeated, or a point of small order",
			"make a key: repute manifest keygen"},
		{CodePadding, true, "base64url with padding", "remove ="},
		{CodeSchemaVersion, true, "a schema_version of commitments that is not known", "write \"1.0\""},
		{CodeRef, true, "ref is no URL", "write an absolute URL"},
		{CodeNoKey, false, "a signature without identity.public_key: nobody can verify it", "add identity.public_key"},
		{CodeSignature, true, "a signature that is no 64 bytes in base64url",
			"sign again: repute manifest sign"},
		{CodeNotCanonical, true,
			"signed entries without a canonical form: a repeated member, half a surrogate pair, or an " +
				"integer beyond 2^53",
			"repair the entries and sign again"},
		{CodeNotMeasurable, false, "verifiable, but not in a form that is measured",
			"write \"p99 < 500ms\" for latency_bound, \"99.9% monthly uptime\" for uptime_sla"},
	}
}
