package answers

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"repute"
	"repute/api/wire"
	"repute/internal/httpapi"
	"repute/internal/httprule"
	"repute/store"
	"repute/store/column"
	"repute/store/manifestdb"
)

// ManifestPath names a domain.
type ManifestPath struct {
	Domain string `path:"domain" pattern:"^[A-Za-z0-9_-]+(\\.[A-Za-z0-9_-]+)*\\.?$" maxLength:"254" doc:"a host name, without scheme, port and path" example:"shop.example"`
}

// ManifestsQuery are the parameters of a list of manifests.
type ManifestsQuery struct {
	Request
	PageQuery
	Tier         httpapi.Number `query:"tier" minimum:"0" maximum:"4" doc:"only manifests that claim exactly this tier: 0 none, 1, 2, 3, 4 for 3+"`
	VerifiedTier httpapi.Number `query:"verifiedTier" minimum:"0" maximum:"4" doc:"only manifests of which exactly this tier is proven: 0 none, 1, 2, 3, 4 for 3+"`
	Domain       string         `query:"domain" doc:"only domains that begin with this text; capitals do not matter"`
	State        string         `query:"state" enum:"pending,ok,invalid,other,missing,refused,denied,failed" doc:"only domains in this state"`
	Priced       httpapi.Flag   `query:"priced" doc:"true: only manifests with a price; false: only those without"`
	Network      string         `query:"network" doc:"only manifests with an intent that is paid on this network, e.g. base"`
}

// Filter parses the parameters. State is compared as it is: an unknown one finds nothing where no schema checks it.
func (q *ManifestsQuery) Filter() (f manifestdb.Filter, err error) {
	f = manifestdb.Filter{Prefix: q.Domain, State: manifestdb.State(q.State), Network: q.Network, After: q.Cursor}
	if f.Declared, err = parseManifestTier("tier", string(q.Tier)); err != nil {
		return f, err
	}
	if f.Verified, err = parseManifestTier("verifiedTier", string(q.VerifiedTier)); err != nil {
		return f, err
	}
	if f.Priced, err = q.Priced.Optional("priced"); err != nil {
		return f, err
	}
	if len(f.Prefix) > column.LongestHost || len(f.Network) > column.LongestHost {
		return f, repute.Invalid("domain", "too long", "a domain and a network of up to 253 bytes")
	}
	f.Limit, err = httpapi.PageSize(q.Limit, httpapi.DefaultPage, httpapi.MaxPage)
	return f, err
}

// IntentsQuery are the parameters of a search of intents.
type IntentsQuery struct {
	Request
	Q        string         `query:"q" doc:"what is wanted, in words: the best matches by meaning and words first, at most 100; absent: lists the intents of manifests"`
	Kind     string         `query:"kind" enum:"intent,skill,tool,class" doc:"only of this kind: intents of manifests, and with q A2A skills, MCP tools and OASF classes of agents"`
	Protocol string         `query:"protocol" doc:"only intents that are paid by this protocol, e.g. x402"`
	Network  string         `query:"network" doc:"only intents that are paid on this network, e.g. base"`
	MaxPrice httpapi.Real   `query:"maxPrice" minimum:"0" maximum:"1000000000000" doc:"only intents with a known price of at most this, in USD or a coin of one USD"`
	Tier     httpapi.Number `query:"tier" minimum:"0" maximum:"4" doc:"only of manifests of which at least this tier is proven: 1, 2, 3, 4 for 3+"`
	MinScore httpapi.Real   `query:"minScore" minimum:"-100" maximum:"100" doc:"only of domains that a rated agent of at least this score names as its own, and of such agents"`
	PageQuery
}

// maxQuestion is how many bytes of a text are searched for. The cost of a search grows with its text.
const maxQuestion = 1000

// Filter parses the parameters.
func (q *IntentsQuery) Filter() (f manifestdb.IntentFilter, err error) {
	f = manifestdb.IntentFilter{Text: q.Q, Kind: q.Kind, Protocol: q.Protocol, Network: q.Network, After: q.Cursor}
	if len(f.Text) > maxQuestion || len(f.Protocol) > maxQuestion || len(f.Network) > maxQuestion {
		return f, repute.Invalid("q", "too long", "up to "+strconv.Itoa(maxQuestion)+" bytes")
	}
	if err := q.checkKind(); err != nil {
		return f, err
	}
	if f.Tier, err = parseManifestTier("tier", string(q.Tier)); err != nil {
		return f, err
	}
	if f.MinScore, err = parseScore("minScore", string(q.MinScore)); err != nil {
		return f, err
	}
	if f.MaxPrice, err = parsePrice("maxPrice", q.MaxPrice); err != nil {
		return f, err
	}
	f.Limit, err = httpapi.PageSize(q.Limit, httpapi.DefaultPage, httpapi.MaxPage)
	return f, err
}

