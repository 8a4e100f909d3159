package wire

import (
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/internal/httpapi"
	"repute/manifest/agentjson"
	"repute/manifest/agentjson/identity"
	"repute/manifest/agentjson/measure"
	"repute/store/manifestdb"
)

// codePayout is the problem of a manifest that pays another address than the wallet of an agent that names its domain.
const codePayout = "WJ680"

// AgentManifest is the agent.json manifest of an agent in short.
type AgentManifest struct {
	Domain       string   `json:"domain" doc:"/manifests/{domain} has the whole"`
	Tier         string   `json:"tier" enum:"none,1,2,3,3+" doc:"that the manifest claims"`
	VerifiedTier string   `json:"verifiedTier" enum:"none,1,2,3,3+" doc:"that is proven"`
	Intents      Long     `json:"intents" doc:"how many there are"`
	Price        *Decimal `json:"price" doc:"the lowest known price among the intents of all domains that the agent's document names, in USD or a coin of one USD; null for none; a manifest that only pays the agent's wallet gives no price"`
	How          string   `json:"how" enum:"domain,wallet,registration" doc:"what joins it to the agent: domain: the domain's agent-registration.json names the agent; wallet: it pays the agent's wallet or owner; registration: the agent's document names the domain"`
	Proven       bool     `json:"proven" doc:"domain is proven, wallet where the agent's document names the domain too, registration never"`
}

// Manifest is what is known of a domain's manifest.
type Manifest struct {
	Domain       string  `json:"domain"`
	State        string  `json:"state" enum:"pending,ok,invalid,other,missing,refused,denied,failed" doc:"pending: never asked; invalid: it has errors; other: another format; missing: the domain says there is none; refused: robots.txt forbids to ask; denied: the deny-list does; failed: never read, or not for a week"`
	Format       *string `json:"format" doc:"what the domain serves: agent-json, or the name of another format; null for nothing"`
	DisplayName  *string `json:"displayName"`
	Tier         string  `json:"tier" enum:"none,1,2,3,3+" doc:"that the manifest claims"`
	VerifiedTier string  `json:"verifiedTier" enum:"none,1,2,3,3+" doc:"that is proven"`
	URL          *string `json:"url" doc:"that answered"`
	SHA256       *Hash   `json:"sha256" doc:"of the bytes"`
	IntentCount  Long    `json:"intentCount"`
	Errors       Long    `json:"errors"`
	Warnings     Long    `json:"warnings"`
	FetchedAt    *Time   `json:"fetchedAt" doc:"when the domain last served it, or said that it did not change" format:"date-time"`
	AgeSeconds   *Long   `json:"ageSeconds" doc:"since fetchedAt"`
	Stale        bool    `json:"stale" doc:"the last check failed: this is what was read before"`
	CheckedAt    *Time   `json:"checkedAt" doc:"last check, also a failed one" format:"date-time"`
	NextCheck    *Time   `json:"nextCheck" format:"date-time"`
	Reason       *string `json:"reason" doc:"code of the last check's failure"`
	Detail       *string `json:"detail" doc:"the failure in words"`
}

// ManifestList is a page of manifests.
type ManifestList struct {
	Items []Manifest `json:"items"`
	Next  *string    `json:"next" doc:"cursor of the next page, null at the end"`
}

// Steady returns the body without ages, for its ETag.
func (b ManifestList) Steady() any { b.Items = Each(b.Items, steadyManifest); return b }

// steadyManifest leaves out the age, which the clock changes.
func steadyManifest(m Manifest) Manifest { m.AgeSeconds = nil; return m }

// ManifestAnswer is a domain's manifest with all that it says, what is proven of it, and its agents.
type ManifestAnswer struct {
	Manifest
	Version       *string          `json:"version"`
	Origin        *string          `json:"origin" doc:"the host that the manifest speaks for"`
	Description   *string          `json:"description"`
	PayoutAddress *string          `json:"payoutAddress"`
	Verdict       *ManifestVerdict `json:"verdict" doc:"what is proven; null for another format, and where nothing was read"`
	// Commitments are what the service promises.
	Commitments []ManifestCommitment `json:"commitments" doc:"that the service makes, each compared with the crawl's own requests"`
	Intents     []ManifestIntent     `json:"intents"`
	Links       []ManifestLink       `json:"links" doc:"agents, the proven ones first; at most 100 that name the domain, and 200 that it pays"`
	Problems    []Problem            `json:"problems"`
}

