package searchtext

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"repute"
	"repute/store/column"
)

// SearchForm is the version of the search rows. It MUST be raised whenever their content changes; searchdb.FillSearch
// computes rows of another version again.
const SearchForm = 5

// The author of a document chooses how long it is, so only its head is searched. Bounds are in
// bytes, of lists in values.
const (
	maxSearchText  = 16 << 10 // bytes of all that is searched
	maxSearchName  = 200      // bytes
	MaxSearchValue = 100      // bytes of a service, skill, domain, trust model or tag
	maxSearchPlace = 200      // bytes of an endpoint
	maxSearchList  = 64       // values of each
	// maxTrigramText is how many bytes are searched for parts of words: name, labels and the head
	// of a description. An index of trigrams costs several times what one of words does.
	maxTrigramText = 512
)

// searchText is the text of a document by which it is found.
type searchText struct {
	name, description                      string
	services, skills, domains, trust, tags []string
	places                                 []string // see placesOf
	x402, active                           *bool
}

// searchTextOf returns the text of a registration file. Of nil it is empty: agents without a file
// are found by their addresses. No list is nil.
func searchTextOf(r *repute.Registration) searchText {
	if r == nil {
		r = &repute.Registration{}
	}
	var services, skills, domains, tags []string
	for _, s := range r.Services {
		services = append(services, s.Name)
		skills = append(skills, s.Skills...)
		domains = append(domains, s.Domains...)
	}
	_ = json.Unmarshal(r.Extra["tags"], &tags) // of any other shape: no tags
	return searchText{
		name: Folded(r.Name, maxSearchName), description: Folded(r.Description, maxSearchText),
		services: loweredList(services), skills: loweredList(skills), domains: loweredList(domains),
		trust: loweredList(r.SupportedTrust), tags: loweredList(tags), places: placesOf(r.Services), x402: r.X402,
		active: r.Active,
	}
}

// Lowered returns the first bytes of a text in lower case with single spaces, as Postgres accepts
// it. It never ends within a character.
func Lowered(s string, bytes int) string {
	s = column.CleanText(s[:min(len(s), 2*bytes)])
	s = strings.Join(strings.FieldsFunc(strings.ToLower(s), isBlank), " ")
	return wholeHead(s, bytes)
}

// isBlank reports whether r is shown as space or not at all.
func isBlank(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }

// wholeHead returns at most bytes bytes of s without a partial character.
func wholeHead(s string, bytes int) string {
	if len(s) <= bytes {
		return s
	}
	for bytes > 0 && !utf8.RuneStart(s[bytes]) {
		bytes--
	}
	return s[:bytes]
}

