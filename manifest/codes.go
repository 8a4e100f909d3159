package manifest

// Codes of problems. The letters follow the convention of the 8004scan lists:
// E(rror), W(arning) or I(nfo), then what the document was read as: A(gent
// registration), F(eedback file) or C(ard). EA001 and WA031 mean what they mean there;
// numbers from 500 are ours. A code never changes its meaning. The constants that
// several kinds share are written with the letter of the first; docs/reference/documents.md
// lists all.
const (
	// The document as a whole. After one of these the result is empty or holds only
	// what happened to be readable.
	CodeEmpty          = "EA001"
	CodeNotJSON        = "EA500"
	CodeHTML           = "EA501"
	CodeTooDeep        = "EA502"
	CodeNotObject      = "EA503"
	CodeEncrypted      = "EA504"
	CodeA2ACard        = "EA505"
	CodeErrorBody      = "EA506"
	CodeJSONLD         = "EA507"
	CodeNFT            = "WA508"
	CodeUnknown        = "EA509"
	CodeIsFeedback     = "EA518"
	CodeIsValidation   = "EA519"
	CodeIsRegistration = "EF529"
	CodeUTF16          = "EA591"

	// The text.
	CodeDuplicate   = "WA510"
	CodeSurrogate   = "WA511"
	CodeNUL         = "WA512"
	CodeInvalidUTF8 = "WA513"
	CodeBOM         = "IA514"
	CodeTooLong     = "WA515"
	CodeTooMany     = "WA516"
	CodeMore        = "IA517"

	// Members.
	CodeWrongType    = "WA520"
	CodeAlias        = "WA521"
	CodeAliasIgnored = "WA522"
	CodeTypeMissing  = "WA523"
	CodeTypeOther    = "WA524"
	CodeNoName       = "WA525"
	CodeNoText       = "WA526"
	CodeNoImage      = "IA527"
	CodeImageNotURL  = "WA528"
	CodeTrustUnknown = "IA547"
	CodeMisspelled   = "WA548"
	CodeTemplate     = "WA549"
	CodeCredentials  = "WA592"
	CodeChecksum     = "WA593"
	CodeOASFUnknown  = "WA594"

	// Services.
	CodeLegacyEndpoints = "WA031"
	CodeServiceShape    = "WA530"
	CodeServiceText     = "WA531"
	CodeServiceNoName   = "WA532"
	CodeServiceNoURL    = "WA533"
	CodeNoServices      = "IA534"
	CodeEndpointNotURL  = "WA535"
	CodeEndpointScheme  = "WA536"
	CodePlainHTTP       = "IA537"
	CodeEndpointLocal   = "WA538"
	CodeEmailForm       = "WA539"
	CodeWalletForm      = "WA546"

	// Registrations: what the file says of the chain.
	CodeLinkIDText   = "IA540"
	CodeLinkID       = "WA541"
	CodeLinkRegistry = "WA542"
	CodeNoLinks      = "IA543"
	CodeRegistryForm = "WA544"
	CodeLinkOther    = "WA545"

	// Feedback files.
	CodeNoClient       = "WF550"
	CodeClientForm     = "WF551"
	CodeClientBare     = "IF552"
	CodeNoCreated      = "WF553"
	CodeCreatedForm    = "WF554"
	CodeNoValue        = "WF555"
	CodeValueForm      = "WF556"
	CodeDecimalsForm   = "WF557"
	CodeRating         = "IF558"
	CodeFlat           = "IF559"
	CodePaymentPart    = "WF560"
	CodePaymentForm    = "WF561"
	CodeOtherClient    = "EF570"
	CodeOtherAgent     = "EF571"
	CodeOtherValue     = "EF572"
	CodeOtherTag       = "WF573"
	CodeOtherEndpoint  = "WF574"
	CodeCapabilityForm = "IF562"
	CodeScaleForm      = "WF563"

	// Agent cards.
	CodeCardNoVersion   = "WC580"
	CodeCardNoURL       = "WC581"
	CodeCardURL         = "WC582"
	CodeCardNoSkills    = "WC583"
	CodeSkillNoID       = "WC584"
	CodeSkillNoName     = "WC585"
	CodeNoCapabilities  = "IC586"
	CodeNoProtocol      = "IC587"
	CodeSigned          = "IC588"
	CodeSkillDuplicate  = "WC589"
	CodeSchemeUndefined = "WC590"
)