// Steady returns the body without its age, for its ETag.
func (b ManifestAnswer) Steady() any { b.Manifest = steadyManifest(b.Manifest); return b }

// ManifestVerdict is what is proven of a manifest.
type ManifestVerdict struct {
	Served          bool    `json:"served" doc:"the host that served it is its origin"`
	Identified      bool    `json:"identified" doc:"the DID document of the origin has its key"`
	IdentityReason  *string `json:"identityReason" doc:"why not"`
	KeyForm         *string `json:"keyForm" doc:"how the DID document writes the key"`
	KeyID           *string `json:"keyId" doc:"of its verification method"`
	Signature       string  `json:"signature" enum:"none,invalid,unbound,bound" doc:"of the commitments; unbound: valid, by a key that is not proven to be the origin's"`
	SignatureReason *string `json:"signatureReason"`
	// Issuer is the registered issuer of the manifest.
	Issuer *ManifestIssuer `json:"issuer" doc:"what the configured registry says of the issuer that the manifest names; null where it names none"`
}

// ManifestIssuer is what the registry of issuers says of a manifest's issuer.
type ManifestIssuer struct {
	Verified bool    `json:"verified" doc:"the registry knows the issuer as this origin with this key"`
	Proven   bool    `json:"proven" doc:"and a proof shows that the issuer has the key"`
	KeyID    *string `json:"keyId" doc:"of the registry, of the key that matched"`
	Reason   *string `json:"reason" doc:"why it is not verified"`
}

// ManifestCommitment is a promise of a service, and what the crawl's own requests say of it.
type ManifestCommitment struct {
	Type       string  `json:"type" doc:"latency_bound and uptime_sla are measured"`
	Constraint string  `json:"constraint" doc:"e.g. p99 < 500ms"`
	Ref        *string `json:"ref"`
	Verifiable bool    `json:"verifiable" doc:"the publisher says that others can measure it; only then it is"`
	Outcome    string  `json:"outcome" enum:"kept,broken,unknown" doc:"of requests for the manifest itself or, where an operator lets the crawl probe an endpoint, of probes; and of checks or probes that failed one after the other"`
	Reason     string  `json:"reason" doc:"with the measured value"`
}

// ManifestLink joins a manifest to an agent.
type ManifestLink struct {
	Agent  ID     `json:"agent"`
	How    string `json:"how" enum:"domain,wallet,registration"`
	Proven bool   `json:"proven"`
}

// ManifestIntent is one thing that a service does.
type ManifestIntent struct {
	Name        string            `json:"name"`
	Description string            `json:"description"`
	Method      *string           `json:"method"`
	URL         *string           `json:"url" doc:"the address to call; null where the manifest gives none of its own origin"`
	Parameters  []IntentParameter `json:"parameters"`
	Terms       PaymentTerms      `json:"terms" doc:"how it is paid, all overrides resolved"`
}

// IntentParameter is one input of an intent.
type IntentParameter struct {
	Name        string  `json:"name"`
	Type        *string `json:"type"`
	Required    bool    `json:"required"`
	Description *string `json:"description"`
}

// PaymentTerms are what an intent costs and how it is paid.
type PaymentTerms struct {
	Price     *IntentPrice  `json:"price" doc:"null for an intent without a price of its own"`
	Ways      []PaymentWay  `json:"ways" doc:"in the order of preference of the manifest"`
	Bounty    *IntentReward `json:"bounty" doc:"that the provider pays for a completed intent"`
	Incentive *IntentReward `json:"incentive" doc:"that the provider asks for"`
}

// IntentPrice is what a provider charges.
type IntentPrice struct {
	Amount    Decimal  `json:"amount"`
	Currency  string   `json:"currency"`
	Model     string   `json:"model"`
	UnitParam *string  `json:"unitParam"`
	FreeTier  Long     `json:"freeTier" doc:"calls before the price applies"`
	Networks  []string `json:"networks"`
}

