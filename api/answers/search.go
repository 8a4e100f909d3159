package answers

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/internal/httpapi"
	"repute/store/column"
	"repute/store/query"
	"repute/store/searchdb"
	"repute/store/searchtext"
)

// SearchQuery selects agents by their documents and ratings. With any of its parameters the default order is the best
// matches first.
type SearchQuery struct {
	Q           string         `query:"q" doc:"text in name, services, skills, domains, trust models, tags and description, one word of two or more letters or digits: words in any order and parts of words, a host, a URL, an address or an agent's id; \"a phrase\", -without and or are understood; match tells what was found"`
	Service     string         `query:"service" doc:"only agents that offer this service, e.g. MCP; several divided by commas: all of them; capitals do not matter"`
	Skill       string         `query:"skill" doc:"only agents with exactly this skill in a service, whole path, e.g. one of facets; several divided by commas: all of them; capitals do not matter"`
	Domain      string         `query:"domain" doc:"only agents with exactly this domain in a service, whole path, e.g. finance/markets, which finance does not find; several divided by commas: all of them; capitals do not matter"`
	Trust       string         `query:"supportedTrust" doc:"only agents that name this trust model, e.g. reputation; several divided by commas: all of them; capitals do not matter"`
	Tag         string         `query:"tag" doc:"only agents with a live rating of exactly this tag1; capitals matter, as on chain"`
	X402        httpapi.Flag   `query:"x402" doc:"true: only agents that say they take x402 payments; false: that say they do not"`
	Active      httpapi.Flag   `query:"active" doc:"true: only agents that say they are active; false: that say they are not"`
	Status      string         `query:"status" enum:"none,pending,ok,invalid,failed,dead,denied" doc:"only agents whose document is in this state"`
	MinFeedback httpapi.Number `query:"minFeedback" minimum:"0" doc:"only agents with so many live ratings"`
}

// searchNames are the parameters of SearchQuery. The order of a list depends on whether one of them is given, even with
// an empty value. A new parameter of SearchQuery MUST be added here.
func searchNames() []string {
	return []string{"q", "service", "skill", "domain", "supportedTrust", "tag", "x402", "active", "status",
		"minFeedback"}
}

// isSearch reports whether a parameter of SearchQuery was given.
func (r *Request) isSearch() bool {
	for _, name := range searchNames() {
		if r.optional(name) != nil {
			return true
		}
	}
	return false
}

// Filter parses the parameters that select agents. Texts are passed on as they are: searchdb normalizes them and
// refuses those that are too long.
func (q *AgentsFilter) Filter(chains []uint64) (f searchdb.AgentFilter, err error) {
	f = searchdb.AgentFilter{
		ChainIDs: chains, Text: q.Q, Service: q.Service, Skill: q.Skill, Domain: q.Domain, Trust: q.Trust, Tag: q.Tag,
		Status: repute.DocumentStatus(q.Status),
	}
	if f.Owner, err = parseOptionalAddress("owner", q.Owner); err != nil {
		return f, err
	}
	if f.Wallet, err = parseOptionalAddress("wallet", q.Wallet); err != nil {
		return f, err
	}
	if err := checkWallet(f.Wallet); err != nil {
		return f, err
	}
	if f.X402, err = q.X402.Optional("x402"); err != nil {
		return f, err
	}
	if f.Active, err = q.Active.Optional("active"); err != nil {
		return f, err
	}
	if f.Operator, err = parseOptionalAddress("operator", q.Operator); err != nil {
		return f, err
	}
	if f.Host, err = parseHost(q.Host); err != nil {
		return f, err
	}
	if f.Registered, err = parseSince("registeredSince", string(q.Since), chains); err != nil {
		return f, err
	}
	if f.Updated, err = parseSince("updatedSince", string(q.Updated), chains); err != nil {
		return f, err
	}
	if f.MinPrice, err = parsePrice("minPrice", q.MinPrice); err != nil {
		return f, err
	}
	if f.MaxPrice, err = parsePrice("maxPrice", q.MaxPrice); err != nil {
		return f, err
	}
	if f.Score, err = parseScoreFilter(string(q.MinScore), string(q.MaxScore), string(q.Tier),
		q.RatedStatus); err != nil || q.MinFeedback == "" {
		return f, err
	}
	f.MinFeedback, err = strconv.ParseInt(string(q.MinFeedback), 10, 64)
	if err != nil || f.MinFeedback < 0 {
		return f, repute.Invalid("minFeedback", "not a number of ratings", "0 or more, e.g. 5")
	}
	return f, nil
}

