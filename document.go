package repute

import "time"

// Severity ranks a problem of a document.
type Severity string

// Severities, worst first.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
	SeverityInfo    Severity = "info"
)

// DocumentKind says what a document is, whatever it was published as.
type DocumentKind string

// Kinds of documents. Validation files have no standard form: they are kept and
// hashed, not read.
const (
	RegistrationDocument DocumentKind = "registration"
	FeedbackDocument     DocumentKind = "feedback"
	CardDocument         DocumentKind = "card" // an A2A agent card
	ValidationDocument   DocumentKind = "validation"
	UnknownDocument      DocumentKind = "unknown"
)

// LinkResult says whether a registration file claims to be an agent's file. Only
// both together, the URI on chain and the claim in the file, prove anything.
type LinkResult string

// Results of the check of registrations[].
const (
	LinkLinked   LinkResult = "linked"   // names this chain, registry and token id
	LinkUnlinked LinkResult = "unlinked" // names no agent at all
	LinkOther    LinkResult = "other"    // names agents, this one not among them
)

// Problem is one defect of a document, found by package manifest.
type Problem struct {
	Code     string   // stable, documented in docs/reference/documents.md, e.g. WA031
	Severity Severity //
	Path     string   // JSON pointer, "" for the whole document
	Message  string   // for people; may quote the document, so hostile
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
	DocumentDead    DocumentStatus = "dead"    // failed for good or too often; tried again rarely, if at all
	DocumentDenied  DocumentStatus = "denied"  // the operator does not show it; see Detail
)

// Document is what is known of the bytes behind one URI.
type Document struct {
	Status       DocumentStatus
	Source       string    // data, inline, https, ipfs; "" before the first fetch
	SHA256       [32]byte  // zero when no bytes are known
	Size         int64     // bytes
	Dropped      bool      // the bytes were known and are not kept any more
	FetchedAt    time.Time // zero when never
	Reason       string    // code of the last failure, "" when none (package resolver)
	Detail       string    // the failure in words
	NextTry      time.Time // zero when none is planned
	Registration *Registration
	Problems     []Problem // the first ten where many agents are read at once
	ProblemCount int64     // all of them
}