// PaymentWay is one way to pay for a call.
type PaymentWay struct {
	Protocol    string   `json:"protocol" doc:"x402, l402, mpp, transfer, or one that is not known"`
	Network     *string  `json:"network"`
	Asset       *string  `json:"asset"`
	Contract    *string  `json:"contract"`
	Facilitator *string  `json:"facilitator"`
	Recipient   *string  `json:"recipient"`
	Direct      *Decimal `json:"direct" doc:"price of one unit; null where only the service's answer tells"`
	Ticket      *Decimal `json:"ticket" doc:"price with a prepaid ticket"`
	Currency    *string  `json:"currency"`
	Unit        *string  `json:"unit" doc:"per_call, per_unit or flat"`
	Counts      *string  `json:"counts" doc:"the parameter that counts units"`
	FreeTier    Long     `json:"freeTier"`
	Missing     []string `json:"missing" doc:"what is needed to pay and not in the manifest"`
}

// IntentReward is a bounty or an incentive.
type IntentReward struct {
	Type     string  `json:"type"`
	Rate     Decimal `json:"rate"`
	Currency string  `json:"currency"`
}

// FoundIntent is an intent that a search found, or another offer of agents.
type FoundIntent struct {
	Kind         string       `json:"kind" enum:"intent,skill,tool,class" doc:"intent of a manifest, A2A skill, MCP tool or OASF class of agents"`
	Domain       *string      `json:"domain" doc:"whose manifest has it; null for an offer of agents"`
	Agent        *ID          `json:"agent" doc:"that offers it, the one of the best score; null for an intent"`
	Agents       Long         `json:"agents" doc:"that offer it; 0 for an intent"`
	Tier         string       `json:"tier" enum:"none,1,2,3,3+" doc:"that the manifest claims"`
	VerifiedTier string       `json:"verifiedTier" enum:"none,1,2,3,3+" doc:"that is proven"`
	Name         string       `json:"name"`
	Description  string       `json:"description"`
	Method       *string      `json:"method"`
	URL          *string      `json:"url"`
	Parameters   []string     `json:"parameters" doc:"names; tags of a skill"`
	Price        *Decimal     `json:"price" doc:"the lowest of one unit, in USD or a coin of one USD; null where only the service's answer tells"`
	Terms        PaymentTerms `json:"terms"`
	FetchedAt    *Time        `json:"fetchedAt" format:"date-time"`
	Stale        bool         `json:"stale" doc:"the last check of the manifest failed"`
	Score        float64      `json:"score" doc:"how well the text matches, to compare within one answer"`
	Similarity   *float64     `json:"similarity" doc:"of the meanings, -1 to 1; null where words alone were compared"`
}

// IntentList is the intents that a search found, or a page of the list.
type IntentList struct {
	Items  []FoundIntent `json:"items"`
	Next   *string       `json:"next" doc:"cursor of the next page of a list without q; null at the end"`
	By     string        `json:"by" enum:"filter,words,meaning" doc:"filter: without q; words: the index of meanings is not loaded, or off"`
	Margin *float64      `json:"margin" doc:"score of the first match minus that of the next; null unless by meaning"`
	Unsure bool          `json:"unsure" doc:"ask which match is meant, or whether any is: the first has a score below 0.45 or a margin below 0.08, or words alone were compared"`
}

// Steady returns the body for its ETag.
func (b IntentList) Steady() any { return b }

// EncodeAgentManifest writes the manifest of an agent in short.
func EncodeAgentManifest(s manifestdb.Summary) *AgentManifest {
	return &AgentManifest{Domain: s.Domain, Tier: tierOf(s.Declared), VerifiedTier: tierOf(s.Verified),
		Intents: Long(s.Intents), Price: (*Decimal)(s.Price), How: string(s.How), Proven: s.Proven}
}

// tierOf writes a tier that is stored as a number.
func tierOf(n int) string { return agentjson.Tier(n).String() }

// textOrNull is null for an empty text, and valid UTF-8.
func textOrNull(s string) *string { return OrNull(httpapi.Clean(s)) }

// EncodeManifest writes what is known of a manifest.
func EncodeManifest(m manifestdb.Manifest, now time.Time) Manifest {
	w := Manifest{Domain: m.Domain, State: string(m.State), Format: textOrNull(m.Format), DisplayName: textOrNull(m.Title),
		Tier: tierOf(m.Declared), VerifiedTier: tierOf(m.Verified), URL: textOrNull(m.URL), IntentCount: Long(m.Intents),
		Errors: Long(m.Errors), Warnings: Long(m.Warnings), FetchedAt: EncodeTime(m.FetchedAt),
		CheckedAt: EncodeTime(m.CheckedAt), NextCheck: EncodeTime(m.Next), Reason: textOrNull(m.Reason), Detail: textOrNull(m.Detail)}
	if m.SHA256 != nil {
		w.SHA256 = OrNull(Hash("0x" + hex.EncodeToString(m.SHA256)))
		w.AgeSeconds, w.Stale = new(Long(max(now.Sub(m.FetchedAt), 0).Seconds())), m.Reason != ""
	} else {
		w.FetchedAt = nil
	}
	return w
}

