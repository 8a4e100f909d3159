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

// SeverityOf returns the severity of a problem's code, which its first letter says: E, W or I.
func SeverityOf(code string) Severity {
	switch code[0] {
	case 'E':
		return SeverityError
	case 'W':
		return SeverityWarning
	}
	return SeverityInfo
}

// Has reports whether a problem has a severity.
func (p Problem) Has(s Severity) bool { return p.Severity == s }

// CountSeverity returns how many problems have a severity. P is Problem or a type that embeds it.
func CountSeverity[P interface{ Has(Severity) bool }](problems []P, s Severity) (n int) {
	for _, p := range problems {
		if p.Has(s) {
			n++
		}
	}
	return n
}

// HasErrors reports whether a document with these problems is unusable.
func HasErrors(problems []Problem) bool {
	_, has := FirstError(problems)
	return has
}

// FirstError returns the first problem that is an error. ok is false where a document has none and is usable. P is
// Problem or a type that embeds it.
func FirstError[P interface{ Has(Severity) bool }](problems []P) (p P, ok bool) {
	for _, p := range problems {
		if p.Has(SeverityError) {
			return p, true
		}
	}
	return p, false
}

// DocumentKind is the kind of a document by its contents.
type DocumentKind string

// Kinds of documents. Validation files have no standard form: they are stored and hashed but not
// parsed.
const (
	RegistrationDocument DocumentKind = "registration"
	FeedbackDocument     DocumentKind = "feedback"
	CardDocument         DocumentKind = "card" // an A2A agent card
	ValidationDocument   DocumentKind = "validation"
	UnknownDocument      DocumentKind = "unknown"
)

// LinkResult is whether a registration file claims to be an agent's file. Only the URI on chain and
// the claim in the file together prove it.
type LinkResult string

// Results of the check of registrations[].
const (
	LinkLinked   LinkResult = "linked"   // names this chain, registry and token id
	LinkUnlinked LinkResult = "unlinked" // names no agent at all
	LinkOther    LinkResult = "other"    // names other agents only
)

// Problem is one defect of a document, found by package manifest.
type Problem struct {
	Code     string   // stable, documented in docs/reference/documents.md, e.g. WA031
	Severity Severity //
	Path     string   // JSON pointer, "" for the whole document
	Message  string   // for people; may quote the document, so hostile
}

// DocumentStatus is the state of the document behind a URI.
type DocumentStatus string

// States of a URI's document.
const (
	DocumentNone    DocumentStatus = "none"    // the URI is empty
	DocumentPending DocumentStatus = "pending" // not fetched yet
	DocumentOK      DocumentStatus = "ok"      // fetched and parsed without errors
	DocumentInvalid DocumentStatus = "invalid" // fetched, parsed with errors
	DocumentFailed  DocumentStatus = "failed"  // could not be fetched; see Reason
	DocumentDead    DocumentStatus = "dead"    // failed permanently or too often; retried rarely or never
	DocumentDenied  DocumentStatus = "denied"  // the operator does not show it; see Detail
)

// Document describes the bytes behind one URI.
type Document struct {
	Status       DocumentStatus
	Source       string    // data, inline, https, ipfs; "" before the first fetch
	SHA256       [32]byte  // zero when no bytes are known
	Size         int64     // bytes
	Dropped      bool      // the bytes were read and are no longer stored
	FetchedAt    time.Time // zero when never
	Reason       string    // code of the last failure, "" when none (package resolver)
	Detail       string    // text of the last failure
	NextTry      time.Time // time of the next fetch, zero when none is planned
	Registration *Registration
	Problems     []Problem // problems; only the first ten in lists of agents
	ProblemCount int64     // all of them
}
