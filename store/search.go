package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"repute"
)

// SearchFilter selects agents by their documents and by what lists filter by.
// Values are compared without regard to case.
type SearchFilter struct {
	// Text is what is searched for, "" for anything: words as they are found in
	// any order, "a phrase", -without, this or that; without such signs also parts
	// of words and, where it is one word, names that are nearly the same.
	Text          string
	ChainIDs      []uint64        // nil for all
	Owner, Wallet *common.Address // nil for any
	// Service to Trust are "" for any, one value or a list divided by commas, all of
	// which an agent must have. A value that holds commas itself is found, too.
	// Tag is "" for any, or the tag1 of a live rating exactly as it is.
	Service, Skill, Domain, Trust, Tag string
	X402, Active                       *bool                 // nil for any
	Status                             repute.DocumentStatus // "" for any
	MinFeedback                        int64                 // live ratings at least
	After                              string                // Next of the page before, with the same filter
	Limit                              int                   // 1..MaxPage
}

// Count is how many there are, or that there are more than were counted.
type Count struct {
	Value   int64
	AtLeast bool // there are more
}

// Found is a page of a search.
type Found struct {
	Page[repute.Agent]
	Total Count // of all pages
}

const (
	// maxCounted bounds what is counted for totals and facets.
	maxCounted = 10_000
	// maxHits bounds the documents that are put in order, twice: once for those whose
	// names match. Of words that more of them hold these are any.
	maxHits = 20_000
	// minSearchText and maxSearchLength bound Text, in characters.
	minSearchText   = 2
	maxSearchLength = 200
	maxSearchFolded = 2000 // bytes, of a text whose letters are other forms of several
	maxSearchWords  = 8
	// searchTimeout bounds each statement of a search.
	searchTimeout = 3 * time.Second
	// similar is how much of its trigrams a misspelt word shares with a name's.
	similar = 0.5
)

// errTooMuch ends a search that reads too much, errTooMany one that found no place.
var (
	errTooMuch = fmt.Errorf("the search finds too much to be ordered in time: %w", context.DeadlineExceeded)
	errTooMany = fmt.Errorf("too many searches at once: %w", context.DeadlineExceeded)
)

// Search lists the newest state of agents that match, as in Agents. With Text the
// best matches come first (names before services, skills, domains, trust models
// and tags, before descriptions, before parts of words), among equals those with
// most ratings, then the newest of the highest chain. Of what tens of thousands of
// documents hold not all are looked into: names first. It fails with
// context.DeadlineExceeded where that takes the database more than three seconds, or
// too many others search.
func (db *DB) Search(ctx context.Context, f SearchFilter) (found Found, err error) {
	q, err := f.query()
	if err != nil {
		return found, err
	}
	if err := checkLimit(f.Limit); err != nil {
		return found, err
	}
	question, err := f.question()
	if err != nil {
		return found, err
	}
	from, going, err := decodeCursor[searchPos](question, f.After)
	if err != nil {
		return found, err
	}
	if !going {
		from = searchStart()
	}
	if _, err := repute.ParseTokenID(from.Token); err != nil {
		return found, repute.Invalid("cursor", "not a cursor of this list", "pass the next cursor of the page before, unchanged")
	}
	err = db.searching(ctx, f.ChainIDs, func(ctx context.Context, tx pgx.Tx, chains []*chainView) error {
		for _, c := range chains {
			found.AsOf = append(found.AsOf, c.latest())
		}
		if found.Total, err = q.count(ctx, tx, chains); err != nil {
			return err
		}
		entries, err := q.page(ctx, tx, chains, from, f.Limit+1)
		if err != nil {
			return err
		}
		if len(entries) > f.Limit {
			entries = entries[:f.Limit]
			if found.Next, err = encodeCursor(question, entries[f.Limit-1].pos()); err != nil {
				return err
			}
		}
		ids := make([]repute.AgentID, len(entries))
		for i, e := range entries {
			ids[i] = e.id
		}
		found.Items, err = inOrder(ctx, tx, ids)
		return err
	})
	return found, err
}

