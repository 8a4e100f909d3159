// Package files has the commands for files that agents and their clients publish: `repute manifest` for one file, and
// `repute documents` for those that the index has read or is about to read.
//
// manifest check finds a document by what the argument looks like (a file, a URL, a CID, a domain, the id of an indexed
// agent, or "-"), in the order of checkDocument, and judges it by the package of its kind: manifest, manifest/agentjson
// or manifest/schemas. A manifest that comes from a domain is verified too, with the documents that its tier needs, all
// of them from that domain. The result is a [Report], which is printed as text or JSON. Documents are read through the
// same guard and within the same bounds as the index reads them, so that what check accepts the index can read.
//
// manifest new, keygen, sign and did write files for a publisher. A key never leaves the file that it was written to.
//
// The commands of documents change the queue and the deny-list in the database. A process with the role documents acts
// on them; nothing is fetched here.
package files

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"repute"
	"repute/cmd/repute/internal/cli"
	"repute/cmd/repute/internal/config"
	"repute/manifest"
	"repute/manifest/agentjson"
	"repute/manifest/schemas"
	"repute/resolver"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/query"
)

// checkTimeout bounds fetching one document. With it all documents that a tier of agent.json needs are fetched too.
const checkTimeout = time.Minute

// ManifestCommand returns the command that checks one published file.
func ManifestCommand(p *cli.Program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "manifest",
		Short: "check the files that agents and their clients publish; make and sign agent.json",
	}
	cmd.AddCommand(manifestCheckCommand(p), manifestNewCommand(p), manifestKeygenCommand(p), manifestSignCommand(p),
		manifestDIDCommand(p))
	return cmd
}

// manifestCheckCommand returns `repute manifest check`. Its exit codes are cli.CodeFailed and cli.CodeUnchecked: a
// script can distinguish a document with errors from one that could not be read.
func manifestCheckCommand(p *cli.Program) *cobra.Command {
	var how judging
	cmd := &cobra.Command{
		Use:   "check FILE|URL|CID|DOMAIN|AGENT|-",
		Short: "list what is wrong with a registration file, a feedback file, an agent card, agent.json or agent_log.json",
		Long: `List what is wrong with a registration file, a feedback file, an A2A agent card, an
agent.json, or the capability manifest (agent.json) or log (agent_log.json) of an
orchestrator's agent: a local file, a URL (https, ipfs, data), an ipfs CID, standard
input (-), or the file of an indexed agent. Only an agent needs a database. Of a domain
it is /.well-known/agent.json, or /agent.json where that does not exist; what its tier
needs is fetched from the same domain and verified.

Exits with 0 when there are no errors, 1 when there are, 2 when the document could
not be read.`,
		Example: "  repute manifest check agent.json\n" +
			"  repute manifest check https://agent.example/agent.json --json\n" +
			"  repute manifest check agent.example --strict\n  repute manifest check 8453:22",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(checkKinds, string(how.kind)) {
				return repute.Invalid("kind", fmt.Sprintf("%q is none", how.kind),
					"one of "+strings.Join(checkKinds, ", "))
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), checkTimeout)
			defer cancel()
			report, err := checkDocument(ctx, p, args[0], how)
			if err != nil {
				return p.Unreadable(shortened(args[0]), err)
			}
			if err := p.Show(report, report.write); err != nil {
				return err
			}
			if report.Errors > 0 {
				return cli.ExitError{Code: cli.CodeFailed,
					Text: cli.Count(report.Errors, "error") + " in " + report.Source}
			}
			return nil
		},
	}
	p.Flags.Database(cmd.Flags())
	p.Flags.Reading(cmd.Flags())
	cmd.Flags().StringVar((*string)(&how.kind), "kind", kindAuto,
		"what it is meant to be: "+strings.Join(checkKinds, ", "))
	cmd.Flags().BoolVar(&how.strict, "strict", false,
		"judge an agent.json as its publisher wants it judged, not as a reader does")
	cmd.Flags().StringVar(&how.registry, "oatr", "",
		"directory with the files of the Open Agent Trust Registry, for the issuer of an agent.json")
	p.JSONFlag(cmd.Flags(), "print one JSON object")
	return cmd
}

// kindAuto is the value of --kind that leaves the kind to detect. It is no kind of the index.
const kindAuto = "auto"

// checkKinds are the values of --kind. Validation files are not among them: they have no standard form to be checked
// by.
var checkKinds = []string{kindAuto, string(repute.RegistrationDocument), string(repute.FeedbackDocument),
	string(repute.CardDocument), string(agentjson.Document),
	string(schemas.CapabilityDocument), string(schemas.LogDocument)}

