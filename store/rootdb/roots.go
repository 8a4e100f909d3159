package rootdb

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/column"
)

// Bounds of roots and links.
const (
	// MaxRootWeight is the largest weight of a root, in millionths.
	MaxRootWeight = 1000 * repute.RootUnit
	// maxRoots is how many roots a set may have, maxLinks how many links a chain may have.
	maxRoots = 10_000
	maxLinks = 1_000_000
	// maxRootRules is the most bytes of a root's rules for tags.
	maxRootRules = 16 << 10
	// MaxReason is the most bytes of reasons and sources.
	MaxReason = 500
)

// Roots returns a chain's set of roots ordered by address, expired ones too; none when there is no
// such set.
func Roots(ctx context.Context, db *store.DB, chainID uint64, set string) ([]repute.TrustRoot, error) {
	list, err := rootsOf(ctx, db.Readers(), chainID, set)
	return list, store.Failed("list roots", err)
}

// rootsOf reads a set.
func rootsOf(ctx context.Context, q store.Querier, chainID uint64, set string) ([]repute.TrustRoot, error) {
	rows, _ := q.Query(ctx, `
		select address, weight, class, rules, reason, expires_at from trust_roots
		where chain_id = $1 and set_name = $2 order by address`, chainID, set)
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (r repute.TrustRoot, err error) {
		return r, row.Scan((*column.Address)(&r.Address), &r.Weight, &r.Class, &r.Rules, &r.Reason,
			(*column.Time)(&r.Expires))
	})
}

// RootSet identifies one set of roots.
type RootSet struct {
	ChainID uint64
	Name    string
	// Roots counts them, expired ones too.
	Roots int
}

// RootSets returns all sets that have roots, ordered by chain and name.
func RootSets(ctx context.Context, db *store.DB) ([]RootSet, error) {
	rows, _ := db.Readers().Query(ctx,
		"select chain_id, set_name, count(*) from trust_roots group by 1, 2 order by 1, 2")
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[RootSet])
	return list, store.Failed("list sets of roots", err)
}

