package agentdb

import (
	"context"
	"strings"
	"unicode"

	"github.com/jackc/pgx/v5"

	"repute/store"
	"repute/store/column"
)

// MemoryBlock is a labeled text that an agent remembers.
type MemoryBlock struct {
	Session, Label, Text string
}

// Memory returns the blocks of a session of an agent, ordered by label.
func Memory(ctx context.Context, db *store.DB, agent, session string) ([]MemoryBlock, error) {
	rows, _ := db.Pool().Query(ctx,
		`select session, label, value from agent_memory where agent = $1 and session = $2 order by label`,
		column.CleanText(agent), column.CleanText(session))
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[MemoryBlock])
	return list, store.Failed("read memory", err)
}

// PutMemory stores a block, in place of the one with its label.
func PutMemory(ctx context.Context, db *store.DB, agent string, b MemoryBlock) error {
	_, err := db.Pool().Exec(ctx, `
		insert into agent_memory (agent, session, label, value) values ($1, $2, $3, $4)
		on conflict (agent, session, label) do update set value = excluded.value, changed_at = now()`,
		column.CleanText(agent), column.CleanText(b.Session), column.CleanText(b.Label), column.CleanText(b.Text))
	return store.Failed("store memory", err)
}

// SearchMemory returns the blocks of an agent that have a word of a query, the best first, of the sessions whose id
// begins with scope.
func SearchMemory(ctx context.Context, db *store.DB, agent, scope, query string, most int) ([]MemoryBlock, error) {
	words := strings.Join(strings.FieldsFunc(column.CleanText(query),
		func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`"'-`, r) }), " or ")
	rows, _ := db.Pool().Query(ctx, `
		select session, label, value from agent_memory
		where agent = $1 and starts_with(session, $4) and to_tsvector('simple', label || ' ' || value) @@ websearch_to_tsquery('simple', $2)
		order by ts_rank(to_tsvector('simple', label || ' ' || value), websearch_to_tsquery('simple', $2)) desc, changed_at desc,
			session, label limit $3`, column.CleanText(agent), words, most, column.CleanText(scope))
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[MemoryBlock])
	return list, store.Failed("search memory", err)
}
