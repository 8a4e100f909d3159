package repute

import (
	"encoding/json"
	"time"
)

// Severity ranks a problem of a document.
type Severity string

// Severities, worst first.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
	SeverityInfo    Severity = "info"
)

// Problem is one defect of a document, found by package manifest.
type Problem struct {
	Code     string   // stable, documented in package manifest, e.g. WA031
	Severity Severity //
	Path     string   // JSON pointer, "" for the whole document
	Message  string   // for people; may quote the document, so hostile
}

// Registration is an agent's registration file (ERC-8004 "Agent URI and
// registration file"). Strings are valid UTF-8 without NUL and bounded.
type Registration struct {
	Type           string
	Name           string
	Description    string
	Image          string
	Services       []Service
	X402           *bool // nil when absent
	Active         *bool // nil when absent
	Registrations  []RegistrationLink
	SupportedTrust []string
	Extra          map[string]json.RawMessage // unknown members, as written
	// Partial: members were left out because many agents were read at once.
	Partial bool
}

// Service is one endpoint an agent offers.
type Service struct {
	Name     string // as written: MCP, A2A, web, OASF, …
	Endpoint string
	Version  string
	Skills   []string
	Domains  []string
	Extra    map[string]json.RawMessage
}

// RegistrationLink is a registration file's claim to be an agent's file.
type RegistrationLink struct {
	TokenID  *TokenID // nil when null or unreadable
	Registry string   // eip155:{chain}:{address}, as written
}

// DocumentStatus says how far the document behind a URI is known.
type DocumentStatus string

// States of a URI's document.
const (
	DocumentNone    DocumentStatus = "none"    // the URI is empty
	DocumentPending DocumentStatus = "pending" // not fetched yet
	DocumentOK      DocumentStatus = "ok"      // fetched and parsed without errors
	DocumentInvalid DocumentStatus = "invalid" // fetched, parsed with errors
	DocumentFailed  DocumentStatus = "failed"  // could not be fetched; see Reason
)

// Document is what is known of the bytes behind one URI.
type Document struct {
	Status       DocumentStatus
	Source       string    // data, inline, https, ipfs; "" before the first fetch
	SHA256       [32]byte  // zero when no bytes are known
	Size         int64     // bytes
	FetchedAt    time.Time // zero when never
	Reason       string    // code of the last failure, "" when none (package resolver)
	Detail       string    // the failure in words
	NextTry      time.Time // zero when none is planned
	Registration *Registration
	Problems     []Problem // the first ten where many agents are read at once
	ProblemCount int64     // all of them
}
