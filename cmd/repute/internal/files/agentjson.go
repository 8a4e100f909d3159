package files

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"repute/api/wire"
	"repute/cmd/repute/internal/cli"
	"repute/manifest/agentjson"
	"repute/manifest/agentjson/identity"
	"repute/resolver"
	"repute/resolver/wellknown"
)

// ManifestReport is what manifest check says of an agent.json beside its problems.
type ManifestReport struct {
	// Origin and Version are what the manifest says of itself. Declared is the tier by its members alone, Verified the
	// tier that the evidence proves, which is none where the manifest was not read from its origin.
	Origin   string         `json:"origin"`
	Version  string         `json:"version"`
	Declared agentjson.Tier `json:"declaredTier"`
	Verified agentjson.Tier `json:"verifiedTier"`
	// Served reports whether the host that the manifest names as its origin served these bytes.
	Served bool `json:"servedByOrigin"`
	// Identity is empty where the DID document of the origin has the manifest's key, and else says why it does not
	// count.
	Identity string        `json:"identityProblem,omitempty"`
	KeyForm  identity.Form `json:"keyForm,omitempty"`
	// Signature is the state of the signature of the commitments, and Unsigned why it does not count, "" where it does.
	Signature agentjson.SignatureState `json:"signature"`
	Unsigned  string                   `json:"signatureProblem,omitempty"`
	// Issuer is nil where the manifest names none.
	Issuer *issuerReport `json:"issuer,omitempty"`
	// Intents are as the API writes them.
	Intents []wire.ManifestIntent `json:"intents"`
}

// issuerReport says whether the issuer that a manifest names is in the given registry. Verified needs both: the
// issuer's entry, and Proven, its signature of the manifest. Reason says what is missing, "" for nothing.
type issuerReport struct {
	Verified bool   `json:"verified"`
	Proven   bool   `json:"proven"`
	Reason   string `json:"reason,omitempty"`
}

// isDomain reports whether an argument names a domain and no file: its last label is letters, and no usual ending. A
// name with an ending of a file is none, so that a misspelled name of a file is not asked of the network. Letters are
// those of ASCII, so that the last label of an address or of an agent's id, which has digits, makes no domain.
func isDomain(what string) bool {
	last := what[strings.LastIndexByte(what, '.')+1:]
	return strings.Contains(what, ".") && !strings.ContainsAny(what, `/\:@?# `) && len(last) > 1 &&
		strings.Trim(strings.ToLower(last), "abcdefghijklmnopqrstuvwxyz") == "" &&
		!slices.Contains([]string{"json", "yaml", "yml", "txt", "md", "html"}, strings.ToLower(last))
}

// isManifestURL reports whether a URL is that of a manifest, which speaks for the host that serves it.
func (how judging) isManifestURL(uri string) bool {
	u, err := url.Parse(uri)
	if err != nil || !strings.EqualFold(u.Scheme, "https") {
		return false
	}
	return how.kind == agentjson.Document || how.kind == kindAuto && path.Base(u.Path) == "agent.json"
}

// isElsewhere reports whether a URL leads to another host, where no manifest can be but a file of another kind may. A
// manifest proves something of the host that served it, so that the fetcher of manifests follows no redirect to another
// one; the fetcher of other documents does.
func isElsewhere(err error) bool {
	var failure *resolver.Error
	return errors.As(err, &failure) && failure.Reason == resolver.ReasonRedirects
}

// checkDomain fetches and verifies the manifest of a domain. The path is chosen by the fetcher:
// /.well-known/agent.json, or /agent.json where the first one does not exist.
func checkDomain(ctx context.Context, p *cli.Program, domain string, how judging) (Report, error) {
	client, err := p.Resolver()
	if err != nil {
		return Report{}, err
	}
	defer client.Close()
	fetcher := wellknown.New(client)
	found, err := fetcher.Manifest(ctx, domain, wellknown.Known{})
	if err != nil {
		return Report{}, unfetched(domain, err)
	}
	if how.kind == kindAuto {
		how.kind = agentjson.Document
	}
	return judgeFound(ctx, fetcher, found, how)
}

// checkManifestURL fetches and verifies the manifest at a URL. A document of another kind is judged as what it is. The
// error wraps its cause, so that the caller can try the URL as that of another kind of document.
func checkManifestURL(ctx context.Context, client *resolver.Client, uri string, how judging) (Report, error) {
	fetcher := wellknown.New(client)
	found, err := fetcher.At(ctx, uri, wellknown.Known{})
	if err != nil {
		return Report{}, &unread{unfetched(uri, err), err}
	}
	if how.kind == kindAuto && detect(found.Bytes) != agentjson.Document {
		return judge(shortened(uri), found.Bytes, how), nil
	}
	return judgeFound(ctx, fetcher, found, how)
}

