package searchdb

import (
	"context"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/column"
	"repute/store/docdb"
	"repute/store/manifestdb"
	"repute/store/searchtext"
)

// AgentFilter selects and orders agents. All conditions may be combined. Values of documents are
// compared without regard to case.
type AgentFilter struct {
	// Text is searched for; empty for any. It is a list of words in any order, "a phrase",
	// -without, this or that. A text without operators also finds parts of words, a host, a URL or
	// an address. See Match for what happens when no agent has all words.
	Text     string
	ChainIDs []uint64        // nil for all
	Owner    *common.Address // nil for any
	Wallet   *common.Address // nil for any, the zero address for cleared
	// Operator may act for the agent: approved for it, or for all agents of its owner. Nil for any.
	Operator *common.Address
	// Host is one of an endpoint in the agent's document, or above one, as package searchtext writes it; empty for any.
	Host string
	// Service to Trust are empty for any, one value, or a list divided by commas, all of which an
	// agent must have. A value that contains commas is found too. Tag is empty for any, or the
	// exact tag1 of a live rating.
	Service, Skill, Domain, Trust, Tag string
	X402, Active                       *bool                 // nil for any
	Status                             repute.DocumentStatus // "" for any
	// MinFeedback is the least number of live ratings.
	MinFeedback int64
	// MinPrice and MaxPrice are decimal bounds of the lowest known price: see manifestdb.Priced. Nil for any.
	MinPrice, MaxPrice *string
	// Registered is of an agent's first block, and Updated of the last one with an event that touched it.
	Registered, Updated Since
	Score               ScoreFilter // the empty one for any
	// Unfolded lists near-identical agents of one owner one by one. Without Text they always are.
	Unfolded bool
	// Sort is SortRelevance with Text and SortID without one when it is empty.
	Sort  string
	Desc  bool
	After string // Next of the page before, with the same filter
	Limit int    // 1..MaxPage
	// CountOnly leaves the page out where the total does not depend on it.
	CountOnly bool
}

// Since selects agents by a block. The zero value selects all.
type Since struct {
	// Time selects blocks of this time or later; zero for any. A block without a known time is not selected.
	Time time.Time
	// Block selects this block and later ones; 0 for any. It makes sense on one chain alone.
	Block uint64
}

// where adds the conditions on a block, which is a column of agents a.
func (s Since) where(q *agentQuery, column string) {
	if s.Block > 0 {
		q.and("a."+column+" >= %s", s.Block)
	}
	if !s.Time.IsZero() {
		q.and(`exists (select from blocks rb
			where (rb.chain_id, rb.number) = (a.chain_id, a.`+column+`) and rb.time >= %s)`, s.Time)
	}
}

// question returns a digest of the filter, so that a cursor of another filter is refused.
func (f AgentFilter) question() (string, error) {
	f.After, f.Limit, f.CountOnly = "", 0, false
	return store.CursorFor("agents", f)
}

// IsPlain reports whether indexes find the matching agents directly, so that a page and its total
// are cheap.
func (f AgentFilter) IsPlain() bool {
	return f.sameAs(AgentFilter{ChainIDs: f.ChainIDs, Owner: f.Owner, Wallet: f.Wallet, Sort: f.Sort, Desc: f.Desc,
		Unfolded: f.Unfolded})
}

// sameAs reports whether two filters select the same, whatever page they ask for.
func (f AgentFilter) sameAs(other AgentFilter) bool {
	mine, err1 := f.question()
	others, err2 := other.question()
	return err1 == nil && err2 == nil && mine == others
}

// agentQuery is a filter as SQL: conditions on agents a, their URIs u, their search rows s and the
// denial of their document x, and with a text the statement that finds the matching documents.
type agentQuery struct {
	match *textMatch // nil without a text
	where string     // conditions on a, u, s and x, each after an "and"
	args  []any      // $1 is the chains
	// onDocument and onAgent are the conditions of where on s alone and on a alone. They select the
	// documents that a text finds, before the number of these is bounded.
	onDocument, onAgent string
	// late: a condition of where is in neither of them.
	late bool
	// needed: only agents with a document can match. documents: u, s and x are used.
	needed, documents bool
	unfolded          bool
	// scored is the condition on the score ts of an agent; empty for none.
	scored string
}

