package agentjson

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"repute"
	"repute/internal/jsonwalk"
)

// Profile says how a manifest is judged.
// The zero value is Lenient.
type Profile int

// Profiles. Lenient is for readers: what the specification tells runtimes to ignore is a warning. Strict is for
// publishers: whatever upstream's schema or its validator rejects is an error.
const (
	Lenient Profile = iota
	Strict
)

// Options say how a manifest is read. The zero value is for a manifest whose host is not known.
type Options struct {
	Profile Profile
	// Host served the manifest: a name without a port. Another origin is an error. "" skips the check.
	Host string
}

// Parse reads a manifest.
//
// The order of the problems is that of the passes: the document as a whole, its text, then its members. They are at
// most maxProblems, and CodeMore after them. The manifest has copies of what it keeps, and holds neither b nor the
// room.
func Parse(b []byte, o Options) (Manifest, []repute.Problem) {
	r := &reader{strict: o.Profile == Strict}
	r.borrow()
	defer r.giveBack()
	root := r.document(b)
	if root == nil {
		return Manifest{}, r.problems
	}
	return r.manifest(root, o.Host), r.problems
}

// document opens the object of the document and reports what is wrong with the document as a whole; nil when there is
// nothing to read.
//
// Depth is known before anything descends, so that a hostile document cannot exhaust the stack.
func (r *reader) document(b []byte) *object {
	if len(b) > MaxBytes {
		r.add(CodeTooLarge, "", "%d bytes, at most %d are read", len(b), MaxBytes)
		return nil
	}
	if marked, ok := bytes.CutPrefix(b, []byte("\xef\xbb\xbf")); ok {
		r.add(CodeBOM, "", "starts with a byte order mark")
		b = marked
	}
	b = bytes.TrimSpace(b)
	lex := r.index.Scan(b)
	r.plain = lex.Depth <= maxJSONDepth && isPlain(b)
	if !r.isObject(b, lex) {
		return nil
	}
	root := r.open(member{raw: b}, nil, "", -1)
	if !r.expected(root) {
		return nil
	}
	r.lexical(b, lex)
	return root
}

// isPlain reports whether the text is JSON in valid UTF-8, without half surrogate pairs and without repeated names. It
// finds that out for most documents in one pass, so that the passes that would name what is wrong are not needed.
func isPlain(b []byte) bool {
	return jsontext.Value(b).IsValid(jsontext.AllowDuplicateNames(false), jsontext.AllowInvalidUTF8(false))
}

// isObject reports whether the bytes are one JSON object that is safe to descend into.
func (r *reader) isObject(b []byte, lex jsonwalk.Lexical) bool {
	switch {
	case len(b) == 0:
		r.add(CodeEmpty, "", "the document is empty")
	case jsonwalk.IsWide(b):
		r.add(CodeUTF16, "", "the document is UTF-16 or UTF-32 text")
	case b[0] == '<':
		r.add(CodeHTML, "", "the document is HTML or XML")
	case lex.Depth > maxJSONDepth:
		r.add(CodeTooDeep, "", "nested deeper than %d levels", maxJSONDepth)
	case !r.plain && !json.Valid(b):
		r.add(CodeNotJSON, "", "%s", jsonwalk.SyntaxError(b))
	case b[0] != '{':
		r.add(CodeNotObject, "", "the document is %s, not an object", jsonwalk.Type(b))
	default:
		return true
	}
	return false
}

// expected reports whether the document is meant as agent.json, and adds a problem that names what it is instead.
func (r *reader) expected(root *object) bool {
	switch format := root.format(); format {
	case FormatAgentJSON:
		return true
	case FormatA2ACard:
		r.add(CodeA2ACard, "", "the document is %s", format.Title())
	case FormatUnknown:
		r.add(CodeUnknown, "", "the document has none of version, origin and payout_address")
	default:
		r.add(CodeOther, "", "the document is %s", format.Title())
	}
	return false
}

// lexical reports what is wrong with the document as text.
func (r *reader) lexical(b []byte, lex jsonwalk.Lexical) {
	if lex.Surrogates > 0 {
		r.add(CodeSurrogate, "", "%d half surrogate pairs", lex.Surrogates)
	}
	if lex.NULs > 0 {
		r.add(CodeNUL, "", "%d NUL characters", lex.NULs)
	}
	if r.plain {
		return
	}
	if !utf8.Valid(b) {
		r.add(CodeInvalidUTF8, "", "invalid UTF-8")
	}
	jsonwalk.Duplicates(b, func(pointer string) bool {
		r.add(CodeDuplicate, pointer, "repeated")
		return !r.full()
	})
}

// manifest reads the root.
//
// The origin comes before the members that are compared with it, and the networks of the root before the intents,
// whose prices name them.
func (r *reader) manifest(o *object, host string) Manifest {
	m := Manifest{
		Version:       o.version(),
		Origin:        o.origin(host),
		PayoutAddress: o.required("payout_address", maxShort),
		DisplayName:   o.text("display_name", maxText),
		Description:   o.text("description", maxText),
	}
	o.address("payout_address", m.PayoutAddress)
	o.length("display_name", m.DisplayName, 0, 100)
	o.length("description", m.Description, 0, 500)
	m.Identity = o.identity(m.Origin)
	m.Bounty = o.reward("bounty")
	m.Incentive = o.reward("incentive")
	m.X402 = o.rootX402("x402", true)
	m.Payments = o.payments()
	if m.Payments != nil && m.Payments.X402 != nil && o.has("x402") {
		r.add(CodeLegacy, "/x402", "payments.x402 is read instead")
	}
	m.Intents = o.intents(m.Origin, rootNetworks(m.rootX402()))
	m.Commitments = o.commitments(m.Identity)
	m.Extensions = o.extensions()
	o.unknown(&m.Extra)
	r.later(o, m)
	return m
}

// rootX402 returns how the service is paid by x402, nil if it is not.
func (m *Manifest) rootX402() *X402 {
	if m.Payments != nil && m.Payments.X402 != nil {
		return m.Payments.X402
	}
	return m.X402
}

// versions are those that the specification defines.
func versions() []string { return []string{"1.0", "1.1", "1.2", "1.3", "1.4"} }

// version reads the version. A later minor version is read like the last known one, because minor versions only add
// members.
func (o *object) version() string {
	v := o.required("version", maxShort)
	if v == "" || slices.Contains(versions(), v) {
		return v
	}
	minor, ok := strings.CutPrefix(v, "1.")
	if ok && minor != "" && strings.Trim(minor, "0123456789") == "" && minor[0] != '0' {
		o.r.add(CodeMinor, "/version", "version %.*q is later than 1.4", maxQuotedValue, v)
	} else {
		o.r.add(CodeVersion, "/version", "version %.*q", maxQuotedValue, v)
	}
	return v
}

// later reports members of later versions than the manifest's own.
// Versions are compared as texts, which the three characters of "1.x" allow.
func (r *reader) later(o *object, m Manifest) {
	report := func(used bool, since, path string) {
		if used && m.Version < since {
			r.add(CodeLater, path, "of version %s, the manifest is of %s", since, m.Version)
		}
	}
	if len(m.Version) != len("1.0") || !strings.HasPrefix(m.Version, "1.") {
		return
	}
	report(o.has("x402"), "1.1", "/x402")
	report(m.X402 != nil && len(m.X402.Networks) > 1, "1.2", "/x402/networks")
	report(o.has("payments"), "1.3", "/payments")
	report(o.has("commitments"), "1.4", "/commitments")
	report(m.Identity != nil && m.Identity.IssuerID != "", "1.4", "/identity/oatr_issuer_id")
}