// CheckRootSet returns repute.ErrInvalid for a name that no set of roots may have.
func CheckRootSet(name string) error {
	if !regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,39}$`).MatchString(name) {
		return repute.Invalid("set", fmt.Sprintf("%.50q is no name of a set", name), "up to 40 of a-z, 0-9, - and _")
	}
	return nil
}

// CheckRoot returns repute.ErrInvalid for a root that cannot be stored.
func CheckRoot(r repute.TrustRoot) error {
	switch {
	case r.Address == (common.Address{}):
		return repute.Invalid("address", "is zero", "0x and 40 hex digits")
	case r.Weight == 0 || r.Weight > MaxRootWeight:
		return repute.Invalid("weight", "is not above 0 or is above 1000",
			"e.g. 1; only the ratio between roots counts")
	case r.Class != "" && r.Class != repute.ReviewedWriter:
		return repute.Invalid("class", fmt.Sprintf("%.20q is no class of roots", r.Class),
			"none, or B for a reviewed writer")
	case r.Class == repute.ReviewedWriter && r.Weight > repute.MaxWriterWeight:
		return repute.Invalid("weight", "of a reviewed writer is above 0.5", "at most 0.5")
	case len(r.Rules) > maxRootRules:
		return repute.Invalid("tags", fmt.Sprintf("the rules have %d bytes", len(r.Rules)), "at most 16 KiB")
	}
	return checkReason("reason", r.Reason)
}

// checkReason returns repute.ErrInvalid for a reason or source that is empty or too long.
func checkReason(field, text string) error {
	if strings.TrimSpace(text) == "" || len(text) > MaxReason || !utf8.ValidString(text) ||
		strings.ContainsRune(text, 0) {
		return repute.Invalid(field, fmt.Sprintf("is missing or longer than %d bytes", MaxReason),
			"a sentence that others can check")
	}
	return nil
}

// CheckLink returns repute.ErrInvalid for a link that cannot be stored.
func CheckLink(l repute.TrustLink) error {
	switch zero := (common.Address{}); {
	case l.A == zero || l.B == zero:
		return repute.Invalid("link", "is of the zero address", "give two addresses")
	case l.A == l.B:
		return repute.Invalid("link", "is of an address with itself", "give two addresses")
	}
	if err := checkReason("reason", l.Reason); err != nil {
		return err
	}
	return checkReason("source", l.Source)
}

// AddRoots adds roots to a chain's set or changes those in it; with replace it removes all others. All changes are
// stored or none. Scores use them from the next epoch on. repute.ErrInvalid when a root is invalid or the set would
// be too large. Each of checks gets the whole set as it would be, ordered by address; the first error of one is
// returned and nothing is stored.
func AddRoots(ctx context.Context, db *store.DB, chainID uint64, set string, roots []repute.TrustRoot,
	replace bool, checks ...func([]repute.TrustRoot) error) error {
	if err := CheckRootSet(set); err != nil {
		return err
	}
	for i, r := range roots {
		if err := CheckRoot(r); err != nil {
			return fmt.Errorf("root %d: %w", i+1, err)
		}
	}
	return db.InTx(ctx, pgx.TxOptions{}, "add roots", func(tx pgx.Tx) error {
		if err := lockTrust(ctx, tx); err != nil {
			return err
		}
		if replace {
			if _, err := tx.Exec(ctx, "delete from trust_roots where chain_id = $1 and set_name = $2", chainID,
				set); err != nil {
				return err
			}
		}
		if err := putRoots(ctx, tx, chainID, set, roots); err != nil {
			return err
		}
		if err := atMost(ctx, tx, maxRoots, "set",
			"select count(*) from trust_roots where chain_id = $1 and set_name = $2", chainID, set); err != nil {
			return err
		}
		return checkSet(ctx, tx, chainID, set, checks)
	})
}

// checkSet returns the first error of checks about a set as the transaction has it.
func checkSet(ctx context.Context, tx pgx.Tx, chainID uint64, set string,
	checks []func([]repute.TrustRoot) error) error {
	if len(checks) == 0 {
		return nil
	}
	whole, err := rootsOf(ctx, tx, chainID, set)
	for _, check := range checks {
		if err == nil {
			err = check(whole)
		}
	}
	return err
}

// lockTrust lets one transaction at a time change roots and links.
func lockTrust(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, "select pg_advisory_xact_lock(hashtext('trust_roots'))")
	return err
}

// atMost returns repute.ErrInvalid when a count exceeds most.
func atMost(ctx context.Context, tx pgx.Tx, most int, field, count string, args ...any) error {
	var n int
	if err := tx.QueryRow(ctx, count, args...).Scan(&n); err != nil {
		return err
	}
	if n > most {
		return repute.Invalid(field, fmt.Sprintf("would have %d entries", n), fmt.Sprintf("no more than %d", most))
	}
	return nil
}

// putRoots inserts or replaces roots.
func putRoots(ctx context.Context, tx pgx.Tx, chainID uint64, set string, roots []repute.TrustRoot) error {
	n := len(roots)
	addresses, weights, expires := make([][]byte, n), make([]int64, n), make([]*time.Time, n)
	reasons, classes, rules := make([]string, n), make([]string, n), make([]string, n)
	for i, r := range roots {
		addresses[i], weights[i] = r.Address.Bytes(), int64(r.Weight)
		reasons[i], classes[i], rules[i] = r.Reason, r.Class, r.Rules
		expires[i] = column.MaybeTime(r.Expires.UTC().Truncate(time.Second))
	}
	_, err := tx.Exec(ctx, `
		insert into trust_roots (chain_id, set_name, address, weight, reason, expires_at, class, rules)
		select distinct on (r.a) $1, $2, r.a, r.w, r.t, r.e, r.c, r.u
		from unnest($3::bytea[], $4::bigint[], $5::text[], $6::timestamptz[], $7::text[], $8::text[])
			with ordinality as r(a, w, t, e, c, u, n)
		order by r.a, r.n desc
		on conflict (chain_id, set_name, address) do update
		set weight = excluded.weight, reason = excluded.reason, expires_at = excluded.expires_at, class = excluded.class,
			rules = excluded.rules`,
		chainID, set, addresses, weights, reasons, expires, classes, rules)
	return err
}

// RemoveRoot removes a root from a chain's set. repute.ErrNotFound when it is not in it.
func RemoveRoot(ctx context.Context, db *store.DB, chainID uint64, set string, address common.Address) error {
	tag, err := db.Pool().Exec(ctx, "delete from trust_roots where chain_id = $1 and set_name = $2 and address = $3",
		chainID, set, address.Bytes())
	if err == nil && tag.RowsAffected() == 0 {
		return fmt.Errorf("root %s of set %s: %w", address.Hex(), set, repute.ErrNotFound)
	}
	return store.Failed("remove root", err)
}

// Links returns the pairs of addresses of a chain that are known to be one identity, ordered by
// address.
func Links(ctx context.Context, db *store.DB, chainID uint64) ([]repute.TrustLink, error) {
	rows, _ := db.Readers().Query(ctx,
		"select a, b, reason, source from trust_links where chain_id = $1 order by a, b", chainID)
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (l repute.TrustLink, err error) {
		return l, row.Scan((*column.Address)(&l.A), (*column.Address)(&l.B), &l.Reason, &l.Source)
	})
	return list, store.Failed("list links", err)
}

// AddLinks adds links to a chain or changes stored ones; with replace it removes all others. All
// changes are stored or none. Scores use them from the next epoch on. repute.ErrInvalid when a link
// is invalid or there would be too many.
func AddLinks(ctx context.Context, db *store.DB, chainID uint64, links []repute.TrustLink, replace bool) error {
	for i, l := range links {
		if err := CheckLink(l); err != nil {
			return fmt.Errorf("link %d: %w", i+1, err)
		}
	}
	return db.InTx(ctx, pgx.TxOptions{}, "add links", func(tx pgx.Tx) error {
		if err := lockTrust(ctx, tx); err != nil {
			return err
		}
		if replace {
			if _, err := tx.Exec(ctx, "delete from trust_links where chain_id = $1", chainID); err != nil {
				return err
			}
		}
		if err := putLinks(ctx, tx, chainID, links); err != nil {
			return err
		}
		return atMost(ctx, tx, maxLinks, "links", "select count(*) from trust_links where chain_id = $1", chainID)
	})
}

// RemoveLink removes a link of a chain. repute.ErrNotFound when it is not stored.
func RemoveLink(ctx context.Context, db *store.DB, chainID uint64, a, b common.Address) error {
	if a.Cmp(b) > 0 {
		a, b = b, a
	}
	tag, err := db.Pool().Exec(ctx, "delete from trust_links where (chain_id, a, b) = ($1, $2, $3)", chainID, a.Bytes(),
		b.Bytes())
	if err == nil && tag.RowsAffected() == 0 {
		return fmt.Errorf("link of %s and %s: %w", a.Hex(), b.Hex(), repute.ErrNotFound)
	}
	return store.Failed("remove link", err)
}

// putLinks inserts or replaces links.
func putLinks(ctx context.Context, tx pgx.Tx, chainID uint64, links []repute.TrustLink) error {
	var as, bs [][]byte
	var reasons, sources []string
	for _, l := range links {
		a, b := l.A.Bytes(), l.B.Bytes()
		if bytes.Compare(a, b) > 0 {
			a, b = b, a
		}
		as, bs, reasons, sources = append(as, a), append(bs, b), append(reasons, l.Reason), append(sources, l.Source)
	}
	_, err := tx.Exec(ctx, `
		insert into trust_links (chain_id, a, b, reason, source)
		select distinct on (l.a, l.b) $1, l.a, l.b, l.r, l.s
		from unnest($2::bytea[], $3::bytea[], $4::text[], $5::text[]) with ordinality as l(a, b, r, s, n) order by l.a,
			l.b, l.n desc
		on conflict (chain_id, a, b) do update set reason = excluded.reason, source = excluded.source`, chainID, as, bs, reasons, sources)
	return err
}