// arg adds a parameter and returns its name.
func (q *agentQuery) arg(v any) string {
	q.args = append(q.args, v)
	return fmt.Sprintf("$%d", len(q.args))
}

// and adds a condition with one parameter.
func (q *agentQuery) and(format string, v any) { q.where += " and " + fmt.Sprintf(format, q.arg(v)) }

// withArgs returns the parameters of a statement, with more appended.
func (q *agentQuery) withArgs(chains []*chaindb.ChainView, more ...any) []any {
	args := slices.Concat(q.args, more)
	args[0] = chaindb.ChainIDs(chains)
	return args
}

// query returns the filter as SQL, with its text matched in a mode.
func (f AgentFilter) query(ctx context.Context, tx pgx.Tx, mode Match) (*agentQuery, error) {
	q := &agentQuery{args: []any{nil}, unfolded: f.Unfolded}
	if err := f.onDocument(q); err != nil {
		return nil, err
	}
	before := len(q.where)
	if err := f.onChain(q); err != nil || f.Text == "" {
		return q, err
	}
	q.onAgent = q.where[before:]
	text, err := checkText(f.Text)
	if err != nil {
		return nil, err
	}
	q.documents = true
	return q, q.matchText(ctx, tx, text, f.Text, mode)
}

// check returns what is wrong with the filter, before anything is read.
func (f AgentFilter) check() error {
	if f.Text != "" {
		if _, err := checkText(f.Text); err != nil {
			return err
		}
	}
	q := &agentQuery{args: []any{nil}}
	if err := f.onDocument(q); err != nil {
		return err
	}
	return f.onChain(q)
}

// onDocument adds the conditions on documents.
func (f AgentFilter) onDocument(q *agentQuery) error {
	for _, l := range []struct{ field, column, value string }{
		{"service", "services", f.Service}, {"skill", "skills", f.Skill}, {"domain", "domains", f.Domain},
		{"trust", "trust", f.Trust},
	} {
		values, err := checkList(l.field, l.value)
		if err != nil {
			return err
		}
		if values != nil {
			q.having("s."+l.column, l.value, values)
		}
	}
	if f.Host != "" {
		q.document("s.places @> array[" + q.arg(f.Host) + "::text]")
	}
	if f.X402 != nil {
		q.document("s.x402 = " + q.arg(*f.X402))
	}
	if f.Active != nil {
		q.document("s.active = " + q.arg(*f.Active))
	}
	f.priced(q)
	if q.needed {
		// Postgres takes an expression to be null in one row of 200, and would sort all agents instead of following an
		// index.
		q.where += " and nullif(x.denied is null, false) is not null"
	}
	if f.Status == "" {
		q.documents = q.needed
		return nil
	}
	if !slices.Contains(documentStates(), f.Status) {
		return repute.Invalid("status", "no state of a document", "one of "+stateNames())
	}
	q.documents, q.late = true, true
	q.where += " and " + hasStatus(f.Status)
	return nil
}

// priced adds the bounds of the price.
func (f AgentFilter) priced(q *agentQuery) {
	bound := func(price *string) string {
		if price == nil {
			return ""
		}
		return q.arg(*price) + "::numeric"
	}
	if least, most := bound(f.MinPrice), bound(f.MaxPrice); least != "" || most != "" {
		q.document(manifestdb.Priced("s.sha256", least, most))
	}
}

// having adds that a list column holds all values, or the text that they were written as.
func (q *agentQuery) having(column, text string, values []string) {
	condition := column + " @> " + q.arg(values) + "::text[]"
	if len(values) > 1 {
		condition = fmt.Sprintf("(%s or %s @> array[%s::text])", condition, column,
			q.arg(searchtext.Lowered(text, len(text)+utf8.UTFMax)))
	}
	q.document(condition)
}

// document adds a condition on searchable s.
func (q *agentQuery) document(condition string) {
	q.needed = true
	q.where += " and " + condition
	q.onDocument += " and " + condition
}