// EncodeManifestAnswer writes a manifest with its contents, which are read from its bytes.
func EncodeManifestAnswer(m manifestdb.Manifest, links []manifestdb.Link, now time.Time) ManifestAnswer {
	w := ManifestAnswer{Manifest: EncodeManifest(m, now), Intents: []ManifestIntent{}, Problems: []Problem{},
		Commitments: []ManifestCommitment{},
		Links: Each(links, func(l manifestdb.Link) ManifestLink {
			return ManifestLink{Agent: ID(l.Agent.String()), How: string(l.How), Proven: l.Proven}
		})}
	if m.Body == nil {
		return w
	}
	doc, problems := agentjson.Parse(m.Body, agentjson.Options{Host: m.Domain})
	w.Problems = append(Each(problems, encodeProblem), payoutProblems(links, doc.PayoutAddress)...)
	if m.Format != string(agentjson.FormatAgentJSON) {
		return w
	}
	w.Version, w.Origin, w.Description = textOrNull(doc.Version), textOrNull(doc.Origin), textOrNull(doc.Description)
	w.PayoutAddress, w.Verdict = textOrNull(doc.PayoutAddress), encodeVerdict(m.Verdict)
	w.Intents = EncodeManifestIntents(&doc)
	if doc.Commitments != nil {
		w.Commitments = Each(doc.Commitments.Entries, func(c agentjson.Commitment) ManifestCommitment {
			return encodeCommitment(&c, &m)
		})
	}
	return w
}

// encodeCommitment writes a commitment with what was measured of it.
func encodeCommitment(c *agentjson.Commitment, m *manifestdb.Manifest) ManifestCommitment {
	seen := measure.Observed{Down: m.Watch.Down, Latencies: Each(m.Watch.Latencies, func(micros int32) time.Duration {
		return time.Duration(micros) * time.Microsecond
	})}
	if !m.Watch.Since.IsZero() {
		seen.Window = max(m.CheckedAt.Sub(m.Watch.Since), m.Watch.Down)
	}
	j := seen.Check(measure.Promise{Type: c.Type, Constraint: c.Constraint, Verifiable: c.Verifiable})
	if m.Watch.Probed {
		j.Reason = "by probes of an endpoint: " + j.Reason
	}
	return ManifestCommitment{Type: httpapi.Clean(c.Type), Constraint: httpapi.Clean(c.Constraint), Ref: textOrNull(c.Ref),
		Verifiable: c.Verifiable, Outcome: string(j.Outcome), Reason: j.Reason}
}

// EncodeManifestIntents writes the intents of a manifest with how they are paid.
func EncodeManifestIntents(m *agentjson.Manifest) []ManifestIntent {
	out := []ManifestIntent{}
	for i := range m.Intents {
		out = append(out, encodeIntent(m, i))
	}
	return out
}

// encodeProblem writes a problem.
func encodeProblem(p repute.Problem) Problem {
	return Problem{Code: p.Code, Severity: string(p.Severity), Path: httpapi.Clean(p.Path),
		Message: httpapi.Clean(p.Message)}
}

// payoutProblems are of agents that name the domain and have another wallet than the payout address.
func payoutProblems(links []manifestdb.Link, payout string) (out []Problem) {
	for _, l := range links {
		if l.OtherWallet != (common.Address{}) {
			out = append(out, Problem{Code: codePayout, Severity: string(repute.SeverityWarning), Path: "/payout_address",
				Message: "pays " + httpapi.Clean(payout) + ", but agent " + l.Agent.String() +
					", which names this domain, has the wallet " + l.OtherWallet.Hex()})
		}
	}
	return out
}