// maxPriceText is how many bytes a price has, and maxExponent how far its exponent is from 0: as far as that of any
// number of 64 bits. Postgres has no numbers with tens of thousands of decimal places.
const (
	maxPriceText = 40
	maxExponent  = 350
)

// farExponent reports whether the text of a number has an exponent beyond maxExponent. A text with an e that is
// followed by no number is far as well.
func farExponent(text string) bool {
	at := strings.IndexAny(text, "eE")
	if at < 0 {
		return false
	}
	n, err := strconv.Atoi(text[at+1:])
	return err != nil || n < -maxExponent || n > maxExponent
}

// parsePrice reads a price in USD; nil for "". The result is text, so that Postgres compares decimals and no rounded
// float.
func parsePrice(field string, price httpapi.Real) (*string, error) {
	if price == "" {
		return nil, nil
	}
	text := string(price)
	if len(text) > maxPriceText || farExponent(text) {
		return nil, repute.Invalid(field, "too long, or its exponent is too far from 0",
			"up to "+strconv.Itoa(maxPriceText)+" bytes with an exponent from -350 to 350, e.g. 0.25")
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n >= 0 && n <= 1e12) || strings.ContainsAny(text, "xX_") { // Postgres reads no hexadecimal
		return nil, repute.Invalid(field, "not a price", "a number from 0 to 1000000000000, e.g. 0.25")
	}
	return &text, nil
}

// checkKind refuses unknown kinds, and what cannot be listed or continued. Words that are only spaces count as absent.
func (q *IntentsQuery) checkKind() error {
	kinds := []string{"", "intent", "skill", "tool", "class"}
	switch words := strings.TrimSpace(q.Q) != ""; {
	case !slices.Contains(kinds, q.Kind):
		return repute.Invalid("kind", "unknown kind", "intent, skill, tool or class")
	case !words && q.Kind != "" && q.Kind != "intent":
		return repute.Invalid("q", "is missing, and only intents of manifests are listed without it",
			"what is wanted, in words")
	case words && q.Cursor != "":
		return repute.Invalid("cursor", "goes with lists alone: a search has one page", "leave out q or cursor")
	}
	return nil
}

// parseManifestTier reads the tier of a manifest; nil for "".
func parseManifestTier(field, s string) (*int, error) {
	if s == "" {
		return nil, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > 4 || s[0] == '+' {
		return nil, repute.Invalid(field, "not a tier", "a number from 0 to 4")
	}
	return &n, nil
}

// IntentFinder finds the intents of a filter, the best matches of its text first. It has two implementations: fullText
// and the finder of package finder, which adds a model of meanings. It is safe for concurrent use.
type IntentFinder interface {
	Find(ctx context.Context, f manifestdb.IntentFilter) (manifestdb.FoundIntents, error)
}

// fullText is the IntentFinder that compares words.
type fullText struct{ db *store.DB }

// Find implements IntentFinder.
func (t fullText) Find(ctx context.Context, f manifestdb.IntentFilter) (manifestdb.FoundIntents, error) {
	return manifestdb.Intents(ctx, t.db, f)
}

// Manifests returns a page of manifests. The current time gives the age of each manifest.
func (x *Index) Manifests(ctx context.Context, f manifestdb.Filter) (wire.ManifestList, error) {
	page, err := manifestdb.List(ctx, x.DB, f)
	now := time.Now()
	return wire.ManifestList{Next: wire.OrNull(page.Next), Items: wire.Each(page.Items,
		func(m manifestdb.Manifest) wire.Manifest { return wire.EncodeManifest(m, now) })}, err
}

// Manifest returns the manifest of a domain. repute.ErrNotFound: the domain is not known.
func (x *Index) Manifest(ctx context.Context, domain string) (*wire.ManifestAnswer, error) {
	m, links, err := manifestdb.Read(ctx, x.DB, httprule.Host(domain))
	if errors.Is(err, repute.ErrNotFound) {
		return nil, repute.Missing("manifest of %.253q", domain)
	}
	if err != nil {
		return nil, err
	}
	w := wire.EncodeManifestAnswer(m, links, time.Now())
	return &w, nil
}

// AddManifests adds their manifests in short to answers about agents, which MUST be of the latest view. It is one
// statement for all of them. agents and to MUST have the same order and length. On an error nothing is added.
func (x *Index) AddManifests(ctx context.Context, agents []repute.Agent, to []wire.Agent) error {
	if len(agents) == 0 {
		return nil
	}
	ids := make([]repute.AgentID, len(agents))
	for i := range agents {
		ids[i] = agents[i].ID
	}
	manifests, err := manifestdb.OfAgents(ctx, x.DB, ids...)
	for i, id := range ids {
		if m, found := manifests[id]; found {
			to[i].Manifest = wire.EncodeAgentManifest(m)
		}
	}
	return err
}

// Intents returns the intents of a filter.
func (x *Index) Intents(ctx context.Context, f manifestdb.IntentFilter) (wire.IntentList, error) {
	found, err := x.intents.Find(ctx, f)
	return wire.EncodeFoundIntents(found), err
}