// onChain adds the conditions on agents. The partial index on wallets is used only where its own
// condition is repeated.
func (f AgentFilter) onChain(q *agentQuery) error {
	if f.MinFeedback < 0 {
		return repute.Invalid("minFeedback", "is negative", "0 or more")
	}
	if f.MinFeedback > 0 {
		q.and("a.feedback >= %s", f.MinFeedback)
	}
	if f.Owner != nil {
		q.and("a.owner = %s", column.AddressBytes(*f.Owner))
	}
	switch {
	case f.Wallet != nil && *f.Wallet == (common.Address{}):
		q.where += " and a.wallet = ''"
	case f.Wallet != nil:
		q.and("a.wallet = %s and a.wallet <> ''", column.AddressBytes(*f.Wallet))
	}
	if f.Operator != nil {
		f.operated(q)
	}
	f.Registered.where(q, "registered_block")
	f.Updated.where(q, "updated_block")
	if f.Tag != "" {
		q.and(`exists (select from votes v join tags t on t.id = v.tag1
			where (v.chain_id, v.token_id) = (a.chain_id, a.token_id) and t.hash = %s)`, crypto.Keccak256([]byte(f.Tag)))
	}
	f.Score.where(q)
	return nil
}

// operated adds the condition on who may act for an agent. The partial indexes are used only where their own conditions
// are repeated.
func (f AgentFilter) operated(q *agentQuery) {
	operator := q.arg(f.Operator[:])
	q.where += ` and (a.chain_id, a.token_id) in (
		select p.chain_id, p.token_id from agents p
			where p.chain_id = any($1::bigint[]) and p.approved = ` + operator + ` and p.approved <> ''
		union
		select g.chain_id, g.token_id from operators o join agents g on (g.chain_id, g.owner) = (o.chain_id, o.owner)
			where o.chain_id = any($1::bigint[]) and o.operator = ` + operator + ` and o.to_block is null)`
}

// documentStatus is the SQL of the status that docdb.DocumentRow computes.
const documentStatus = `case when u.uri = '' then 'none' when x.denied is not null then 'denied'
	when s.errors > 0 then 'invalid' when s.errors = 0 then 'ok' when u.dead then 'dead' when u.reason <> '' then 'failed' else 'pending' end`

// hasStatus returns SQL that holds where documentStatus is a status; the two MUST agree. It uses plain columns, of
// which Postgres knows how many rows have a value. Of an expression it assumes that one row in 200 does, and sorts all
// agents where it could follow an index to the first of many. Denied documents are rare, and keep the expression.
func hasStatus(status repute.DocumentStatus) string {
	const allowed = "u.uri <> '' and nullif(x.denied is null, false) is not null"
	switch status {
	case repute.DocumentNone:
		return "u.uri = ''"
	case repute.DocumentInvalid:
		return allowed + " and s.errors > 0"
	case repute.DocumentOK:
		return allowed + " and s.errors = 0"
	case repute.DocumentDead:
		return allowed + " and s.errors is null and u.dead"
	case repute.DocumentFailed:
		return allowed + " and s.errors is null and not u.dead and u.reason <> ''"
	case repute.DocumentPending:
		return allowed + " and s.errors is null and not u.dead and u.reason = ''"
	}
	return "(" + documentStatus + ") = '" + string(repute.DocumentDenied) + "'"
}

// documentStates returns the states that an agent's document can have.
func documentStates() []repute.DocumentStatus {
	return []repute.DocumentStatus{repute.DocumentNone, repute.DocumentPending, repute.DocumentOK,
		repute.DocumentInvalid, repute.DocumentFailed,
		repute.DocumentDead, repute.DocumentDenied}
}

// stateNames returns them as a list in words, for an error.
func stateNames() string {
	names := ""
	for _, s := range documentStates() {
		names += ", " + string(s)
	}
	return names[2:]
}

// joins returns the joins to relation a that the conditions and the order of a page need.
func (q *agentQuery) joins() string {
	if !q.documents {
		return ""
	}
	join := "left join"
	if q.needed {
		join = "join"
	}
	return ` join uris u on u.id = a.uri_id ` + join + ` searchable s on s.sha256 = u.sha256
		cross join lateral (select ` + docdb.DeniedDocument("u", "a") + ` as denied) x`
}

// source returns the SQL of all agents that match the text, or of every agent without one, as
// relation a with the joins.
func (q *agentQuery) source(ranked bool) (with, from string) {
	if q.match == nil {
		return "", "agents a" + q.joins()
	}
	return q.match.with(ranked, q.onDocument, q.onAgent), "a" + q.joins()
}