// loweredList returns distinct values in lower case, within the bounds of lists.
func loweredList(values []string) []string {
	out := []string{}
	for _, v := range values[:min(len(values), 4*maxSearchList)] {
		v = Lowered(v, MaxSearchValue)
		if v != "" && len(out) < maxSearchList && !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

// labels returns the values of all lists, folded.
func (s searchText) labels() string {
	all := strings.Join(slices.Concat(s.services, s.skills, s.domains, s.trust, s.tags), " ")
	return Folded(all, 2*len(all))
}

// Searchable is a row of table searchable, as UpsertSearchable takes it.
type Searchable struct {
	Sum         string   `json:"sum"` // hex
	Form        int      `json:"form"`
	Version     int      `json:"version"`
	Errors      int      `json:"errors"`
	Name        string   `json:"name"`
	Words       string   `json:"words"`
	Names       string   `json:"names"` // this and the next two as words
	Labels      string   `json:"labels"`
	Description string   `json:"description"`
	Hosts       string   `json:"hosts"`
	Title       string   `json:"title"`
	Places      []string `json:"places"`
	Alike       *int64   `json:"alike"` // equal for near-identical documents
	Services    []string `json:"services"`
	Skills      []string `json:"skills"`
	Domains     []string `json:"domains"`
	Trust       []string `json:"trust"`
	X402        *bool    `json:"x402"`
	Active      *bool    `json:"active"`
}

// SearchableOf returns the search row of one parsed document.
func SearchableOf(sum []byte, version, worst int, r *repute.Registration) Searchable {
	s := searchTextOf(r)
	labels := s.labels()
	words := wholeHead(s.name+"\n"+labels+"\n"+s.description, maxTrigramText)
	description := wholeHead(s.description, max(0, maxSearchText-len(s.name)-len(labels)))
	return Searchable{Sum: hex.EncodeToString(sum), Form: SearchForm, Version: version, Errors: worst, Name: s.name,
		Words: words,
		Names: AsWords(s.name), Labels: AsWords(labels), Description: AsWords(description), Hosts: s.hosts(),
		Title: AsWords(s.name), Places: s.places, Alike: s.alike(), Services: s.services, Skills: s.skills,
		Domains: s.domains, Trust: s.trust, X402: s.x402, Active: s.active}
}

// hosts returns the words of the hosts of endpoints without public suffixes: zyf finds zyf.ai, and
// ai does not.
func (s searchText) hosts() string {
	var out []string
	for _, place := range s.places {
		if isHost(place) {
			out = append(out, AsWords(Folded(place[:strings.LastIndexByte(place, '.')], maxSearchPlace)))
		}
	}
	return strings.Join(out, " ")
}

// alike returns a number that documents share whose names, descriptions, labels and hosts differ
// only in numbers, as "Trader 7" and "Trader 8" do. A search lists a thousand of them once. It is
// nil without a name and a description.
func (s searchText) alike() *int64 {
	if s.name == "" && s.description == "" {
		return nil
	}
	labels := slices.Sorted(slices.Values(withoutNumbers(s.labels())))
	parts := [][]string{withoutNumbers(s.name), withoutNumbers(s.description), labels, withoutNumbers(s.hosts())}
	h := sha256.New()
	for _, words := range parts {
		h.Write([]byte(strings.Join(words, " ") + "\n"))
	}
	sum := h.Sum(nil)
	n := int64(binary.BigEndian.Uint64(sum[:8]))
	return &n
}

// withoutNumbers returns the words of a folded text without trailing digits and without numbers:
// agent7 is agent, but gpt4 and claude3 stay different.
func withoutNumbers(s string) (out []string) {
	for _, word := range strings.Fields(AsWords(s)) {
		if word = strings.TrimRightFunc(word, unicode.IsDigit); word != "" {
			out = append(out, word)
		}
	}
	return out
}

// UpsertSearchable is the statement that writes rows of different documents, except where a row of
// a newer parser exists. Its parameter is a list of Searchable, because each statement opens six
// indexes.
const UpsertSearchable = `
	insert into searchable (sha256, form, version, errors, name, words, vector, services, skills, domains, trust, x402,
		active, title, places, alike)
	select decode(sum, 'hex'), form, version, errors, name, words,
		setweight(to_tsvector('english', names), 'A') || setweight(to_tsvector('english', labels), 'B') || setweight(to_tsvector('english', description), 'C') ||
			setweight(to_tsvector('english', hosts), 'D'),
		services, skills, domains, trust, x402, active, title, places, alike
	from json_to_recordset($1::json) as s(sum text, form smallint, version int, errors int, name text, words text,
		names text, labels text,
		description text, hosts text, title text, places text[], alike bigint, services text[], skills text[], domains text[], trust text[], x402 bool, active bool)
	on conflict (sha256) do update set (form, version, errors, name, words, vector, services, skills, domains, trust,
		x402, active, title, places, alike) =
		(excluded.form, excluded.version, excluded.errors, excluded.name, excluded.words, excluded.vector,
		excluded.services, excluded.skills, excluded.domains, excluded.trust, excluded.x402, excluded.active,
		excluded.title, excluded.places, excluded.alike)
	where searchable.version <= excluded.version`