// unread is the error that users read, with the error that it is about. Without it the caller would have to judge by
// the text, which is made for people.
type unread struct{ text, cause error }

// Error returns the text for users.
func (u *unread) Error() string { return u.text.Error() }

// Unwrap returns the cause.
func (u *unread) Unwrap() error { return u.cause }

// judgeFound verifies a manifest with the documents of its origin. Documents of another host are not asked for: nothing
// that it says of itself can prove a manifest of this one. A document that cannot be read proves nothing, which the
// verdict says.
func judgeFound(ctx context.Context, fetcher *wellknown.Fetcher, found wellknown.Found, how judging) (Report, error) {
	if how.kind != kindAuto && how.kind != agentjson.Document {
		return judge(shortened(found.URL), found.Bytes, how), nil
	}
	m, _ := agentjson.Parse(found.Bytes, agentjson.Options{Host: found.Host})
	evidence := agentjson.Evidence{Host: found.Host, Now: time.Now()}
	if agentjson.SameHost(m.Origin, found.Host) {
		for _, fetch := range agentjson.Fetches(m) {
			if b, err := fetcher.Document(ctx, fetch.URL); err == nil { // the verdict says what is missing
				evidence.Add(fetch.Purpose, b)
			}
		}
	}
	if how.registry != "" {
		registry, err := identity.ReadRegistry(os.DirFS(how.registry), evidence.Now)
		if err != nil {
			return Report{}, err
		}
		evidence.Registry = registry
	}
	return judgeManifest(shortened(found.URL), found.Bytes, how, evidence), nil
}

// judgeManifest judges an agent.json and what is proven of it. A text that is so far from a manifest that it has
// neither version nor origin gets no part about tiers: it would say no more than the problems do.
func judgeManifest(source string, b []byte, how judging, evidence agentjson.Evidence) Report {
	options := agentjson.Options{Host: evidence.Host}
	if how.strict {
		options.Profile = agentjson.Strict
	}
	m, problems := agentjson.Parse(b, options)
	report := reportOf(source, agentjson.Document, m.DisplayName, b, problems)
	if m.Version == "" && m.Origin == "" {
		return report // no manifest
	}
	v := agentjson.Verify(m, problems, evidence)
	report.Manifest = &ManifestReport{Origin: m.Origin, Version: m.Version, Declared: v.Declared, Verified: v.Verified,
		Served: v.Served, Identity: v.IdentityReason, KeyForm: v.KeyForm, Signature: v.Signature,
		Unsigned: v.SignatureReason,
		Intents:  wire.EncodeManifestIntents(&m)}
	if v.Issuer != nil {
		report.Manifest.Issuer = &issuerReport{v.Issuer.Verified, v.Issuer.Proven, v.Issuer.Reason}
	}
	return report
}

// write prints tiers and payments; nothing for other kinds of documents. A nil report prints nothing. Reasons quote the
// manifest and the documents of its origin, and are made safe.
func (r *ManifestReport) write(b *strings.Builder) {
	if r == nil {
		return
	}
	fmt.Fprintf(b, "  tier    declared %s, verified %s\n", r.Declared, r.Verified)
	if !r.Served {
		b.WriteString("  origin  not verified: give the domain to check the manifest where it is served\n")
	}
	if r.Identity != "" && r.Declared >= agentjson.TierIdentified {
		fmt.Fprintf(b, "  key     %s\n", cli.Visible(r.Identity))
	} else if r.KeyForm != "" {
		fmt.Fprintf(b, "  key     in the DID document of the origin, as %s\n", r.KeyForm)
	}
	if r.Signature != agentjson.SignatureNone {
		fmt.Fprintf(b, "  signed  %s %s\n", r.Signature, cli.Visible(r.Unsigned))
	}
	if r.Issuer != nil {
		fmt.Fprintf(b, "  issuer  verified: %t %s\n", r.Issuer.Verified, cli.Visible(r.Issuer.Reason))
	}
	for _, in := range r.Intents {
		for _, w := range in.Terms.Ways {
			fmt.Fprintf(b, "  pay     %s\n",
				cli.Visible(strings.Join(strings.Fields(fmt.Sprintf("%s by %s %s %s: %s %s to %s",
					in.Name, w.Protocol, orNothing(w.Network), orNothing(w.Asset), orNothing(w.Direct),
					orNothing(w.Currency),
					orNothing(w.Recipient))), " ")))
		}
	}
}

// orNothing is the text that a pointer names, empty for none.
func orNothing[T ~string](s *T) T {
	if s == nil {
		return ""
	}
	return *s
}
