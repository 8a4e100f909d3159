package wire

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"repute"
	"repute/internal/httpapi"
)

// Each translates a slice; the result is never nil, so that it encodes as [].
func Each[D, W any](in []D, f func(D) W) []W {
	out := make([]W, 0, len(in))
	for _, d := range in {
		out = append(out, f(d))
	}
	return out
}

// OrNull is nil for the zero value.
func OrNull[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// AddressOf writes an address with its EIP-55 checksum.
func AddressOf(a common.Address) Address { return Address(a.Hex()) }

// encodeAddress writes the zero address, which registries use for none, as null.
func encodeAddress(a common.Address) *Address {
	if a == (common.Address{}) {
		return nil
	}
	return OrNull(AddressOf(a))
}

// encodeHash writes the zero hash as null.
func encodeHash(h common.Hash) *Hash {
	if h == (common.Hash{}) {
		return nil
	}
	return OrNull(Hash(h.Hex()))
}

// EncodeTime is null for the zero time.
func EncodeTime(t time.Time) *Time {
	if t.IsZero() {
		return nil
	}
	return OrNull(Time(t.UTC().Format(time.RFC3339Nano)))
}

// EncodePoint writes where on the chain something happened.
func EncodePoint(p repute.Point) Point {
	return Point{Block: Long(p.Block), LogIndex: Long(p.LogIndex), TxHash: Hash(p.TxHash.Hex()),
		Time: EncodeTime(p.Time)}
}

// encodeAmount writes a value as an exact integer, its decimals, and the number that both make.
func encodeAmount(a repute.Amount) Amount {
	value := BigInt("0")
	if a.Value != nil {
		value = BigInt(a.Value.String())
	}
	return Amount{Value: value, Decimals: int32(a.Decimals), Decimal: Decimal(a.Decimal())}
}

// EncodeAgent is of the newest view.
func EncodeAgent(a repute.Agent) Agent { return EncodeAgentAt(a, repute.At{Finality: repute.Latest}) }

// EncodeAgentAt writes an agent as of a block. Long texts are cut, and the answer names the path
// of each whole one.
func EncodeAgentAt(a repute.Agent, at repute.At) Agent {
	texts := unboundedCutter()
	document := newDocumentCutter()
	if r := a.Document.Registration; r != nil {
		brief := document.registration(*r)
		a.Document.Registration, document.any = &brief, brief.Partial
	}
	w := Agent{
		ID: ID(a.ID.String()), ShortID: ID(a.ID.Short()), ChainID: Long(a.ID.ChainID),
		Registry: AddressOf(a.ID.Registry), TokenID: BigInt(a.ID.TokenID.Dec()),
		Owner: AddressOf(a.Owner), OwnerClaimed: a.OwnerClaimed,
		Wallet: encodeAddress(a.Wallet), Approved: encodeAddress(a.Approved),
		URISize: Long(a.URISize), Metadata: encodeMetadata(a, texts), MetadataCount: Long(a.MetadataCount),
		Registered: EncodePoint(a.Registered), Updated: EncodePoint(a.Updated),
		Counts: EncodeCounts(a.Counts), Document: encodeDocument(a.Document, document),
		Standing: EncodeStanding(a.Score),
		Said:     encodeSaid(a),
	}
	// A list has the head already. What is denied is shorter for another reason.
	goesOn := a.URISize > int64(len(a.URI)) && len(a.URI) > maxShown-utf8.UTFMax
	w.URI, w.URIHex = texts.chain(a.URI, "uri", URIPath(a.ID, at), goesOn)
	if document.any {
		texts.note("document", documentPath(a.Document.SHA256, a.Document.Dropped))
	}
	w.Cut = texts.cuts
	return w
}

// EncodeCounts writes the totals of an agent.
func EncodeCounts(c repute.AgentCounts) Counts {
	return Counts{
		Feedback: Long(c.Feedback), Revoked: Long(c.Revoked), Clients: Long(c.Clients),
		Responses: Long(c.Responses), Validations: Long(c.Validations),
	}
}

// encodeMetadata shows keys and values as long as they may be together: behind that values
// are left out and keys are short.
func encodeMetadata(a repute.Agent, cuts *cutter) []Metadata {
	out := []Metadata{}
	left := maxShownMetadata
	for i, m := range a.Metadata {
		w := Metadata{Size: Long(m.Size), Set: EncodePoint(m.Set)}
		keys := &cutter{left: max(left, leastKey)}
		field := fmt.Sprintf("metadata/%d/", i)
		w.Key, w.KeyHex = keys.chain(m.Key, field+"key", TextPath(a.ID, m.Set, "metadataKey"),
			slices.Contains(m.Cut, "key"))
		shown, cost := m.Value, 3*len(m.Value) // as hex and as text
		if cost > max(left, leastKey) {
			shown, cost = nil, 0
		}
		w.Value, w.Text = Hex(hexutil.Encode(shown)), PlainText(shown)
		if int64(len(shown)) < m.Size {
			keys.note(field+"value", TextPath(a.ID, m.Set, "metadataValue"))
			w.Text = withEllipsis(w.Text)
		}
		left -= cost + len(w.Key)
		w.Partial = len(keys.cuts) > 0
		cuts.cuts = append(cuts.cuts, keys.cuts...)
		out = append(out, w)
	}
	return out
}

// leastKey is how many bytes of each key and value are shown, however many there are.
const leastKey = 64

// withEllipsis appends an ellipsis to a text that was cut.
func withEllipsis(s *string) *string {
	if s == nil {
		return nil
	}
	return new(*s + ellipsis)
}

// encodeDocument writes what is known of an agent's document, with the problems that fit into an
// answer.
func encodeDocument(d repute.Document, c *documentCutter) Document {
	w := Document{
		Status: string(d.Status), Source: OrNull(d.Source), SHA256: encodeHash(d.SHA256), Size: Long(d.Size),
		FetchedAt: EncodeTime(d.FetchedAt), Reason: OrNull(d.Reason), Detail: OrNull(BriefText(d.Detail)),
		NextTry: EncodeTime(d.NextTry), Problems: c.problems(d.Problems), ProblemCount: Long(d.ProblemCount),
		Proof: encodeProof(proofOf(d)),
	}
	if d.Registration != nil {
		w.Registration = encodeRegistration(*d.Registration)
	}
	return w
}

// encodeRegistration writes a registration file with every text made valid UTF-8.
func encodeRegistration(r repute.Registration) *Registration {
	return &Registration{
		Type: httpapi.Clean(r.Type), Name: httpapi.Clean(r.Name), Description: httpapi.Clean(r.Description),
		Image:  httpapi.Clean(r.Image),
		Active: r.Active, X402: r.X402, Services: Each(r.Services, encodeService),
		Registrations: Each(r.Registrations, encodeLink), SupportedTrust: Each(r.SupportedTrust, httpapi.Clean),
		Extra: r.Extra, Partial: r.Partial,
	}
}

// encodeService writes an endpoint as its author wrote it, with every text made valid UTF-8.
func encodeService(s repute.Service) Service {
	return Service{
		Name: httpapi.Clean(s.Name), Endpoint: httpapi.Clean(s.Endpoint), Version: httpapi.Clean(s.Version),
		Skills: Each(s.Skills, httpapi.Clean), Domains: Each(s.Domains, httpapi.Clean),
		Tools: Each(s.Tools, httpapi.Clean), Prompts: Each(s.Prompts, httpapi.Clean),
		Resources: Each(s.Resources, httpapi.Clean), Extra: s.Extra,
	}
}

// encodeLink writes a registration that a file names; its token is null where the file has none.
func encodeLink(l repute.RegistrationLink) RegistrationLink {
	w := RegistrationLink{Registry: httpapi.Clean(l.Registry)}
	if l.TokenID != nil {
		w.TokenID = OrNull(BigInt(l.TokenID.Dec()))
	}
	return w
}

// EncodeFeedback writes a rating with its file, payment and first responses.
func EncodeFeedback(f repute.Feedback) Feedback {
	w := Feedback{
		Agent: ID(f.Agent.String()), Client: AddressOf(f.Client), Index: Long(f.Index),
		Amount: encodeAmount(repute.Amount{Value: f.Value, Decimals: f.Decimals}),
		Hash:   encodeHash(f.Hash), Given: EncodePoint(f.Given), IsRevoked: f.Revoked != nil,
		Payment:       encodePayment(f.Payment),
		ResponseCount: Long(f.ResponseCount), Responses: []Response{},
	}
	c := unboundedCutter()
	chain := func(raw, field, name string) (string, *Hex) {
		return c.chain(raw, field, TextPath(f.Agent, f.Given, name), slices.Contains(f.Cut, field))
	}
	w.Tag1, w.Tag1Hex = chain(f.Tag1, "tag1", "tag1")
	w.Tag2, w.Tag2Hex = chain(f.Tag2, "tag2", "tag2")
	w.Endpoint, w.EndpointHex = chain(f.Endpoint, "endpoint", "endpoint")
	w.URI, w.URIHex = chain(f.URI, "uri", "feedbackURI")
	for i, r := range f.Responses {
		w.Responses = append(w.Responses, encodeResponse(r, c, fmt.Sprintf("responses/%d/uri", i),
			TextPath(f.Agent, r.At, "responseURI")))
	}
	w.File = encodeRatingFile(f, c)
	w.Cut, w.Partial = c.cuts, len(c.cuts) > 0
	if f.Revoked != nil {
		w.Revoked = new(EncodePoint(*f.Revoked))
	}
	return w
}

// encodePayment writes a claimed payment. Token and amount are there only where the chain
// confirmed it.
func encodePayment(p *repute.Payment) *Payment {
	if p == nil {
		return nil
	}
	w := &Payment{State: string(p.State), TxHash: encodeHash(p.Tx), From: encodeAddress(p.From),
		To: encodeAddress(p.To)}
	if p.Reason != "" {
		w.Reason = OrNull(string(p.Reason))
	}
	if p.ChainID != 0 {
		w.ChainID = OrNull(Long(p.ChainID))
	}
	if p.State == repute.PaymentVerified {
		w.Token, w.Symbol = encodeAddress(p.Coin.Address), OrNull(p.Coin.Symbol)
		w.Amount, w.USD = OrNull(Decimal(p.Amount.Decimal())), OrNull(Decimal(p.Paid.String()))
		w.Block, w.LogIndex, w.Time = OrNull(Long(p.Block)), OrNull(Long(p.LogIndex)), EncodeTime(p.Time)
	}
	return w
}

// encodeResponse writes an answer to a rating, whose URI is cut by c; field and whole name it where it was cut.
func encodeResponse(r repute.Response, c *cutter, field, whole string) Response {
	w := Response{Responder: AddressOf(r.Responder), Hash: encodeHash(r.Hash), File: encodeFile(r.File),
		At: EncodePoint(r.At)}
	w.URI, w.URIHex = c.chain(r.URI, field, whole, r.Cut != nil)
	return w
}

// EncodeValidation writes a request for validation, and its newest answer where there is one.
func EncodeValidation(v repute.Validation) Validation {
	w := Validation{
		Agent: ID(v.Agent.String()), ChainID: Long(v.ChainID), Contract: AddressOf(v.Contract),
		ContractTrusted: v.ContractTrusted,
		RequestHash:     Hash(v.RequestHash.Hex()), Validator: AddressOf(v.Validator),
		Requested:   EncodePoint(v.Requested),
		RequestFile: encodeFile(v.RequestFile),
		Status:      "pending", Answers: Long(v.Answers),
	}
	c := unboundedCutter()
	w.RequestURI, w.RequestURIHex = c.chain(v.RequestURI, "requestUri", TextPath(v.Agent, v.Requested, "requestURI"),
		v.Cut != nil)
	if v.Answered != nil {
		w.Status, w.Answer = "answered", encodeAnswer(v.Agent, *v.Answered, c)
	}
	w.Cut, w.Partial = c.cuts, len(c.cuts) > 0
	return w
}

// encodeAnswer writes a validator's answer, whose texts are cut by c.
func encodeAnswer(agent repute.AgentID, a repute.ValidationAnswer, c *cutter) *ValidationAnswer {
	w := &ValidationAnswer{Response: int32(a.Response), Hash: encodeHash(a.Hash), File: encodeFile(a.File),
		At: EncodePoint(a.At)}
	w.URI, w.URIHex = c.chain(a.URI, "answer/uri", TextPath(agent, a.At, "responseURI"), slices.Contains(a.Cut, "uri"))
	w.Tag, w.TagHex = c.chain(a.Tag, "answer/tag", TextPath(agent, a.At, "tag"), slices.Contains(a.Cut, "tag"))
	return w
}

// EncodeSummary writes what the registry's getSummary returns.
func EncodeSummary(s repute.Summary) Summary {
	return Summary{Count: Long(s.Count), Amount: encodeAmount(s.Amount)}
}

// EncodeTag writes the ratings with one tag; the unit is that of the tag dictionary, "" for a tag
// that it does not have.
func EncodeTag(t repute.TagSummary, unit string) TagSummary {
	w := TagSummary{
		Count: Long(t.Count), Reviewers: Long(t.Reviewers), Median: encodeAmount(t.Median), Mean: encodeAmount(t.Mean),
		Min: encodeAmount(t.Min), Max: encodeAmount(t.Max), Unit: OrNull(unit),
	}
	c := unboundedCutter()
	w.Tag, w.TagHex = c.chain(t.Tag, "tag", "/tags/"+t.Hash.Hex(), t.Partial)
	w.Cut, w.Partial = c.cuts, len(c.cuts) > 0
	return w
}

// EncodeAsOf writes the block that an answer is true at, how old it is, and how complete the index
// is there.
func EncodeAsOf(a repute.AsOf) AsOf {
	w := AsOf{
		ChainID: Long(a.ChainID), Block: Long(a.Block.Number), Hash: encodeHash(a.Block.Hash),
		Time:     EncodeTime(a.Block.Time),
		Finality: string(a.Finality), Safe: OrNull(Long(a.Safe)), Finalized: OrNull(Long(a.Finalized)),
		Head:       OrNull(Long(a.Head)),
		HeadSeenAt: EncodeTime(a.HeadSeenAt), Completeness: encodeCompleteness(a.Completeness),
	}
	if w.Finality == "" {
		w.Finality = "block"
	}
	if a.LagSeconds != nil {
		w.LagSeconds = new(Long(*a.LagSeconds))
	}
	if a.LagBlocks != nil {
		w.LagBlocks = new(Long(*a.LagBlocks))
	}
	return w
}

// SteadyAsOf keeps the fields that say which state of the chain was read.
func SteadyAsOf(a AsOf) AsOf {
	a.Completeness.Reason = "" // it tells progress, which is not in the data
	return AsOf{ChainID: a.ChainID, Block: a.Block, Hash: a.Hash, Time: a.Time, Finality: a.Finality,
		Completeness: a.Completeness}
}

// encodeCompleteness writes what is proven to be complete; openGaps is the sum over all kinds of
// events.
func encodeCompleteness(c repute.Completeness) Completeness {
	w := Completeness{Status: string(c.Status), Reason: httpapi.Clean(c.Reason),
		VerifiedToBlock: OrNull(Long(c.VerifiedTo)),
		Ranges:          Each(c.Ranges, encodeRange), Pending: Long(c.Pending), Undecoded: Long(c.Undecoded)}
	for _, k := range c.Kinds {
		w.OpenGaps += Long(k.Open)
	}
	return w
}

func encodeRange(r repute.BlockRange) BlockRange { return BlockRange{Long(r.From), Long(r.To)} }

// encodeKinds writes the completeness of each kind of event with its open gaps.
func encodeKinds(c repute.ChainStatus) []KindCompleteness {
	return Each(c.Completeness.Kinds, func(k repute.KindCompleteness) KindCompleteness {
		return KindCompleteness{
			Kind: k.Kind.String(), Status: string(k.Status), Reason: httpapi.Clean(k.Reason),
			VerifiedToBlock: OrNull(Long(k.VerifiedTo)),
			Pending:         Long(k.Pending), OpenGaps: Long(k.Open),
			Gaps: Each(k.Gaps, func(g repute.Gap) Gap { return encodeGap(c.Chain.ID, g) }),
		}
	})
}

// encodeGap writes blocks in which events seem to be missing, and when they are asked for next.
func encodeGap(chain uint64, g repute.Gap) Gap {
	w := Gap{Blocks: encodeRange(g.Blocks), Reason: httpapi.Clean(g.Reason), Since: EncodeTime(g.Since),
		Tries: Long(g.Tries), NextTry: EncodeTime(g.Next)}
	if g.Agent != nil {
		w.Agent = OrNull(ID(repute.AgentID{ChainID: chain, TokenID: *g.Agent}.Short()))
	}
	if g.Client != nil {
		w.Client = OrNull(AddressOf(*g.Client))
	}
	return w
}

// EncodeChain writes a chain with the progress of its index and the state of its endpoints.
func EncodeChain(c repute.ChainStatus) Chain {
	return Chain{
		ChainID: Long(c.Chain.ID), Name: httpapi.Clean(c.Name), StartBlock: Long(c.StartBlock), Imported: c.Imported,
		Registries: Registries{
			Identity: AddressOf(c.Identity), Reputation: AddressOf(c.Reputation),
			Validations: Each(c.Validations, AddressOf),
		},
		Scores: encodeScoring(c.Scoring),
		Agents: Long(c.Agents), Feedback: Long(c.Feedback),
		Documents: ChainDocuments{Known: Long(c.URIs), Due: Long(c.URIsDue)},
		Reorgs:    Long(c.Reorgs), Upgrades: Long(c.Upgrades), UpgradedAtBlock: OrNull(Long(c.UpgradedAt)),
		Halted:    c.Halted,
		Stalled:   c.Stalled,
		Endpoints: Each(c.Endpoints, encodeEndpoint), Kinds: encodeKinds(c),
		LastError: OrNull(WithoutSecrets(c.LastError)),
		AsOf:      EncodeAsOf(c.AsOf),
	}
}

// encodeScoring writes how far scores follow the chain; epoch and block are null before the first
// epoch is scored.
func encodeScoring(s repute.Scoring) ChainScores {
	out := ChainScores{WalkedAt: EncodeTime(s.WalkedAt), Final: s.Final, Roots: Long(s.Roots), Stale: Long(s.Stale),
		StaleSince: EncodeTime(s.StaleSince), LookedAt: EncodeTime(s.LookedAt), Late: s.Late,
		Coverage: encodeCoverage(s.Coverage), Verified: s.Verified, VerifiedTo: OrNull(Long(s.VerifiedTo)),
		Sources: encodeSources(s.Sources)}
	if s.Run > 0 {
		out.Epoch, out.Block = new(Long(s.Epoch)), new(Long(s.Block))
	}
	return out
}

// encodeCoverage writes how much counts, and why the rest does not.
func encodeCoverage(c repute.Coverage) Coverage {
	counted := func(n repute.Counted) Counted { return Counted{Long(n.All), Long(n.Counted)} }
	out := Coverage{Records: counted(c.Records), Raters: counted(c.Raters), Agents: counted(c.Agents),
		Several: Long(c.Several), ByRoots: Long(c.ByRoots), Rated: Long(c.Rated), Thin: Long(c.Thin),
		Left:     []ReasonCount{},
		BySource: []SourceCount{}, ToFifty: encodeLift(c.ToFifty)}
	for source, n := range c.BySource {
		out.BySource = append(out.BySource, SourceCount{source, Long(n)})
	}
	slices.SortFunc(out.BySource, func(a, b SourceCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Source, b.Source))
	})
	for reason, n := range c.Left {
		out.Left = append(out.Left, ReasonCount{reason, Long(n)})
	}
	slices.SortFunc(out.Left, func(a, b ReasonCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Reason, b.Reason))
	})
	out.Tags = Each(c.Tags, func(t repute.UnreadTag) UnreadTag {
		return UnreadTag{httpapi.Clean(t.Tag), t.Reason, Long(t.Records)}
	})
	return out
}