// encodeVerdict reads a stored verdict; null for none.
func encodeVerdict(raw json.RawMessage) *ManifestVerdict {
	var v struct {
		Served, Identified             bool
		IdentityReason, KeyForm, KeyID string
		Signature, SignatureReason     string
		Issuer                         *identity.IssuerResult
	}
	if json.Unmarshal(raw, &v) != nil || v.Signature == "" {
		return nil
	}
	w := &ManifestVerdict{Served: v.Served, Identified: v.Identified, IdentityReason: textOrNull(v.IdentityReason),
		KeyForm: textOrNull(v.KeyForm), KeyID: textOrNull(v.KeyID), Signature: v.Signature, SignatureReason: textOrNull(v.SignatureReason)}
	if i := v.Issuer; i != nil {
		w.Issuer = &ManifestIssuer{i.Verified, i.Proven, textOrNull(i.KeyID), textOrNull(i.Reason)}
	}
	return w
}

// encodeIntent writes an intent of a manifest.
func encodeIntent(m *agentjson.Manifest, i int) ManifestIntent {
	in := m.Intents[i]
	return ManifestIntent{Name: in.Name, Description: in.Description, Method: textOrNull(in.Method), URL: textOrNull(in.URL),
		Parameters: Each(in.Parameters, func(p agentjson.Parameter) IntentParameter {
			return IntentParameter{Name: p.Name, Type: textOrNull(p.Type), Required: p.Required, Description: textOrNull(p.Description)}
		}), Terms: encodeTerms(m.Terms(i))}
}

// encodeTerms writes how an intent is paid.
func encodeTerms(t agentjson.Terms) PaymentTerms {
	w := PaymentTerms{Ways: Each(t.Ways, encodeWay), Bounty: encodeReward(t.Bounty), Incentive: encodeReward(t.Incentive)}
	if p := t.Price; p != nil {
		w.Price = &IntentPrice{Amount: Decimal(p.Amount), Currency: p.Currency, Model: p.Model, UnitParam: textOrNull(p.UnitParam),
			FreeTier: Long(p.FreeTier), Networks: append([]string{}, p.Networks...)}
	}
	return w
}

// encodeWay writes one way to pay, with null for what the manifest does not say.
func encodeWay(w agentjson.Way) PaymentWay {
	return PaymentWay{Protocol: w.Protocol, Network: textOrNull(w.Network), Asset: textOrNull(w.Asset), Contract: textOrNull(w.Contract),
		Facilitator: textOrNull(w.Facilitator), Recipient: textOrNull(w.Recipient), Direct: OrNull(Decimal(w.Direct)),
		Ticket: OrNull(Decimal(w.Ticket)), Currency: textOrNull(w.Currency), Unit: textOrNull(w.Unit), Counts: textOrNull(w.Counts),
		FreeTier: Long(w.FreeTier), Missing: append([]string{}, w.Missing...)}
}

// encodeReward writes a bounty or an incentive, null for none.
func encodeReward(r *agentjson.Reward) *IntentReward {
	if r == nil {
		return nil
	}
	return &IntentReward{Type: r.Type, Rate: Decimal(r.Rate), Currency: r.Currency}
}

// EncodeFoundIntents writes what a search found.
func EncodeFoundIntents(f manifestdb.FoundIntents) IntentList {
	w := IntentList{Items: Each(f.Items, encodeFoundIntent), Next: OrNull(f.Next), By: string(f.By),
		Unsure: f.By != manifestdb.ByFilter && !f.Sure}
	if f.By == manifestdb.ByMeaning {
		w.Margin = &f.Margin
		for i := range w.Items {
			w.Items[i].Similarity = &f.Items[i].Similarity
		}
	}
	return w
}

// encodeFoundIntent writes an intent that a search found. Texts of agents are untrusted and not checked.
func encodeFoundIntent(f manifestdb.FoundIntent) FoundIntent {
	var terms agentjson.Terms
	_ = json.Unmarshal(f.Terms, &terms) // this program wrote it; another version's unknown members are left out
	w := FoundIntent{Kind: f.Kind, Domain: OrNull(f.Domain), Agents: Long(f.Agents), Tier: tierOf(f.Declared),
		VerifiedTier: tierOf(f.Verified), Name: httpapi.Clean(f.Name), Description: httpapi.Clean(f.Description),
		Method: textOrNull(f.Method), URL: textOrNull(f.URL), Parameters: Each(f.Parameters, httpapi.Clean),
		Terms: encodeTerms(terms), FetchedAt: EncodeTime(f.FetchedAt), Stale: f.Stale, Score: f.Rank}
	if f.Agent != nil {
		w.Agent = OrNull(ID(f.Agent.String()))
	}
	if f.Price != nil {
		w.Price = OrNull(Decimal(*f.Price))
	}
	return w
}