// searching runs f on one snapshot in which no statement may take long. Searches use no
// more than a part of the readers: those who ask for something by its id do not wait
// behind them.
func (db *DB) searching(ctx context.Context, chainIDs []uint64, f func(context.Context, pgx.Tx, []*chainView) error) error {
	waited := time.NewTimer(searchTimeout)
	defer waited.Stop()
	select {
	case db.searches <- struct{}{}:
		defer func() { <-db.searches }()
	case <-waited.C:
		return errTooMany
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	err := db.view(ctx, "search", func(ctx context.Context, tx pgx.Tx) error {
		chains, err := chainsOf(ctx, tx, chainIDs)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, fmt.Sprintf("set local statement_timeout = %d; set local jit = off; set local pg_trgm.word_similarity_threshold = %g",
			searchTimeout.Milliseconds(), similar))
		if err != nil {
			return err
		}
		return f(ctx, tx, chains)
	})
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "57014" && ctx.Err() == nil {
		return errTooMuch
	}
	return err
}

// question names the filter: pages of another one do not follow its pages.
func (f SearchFilter) question() (string, error) {
	f.After, f.Limit = "", 0
	return cursorFor("search", f)
}

// searchPos is the last agent of a page.
type searchPos struct {
	Class    int32  `json:"c"` // how well the text matches, 0 without one
	Feedback int64  `json:"k"`
	Chain    int64  `json:"n"`
	Token    string `json:"t"`
}

// searchStart is in front of every agent.
func searchStart() searchPos {
	return searchPos{math.MaxInt32, math.MaxInt64, math.MaxInt64, "0"}
}

// searchEntry is one candidate of a page.
type searchEntry struct {
	id       repute.AgentID
	class    int32
	feedback int64
}

func (e searchEntry) pos() searchPos {
	return searchPos{e.class, e.feedback, int64(e.id.ChainID), e.id.TokenID.Dec()}
}

// checkText says what is wrong with a text to search for, and gives it trimmed.
func checkText(s string) (string, error) {
	const hint = "two or more letters or digits in one word, e.g. weather"
	if !utf8.ValidString(s) {
		return "", repute.Invalid("q", "not UTF-8", hint)
	}
	if utf8.RuneCountInString(s) > maxSearchLength {
		return "", repute.Invalid("q", fmt.Sprintf("longer than %d characters", maxSearchLength), "fewer words")
	}
	if strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) && !unicode.IsSpace(r) }) {
		return "", repute.Invalid("q", "holds a control character", hint)
	}
	s = folded(s, maxSearchFolded)
	if longestWord(s) < minSearchText {
		return "", repute.Invalid("q", "no word of it has two letters or digits", hint)
	}
	if len(strings.Fields(s)) > maxSearchWords {
		return "", repute.Invalid("q", fmt.Sprintf("more than %d words", maxSearchWords), "fewer words")
	}
	return s, nil
}

// checkValue says what is wrong with a value to filter by, and gives it as it is stored.
func checkValue(field, s string) (string, error) {
	if s == "" {
		return "", nil
	}
	v := lowered(s, len(s)+utf8.UTFMax)
	if v == "" || len(v) > maxSearchValue || !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
		return "", repute.Invalid(field, "not a value that is searched", fmt.Sprintf("1 to %d bytes of text, e.g. one of /agents/facets; values of a list are divided by commas", maxSearchValue))
	}
	return v, nil
}

// checkList reads a list divided by commas; nil for "".
func checkList(field, s string) (values []string, err error) {
	if s == "" {
		return nil, nil
	}
	parts := strings.Split(s, ",")
	if len(parts) > maxSearchWords {
		return nil, repute.Invalid(field, fmt.Sprintf("more than %d values", maxSearchWords), "fewer values")
	}
	for _, part := range parts {
		v, err := checkValue(field, cmp.Or(part, " "))
		if err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	return values, nil
}

// tokenOf reads a position's token, which was checked.
func tokenOf(p searchPos) *big.Int {
	id, _ := repute.ParseTokenID(p.Token)
	return id.ToBig()
}