// encodeLift writes what it costs to lift an agent.
func encodeLift(l *repute.LiftPrice) *LiftPrice {
	if l == nil {
		return nil
	}
	out := &LiftPrice{Units: float64(l.Units) / 1000, Priced: append([]string{}, l.Priced...),
		Unpriced: append([]string{}, l.Unpriced...)}
	if !l.OutOfReach {
		out.Dollars = new(float64(l.Cents) / 100)
	}
	return out
}

// encodeEndpoint writes the health of an endpoint. Process is a hash: the owner of a lease names
// the machine.
func encodeEndpoint(e repute.Endpoint) Endpoint {
	process := sha256.Sum256([]byte(e.Owner)) // the owner names the machine
	return Endpoint{
		Name: httpapi.Clean(e.Name), Process: hex.EncodeToString(process[:4]), Kind: e.Kind, State: string(e.State),
		LatencyMs: float64(e.Latency.Microseconds()) / 1000, ErrorRate: e.ErrorRate, Requests: Long(e.Requests),
		Failures:  Long(e.Failures),
		RateLimit: e.RateLimit, Concurrency: Long(e.Concurrency), Head: OrNull(Long(e.Head)),
		LastError: OrNull(WithoutSecrets(e.LastError)),
		LastOKAt:  EncodeTime(e.LastOKAt), UpdatedAt: EncodeTime(e.UpdatedAt),
	}
}

// WithoutSecrets keeps scheme and host of every URL in a message: providers
// put their keys into path, query and user.
func WithoutSecrets(msg string) string {
	if msg == "" {
		return ""
	}
	re := regexp.MustCompile(`\b([a-zA-Z][a-zA-Z0-9+.-]*://)(?:[^\s/@"']*@)?([^\s/?#"']+)[^\s"']*`)
	return BriefText(re.ReplaceAllString(msg, "$1$2"))
}