// parseSince reads a time, a date, which begins at midnight UTC, or the number of a block, which needs one chain; the
// zero value for "". A number is never read as a year or a Unix time.
func parseSince(field, s string, chains []uint64) (f searchdb.Since, err error) {
	if s == "" {
		return f, nil
	}
	if strings.Trim(s, "0123456789") == "" {
		n, err := strconv.ParseInt(s, 10, 64)
		switch {
		case err != nil:
			return f, repute.Invalid(field, "not the number of a block", "a decimal number of up to 18 digits")
		case len(chains) != 1:
			return f, repute.Invalid(field, "is the number of a block, without one chain", "give chainId, or a time")
		}
		f.Block = uint64(n)
		return f, nil
	}
	if f.Time, err = parseTime(field, s,
		"2026-01-31T12:00:00Z or 2026-01-31, or the number of a block with one chain"); err != nil {
		return searchdb.Since{}, err
	}
	if epoch := time.Unix(0, 0).UTC(); f.Time.Before(epoch) { // matches every block with a known time
		f.Time = epoch
	}
	return f, nil
}

// parseTime reads a time, or a date, which begins at midnight UTC. allowed are examples for the error.
func parseTime(field, s, allowed string) (t time.Time, err error) {
	if t, err = time.Parse(time.DateOnly, s); err != nil {
		t, err = time.Parse(time.RFC3339Nano, s)
	}
	if err != nil {
		return t, repute.Invalid(field, "neither a time nor a date", "e.g. "+allowed)
	}
	return t, nil
}

// parseHost reads a host as it is stored with documents; "" for "". An address in hexadecimal is refused: the search
// text q finds it.
func parseHost(s string) (string, error) {
	if s == "" {
		return "", nil
	}
	host, rest := searchtext.PlaceOf(searchtext.Folded(s, 4*column.LongestHost))
	if host == "" || rest != "" || !utf8.ValidString(s) || len(s) > column.LongestHost ||
		strings.ContainsAny(host, "/?#@") || common.IsHexAddress(host) {
		return "", repute.Invalid("host", "not a host",
			"a name or an IP address without scheme and path, e.g. shop.example")
	}
	return host, nil
}

// Filter parses the parameters that select and order agents. isSearch looks at what was given and not at values, so
// that q= orders by relevance too.
func (q *AgentsQuery) Filter(chains []uint64) (f searchdb.AgentFilter, err error) {
	if f, err = q.AgentsFilter.Filter(chains); err != nil {
		return f, err
	}
	if f.Sort, f.Desc, err = ParseSort(q.Sort, q.Order, q.isSearch()); err != nil {
		return f, err
	}
	fold, err := q.Fold.Optional("fold")
	if err != nil {
		return f, err
	}
	f.Unfolded, f.After = fold != nil && !*fold, q.Cursor
	f.Limit, err = httpapi.PageSize(q.Limit, httpapi.DefaultPage, httpapi.MaxPage)
	return f, err
}

// ParseSort parses the order of a list. Without order, ids ascend and all others descend. search says that parameters
// of SearchQuery are given, which makes relevance the default.
func ParseSort(sort, order string, search bool) (by string, desc bool, err error) {
	switch sort {
	case "":
		if sort = query.SortID; search {
			sort = query.SortRelevance
		}
	case query.SortID, query.SortFeedback, query.SortUpdated, query.SortScore, query.SortRelevance:
	default:
		return "", false, repute.Invalid("sort", "unknown order", "id, feedback, updated, score or relevance")
	}
	switch order {
	case "":
		return sort, sort != query.SortID, nil
	case "asc", "desc":
		return sort, order == "desc", nil
	}
	return "", false, repute.Invalid("order", "unknown direction", "asc or desc")
}

// SearchError replaces the names of fields in an error by those of the caller's parameters (text is that of the search
// text), and adds a hint to the error of a search that takes too long.
func SearchError(err error, text string) error {
	if input, isInput := errors.AsType[*repute.InputError](err); isInput {
		names := map[string]string{"q": text, "trust": "supportedTrust"}
		if name := names[input.Field]; name != "" {
			return repute.Invalid(name, input.Reason, input.Hint)
		}
	}
	if b := *httpapi.ErrorOf(err); b.Status == http.StatusServiceUnavailable && b.Code == "timeout" {
		b.Hint = "another word, a longer one or another filter makes the search find less"
		return &b
	}
	return err
}
