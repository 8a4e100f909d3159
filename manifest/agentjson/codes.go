package agentjson

// Codes of problems. The first letter is the severity: E(rror), W(arning) or I(nfo); J says that the document was read
// as agent.json. Numbers below 600 mean what they mean for the other documents of package manifest. In the strict
// profile some warnings are errors: then the first letter is E, and the number stays. A code never changes its meaning.
// docs/reference/agent-json.md lists all.
const (
	// The document as a whole.
	CodeEmpty     = "EJ001"
	CodeNotJSON   = "EJ500"
	CodeHTML      = "EJ501"
	CodeTooDeep   = "EJ502"
	CodeNotObject = "EJ503"
	CodeA2ACard   = "EJ505"
	CodeUnknown   = "EJ509"
	CodeUTF16     = "EJ591"
	CodeTooLarge  = "EJ600"
	CodeOther     = "EJ601"

	// The text.
	CodeDuplicate   = "EJ510"
	CodeSurrogate   = "WJ511"
	CodeNUL         = "WJ512"
	CodeInvalidUTF8 = "WJ513"
	CodeBOM         = "IJ514"
	CodeTooLong     = "WJ515"
	CodeTooMany     = "WJ516"
	// CodeMore is the last problem of a list that is cut at maxProblems, and has no path.
	CodeMore = "IJ517"

	// Members of any object.
	CodeType      = "EJ520"
	CodeMissing   = "EJ602"
	CodeMember    = "WJ603"
	CodeOldPrefix = "IJ604"
	CodeEnum      = "EJ605"
	CodeForm      = "EJ606"
	CodeLength    = "WJ607"
	CodeNumber    = "EJ608"
	CodeEmptyList = "EJ609"
	CodeChecksum  = "WJ593"

	// The root.
	CodeVersion     = "EJ610"
	CodeMinor       = "WJ611"
	CodeOrigin      = "EJ612"
	CodeOriginName  = "WJ613"
	CodeZeroAddress = "WJ614"
	CodeAddress     = "WJ615"
	CodeLater       = "IJ616"

	// Intents.
	CodeDuplicateIntent = "EJ620"
	CodeNoMethod        = "WJ621"
	CodeMethodAlone     = "WJ622"
	CodeEndpoint        = "WJ623"
	CodeUnitParam       = "EJ630"
	CodeUnitUnknown     = "WJ631"
	CodeNetworkTwice    = "WJ632"
	CodeFiatNetwork     = "WJ633"
	CodeSplits          = "EJ640"

	// Payments.
	CodeLegacy     = "WJ650"
	CodeNoNetwork  = "WJ651"
	CodeUndeclared = "WJ652"
	CodeTicket     = "WJ653"
	CodeURL        = "WJ654"
	CodeProtocol   = "IJ655"
	CodeNoWay      = "WJ656"

	// Identity and commitments.
	CodeDID           = "WJ660"
	CodeKey           = "WJ661"
	CodePlaceholder   = "WJ662"
	CodePadding       = "WJ663"
	CodeSchemaVersion = "WJ670"
	CodeRef           = "EJ671"
	CodeNoKey         = "WJ672"
	CodeSignature     = "WJ673"
	CodeNotCanonical  = "WJ674"
	CodeNotMeasurable = "IJ675"
)