// checkDocument finds the document and judges it. A file of that name wins over everything that is no URL. The order
// is: standard input, a URL unless a file has that name, a file, an agent's id, a domain, and what is left is explained
// by what it looks like. A file therefore hides a domain of the same name, which the URL of its manifest still finds.
func checkDocument(ctx context.Context, p *cli.Program, what string, how judging) (Report, error) {
	if what == "-" {
		b, err := readDocument(p.Stdin, "standard input")
		return judge("standard input", b, how), err
	}
	ref := resolver.Classify(what)
	if remote := ref.Kind != resolver.KindUnsupported && ref.Kind != resolver.KindEmpty; remote && !isFile(what) {
		return checkRemote(ctx, p, what, how)
	}
	if isFile(what) {
		b, err := readFileDocument(what)
		return judge(what, b, how), err
	}
	if agent, err := repute.ParseAgentRef(what); err == nil {
		return checkAgent(ctx, p, agent, how.kind)
	}
	switch {
	case isDomain(what):
		return checkDomain(ctx, p, what, how)
	case isDirectory(what):
		return Report{}, repute.Invalid("document", fmt.Sprintf("%.200q is a directory", what), "give the file in it")
	case ref.Reason != resolver.ReasonNotURI && ref.Kind != resolver.KindEmpty:
		return checkRemote(ctx, p, what, how)
	case strings.ContainsAny(what, `./\`):
		return Report{}, repute.Invalid("document", fmt.Sprintf("there is no file %.200q", what),
			"give a file, a URL with its scheme, an ipfs CID or an agent id")
	}
	return Report{}, repute.Invalid("document", fmt.Sprintf("%.80q is no file, URL, CID or agent", what),
		"agents: "+repute.AgentIDForms)
}

// isFile reports whether an argument is a file here. Otherwise it is taken for a domain.
func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && !info.IsDir()
}

// isDirectory reports whether an argument is a directory here.
func isDirectory(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// readFileDocument reads a document within the bound of published ones: a larger one would not be read from its host
// either. The error of a file that cannot be opened is that of the system.
func readFileDocument(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readDocument(f, name)
}

// readDocument refuses a document that is too large, like every reader of published documents.
func readDocument(from io.Reader, name string) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(from, resolver.DefaultMaxBytes+1))
	if err == nil && len(b) > resolver.DefaultMaxBytes {
		return nil, repute.Invalid("document",
			fmt.Sprintf("%.200s has more than %d bytes", name, resolver.DefaultMaxBytes),
			"readers take no more than that: shorten it")
	}
	return b, err
}

// checkRemote reads a URI as the index would, through the same guard. A URL of agent.json is first asked as a manifest,
// which must be served by its own host. Where its host redirects to another one, and no kind was demanded, the document
// is fetched as any other.
func checkRemote(ctx context.Context, p *cli.Program, uri string, how judging) (Report, error) {
	client, err := p.Resolver()
	if err != nil {
		return Report{}, err
	}
	defer client.Close()
	if how.isManifestURL(uri) {
		report, err := checkManifestURL(ctx, client, uri, how)
		if !isElsewhere(err) || how.kind != kindAuto {
			return report, err
		}
	}
	doc, err := client.Fetch(ctx, uri)
	if err != nil {
		return Report{}, unfetched(uri, err)
	}
	return judge(shortened(uri), doc.Bytes, how), nil
}

// unfetched describes a failed fetch: the reason, the error and the fix. A fetch that the caller canceled keeps its
// error, because its reason says nothing about the document.
func unfetched(uri string, err error) error {
	var failure *resolver.Error
	if !errors.As(err, &failure) || failure.Reason == resolver.ReasonCanceled {
		return fmt.Errorf("read %.120s: %w", uri, err)
	}
	reason := string(failure.Reason) + ": " // which causes begin with as well
	text := strings.ReplaceAll(failure.Error(), reason+reason, reason)
	if hint := fetchHint(failure.Reason); hint != "" {
		text += " (" + hint + ")"
	}
	return fmt.Errorf("read %.120s: %s", uri, text)
}

// fetchHint returns the fix for a document that cannot be fetched.
func fetchHint(reason resolver.Reason) string {
	switch reason {
	case resolver.ReasonHTTPDisabled:
		return "plain http is not read: serve the file over https"
	case resolver.ReasonUnsupportedScheme, resolver.ReasonNotURI:
		return "what is read: https, ipfs and data: URLs"
	case resolver.ReasonBlockedHost, resolver.ReasonBlockedAddress, resolver.ReasonBlockedPort:
		return "indexers read public hosts at the usual ports only; to try a server of your own: --allow-host host:port"
	case resolver.ReasonBadCID:
		return "write ipfs://{cid}/{path}"
	case resolver.ReasonTLS:
		return "the certificate must be valid for the host and signed by a public authority"
	case resolver.ReasonDirectory:
		return "name the file in the directory: ipfs://{cid}/{file}"
	case resolver.ReasonTooLarge:
		return "readers take no more than 1 MiB: shorten it"
	}
	return ""
}

// shortened returns a URI for output; a data: URI is cut, because it contains the document.
func shortened(uri string) string {
	const most = 120
	if len(uri) <= most {
		return uri
	}
	return uri[:most] + "…"
}

// checkAgent reports the indexed data of an agent's registration file, and whether the file names the agent. The bytes
// are not fetched: the report is of the newest version that the index has read, and has no lines and columns.
func checkAgent(ctx context.Context, p *cli.Program, ref repute.AgentRef, kind repute.DocumentKind) (Report, error) {
	if kind != kindAuto && kind != repute.RegistrationDocument {
		return Report{}, repute.Invalid("kind", "an agent has a registration file",
			"leave --kind out, or give the URL of the document")
	}
	var report Report
	err := p.WithStore(ctx, func(c config.Config, db *store.DB) error {
		id, err := chaindb.ResolveAgent(ctx, db, ref, c.DefaultChain)
		if err != nil {
			return err
		}
		agent, _, err := query.Agent(ctx, db, id, repute.At{Finality: repute.Latest})
		if err != nil {
			return err
		}
		report, err = judgeAgent(agent)
		return err
	})
	return report, err
}

// judgeAgent returns the report about an agent whose file was read.
func judgeAgent(agent repute.Agent) (Report, error) {
	doc := agent.Document
	if doc.Registration == nil && len(doc.Problems) == 0 {
		reason := cmp.Or(doc.Detail, doc.Reason, "not read yet")
		if doc.Status == repute.DocumentNone {
			reason = "the agent has no URI"
		}
		return Report{}, fmt.Errorf("no document of agent %s: %s: %s", agent.ID, doc.Status, reason)
	}
	problems := slices.Clone(doc.Problems)
	if doc.Registration != nil {
		problems = append(problems, manifest.MatchRegistration(*doc.Registration, agent.ID)...)
	}
	report := newReport(agent.ID.String(), repute.RegistrationDocument, problems)
	report.Bytes, report.SHA256 = doc.Size, fmt.Sprintf("0x%x", doc.SHA256)
	report.URI = shortened(agent.URI)
	if doc.Registration != nil { // bytes that are no JSON object name no agent
		report.Name = doc.Registration.Name
		report.Link = manifest.Links(*doc.Registration, agent.ID)
	}
	return report, nil
}

// judging says how a document is judged.
type judging struct {
	kind     repute.DocumentKind // kindAuto for the detected one
	strict   bool                // of an agent.json
	registry string              // directory of the issuers' registry, "" for none
}

// judge parses bytes as the expected kind of document, or as the detected one. A kind that is not known is judged as a
// registration file, which is what most URIs of agents lead to.
func judge(source string, b []byte, how judging) Report {
	kind := how.kind
	if kind == kindAuto {
		kind = detect(b)
	}
	var name string
	var problems []repute.Problem
	switch kind {
	case agentjson.Document:
		return judgeManifest(source, b, how, agentjson.Evidence{})
	case repute.FeedbackDocument:
		_, problems = manifest.ParseFeedback(b)
	case repute.CardDocument:
		var card repute.AgentCard
		card, problems = manifest.ParseCard(b)
		name = card.Name
	case schemas.CapabilityDocument, schemas.LogDocument:
		name, problems = judgeOwn(b, kind)
	case repute.ValidationDocument: // has no standard form
	default:
		var reg repute.Registration
		reg, problems = manifest.Parse(b)
		name = reg.Name
	}
	return reportOf(source, kind, name, b, problems)
}

// reportOf returns the report on the bytes of a document.
func reportOf(source string, kind repute.DocumentKind, name string, b []byte, problems []repute.Problem) Report {
	report := newReport(source, kind, problems)
	report.Name, report.Bytes, report.SHA256 = name, int64(len(b)), fmt.Sprintf("0x%x", sha256.Sum256(b))
	report.locate(b)
	return report
}

// detect returns the kind of a document by its contents: documents of orchestrators name their
// schema.
func detect(b []byte) repute.DocumentKind {
	if kind, ok := schemas.Detect(b); ok {
		return kind
	}
	if agentjson.Detect(b) == agentjson.FormatAgentJSON {
		return agentjson.Document
	}
	return manifest.Detect(b)
}

// judgeOwn validates a document of an orchestrator's agent by its schema. Capability manifests have the name at the
// top, and logs in the member agent.
func judgeOwn(b []byte, kind repute.DocumentKind) (name string, problems []repute.Problem) {
	problems, err := schemas.Check(kind, b)
	if err != nil {
		problems = []repute.Problem{{Code: schemas.CodeSchema, Severity: repute.SeverityError, Message: err.Error()}}
	}
	var doc struct {
		Name  string
		Agent struct{ Name string }
	}
	_ = json.Unmarshal(b, &doc) // unreadable JSON is among the problems already
	return cmp.Or(doc.Name, doc.Agent.Name), problems
}
