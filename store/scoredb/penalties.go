package scoredb

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/column"
)

// Affiliation is an identity that is related to an agent.
type Affiliation struct {
	TokenID repute.TokenID
	// Identity is the name of an identity of the run's graph.
	Identity common.Address
	// Domains prove the agent; they matter for WorstPenalties alone.
	Domains []string
}

// Identities are the identities of a run's graph, by which the agents of a penalized one are
// found.
type Identities struct {
	Members func(identity common.Address) []common.Address // in an order of their own
	Known   func(identity common.Address) int              // how many agents it has that are known
	Params  common.Hash                                    // of the run
}

// known returns a digest of an identity's members and the rules. When it changes, related
// agents are scored again.
func (who Identities) known(identity common.Address) []byte {
	h := sha256.New()
	h.Write(who.Params[:])
	if who.Known != nil {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(who.Known(identity))))
	}
	members := slices.Clone(who.Members(identity)) // each process that makes the graph has another order
	slices.SortFunc(members, common.Address.Cmp)
	for _, m := range members {
		h.Write(m[:])
	}
	return h.Sum(nil)
}

// Penalized returns the identities of a chain that have penalties, and the agents that brought them.
func Penalized(ctx context.Context, db *store.DB, chainID uint64) (identities map[common.Address]bool,
	agents map[repute.TokenID]bool, err error) {
	rows, _ := db.Pool().Query(ctx, "select distinct identity, token_id from trust_penalties where chain_id = $1",
		chainID)
	identities, agents = map[common.Address]bool{}, map[repute.TokenID]bool{}
	var identity []byte
	var agent column.TokenNum
	_, err = pgx.ForEachRow(rows, []any{&identity, &agent}, func() error {
		identities[common.BytesToAddress(identity)], agents[repute.TokenID(agent)] = true, true
		return nil
	})
	return identities, agents, store.Failed("penalties", err)
}

// WorstPenalties returns by agent, for each of its affiliations, the worst penalty of the identity by another
// agent: in the newest state, or as of the newest run. One identity may have several for agents that different domains
// prove. It takes no locks; a penalty written at the same time makes the agent stale again.
func WorstPenalties(ctx context.Context, db *store.DB, chainID uint64, list []Affiliation,
	final bool) (map[repute.TokenID][]repute.Penalty, error) {
	tokens, identities, domains := make([]repute.TokenID, len(list)), make([]common.Address, len(list)), make([]string,
		len(list))
	for i, a := range list {
		tokens[i], identities[i], domains[i] = a.TokenID, a.Identity, strings.Join(a.Domains, " ")
	}
	rows, _ := db.Pool().Query(ctx, `
		with u as (
			select t, p, string_to_array(d, ' ') as d from unnest($3::numeric[], $4::bytea[], $5::text[]) u(t, p, d)),
		bad as materialized (
			select p, d, (select count(*) from (
				select from trust_penalties b where b.chain_id = $1 and b.final = $2 and b.identity = u.p
				and (b.domains = '{}' or b.domains && u.d) limit 1000) b) n
			from (select distinct p, d from u) u)
		select u.t, g.token_id, g.identity, g.owner, g.score, g.high, g.tier, bad.n, g.domains
		from u join bad using (p, d)
		cross join lateral (
			select * from trust_penalties g where g.chain_id = $1 and g.final = $2 and g.identity = u.p and g.token_id <> u.t
			and (g.domains = '{}' or g.domains && u.d)
			order by g.score, g.token_id limit 1) g`,
		chainID, final, column.TokenArray(tokens), column.AddressColumn(identities), domains)
	out := map[repute.TokenID][]repute.Penalty{}
	var of column.TokenNum
	var g repute.Penalty
	var identity, owner []byte
	into := []any{&of, (*column.TokenNum)(&g.TokenID), &identity, &owner, &g.Score, &g.High, &g.Tier, &g.Bad,
		&g.Domains}
	_, err := pgx.ForEachRow(rows, into, func() error {
		g.Identity, g.Holder = common.BytesToAddress(identity), common.BytesToAddress(owner)
		out[repute.TokenID(of)] = append(out[repute.TokenID(of)], g)
		return nil
	})
	return out, store.Failed("read penalties", err)
}

// PenalizedAmong returns those of the identities that have penalties, and whether some of these are bounded to domains.
func PenalizedAmong(ctx context.Context, db *store.DB, chainID uint64, identities []common.Address,
	final bool) (bounded map[common.Address]bool, err error) {
	rows, _ := db.Pool().Query(ctx, `
		select identity, bool_or(domains <> '{}') from trust_penalties
		where chain_id = $1 and final = $2 and identity = any($3) group by identity`,
		chainID, final, column.AddressColumn(identities))
	bounded = map[common.Address]bool{}
	var identity []byte
	var some bool
	_, err = pgx.ForEachRow(rows, []any{&identity, &some}, func() error {
		bounded[common.BytesToAddress(identity)] = some
		return nil
	})
	return bounded, store.Failed("identities with penalties", err)
}

// findPenalties sets has when saving agents writes penalties: some have one now or, as a statement of the batch finds,
// had one.
func findPenalties(b *pgx.Batch, chainID uint64, agents []*ScoredAgent, inOrder bool, has *bool) {
	for _, a := range agents {
		if a.Current != nil && len(a.Current.Penalties) > 0 || a.Last != nil && len(a.Last.Penalties) > 0 {
			*has = true
			return
		}
	}
	which, args := "token_id = any($2::numeric[])", []any{chainID, column.TokenArray(tokensOf(agents))}
	if inOrder && len(agents) > 0 { // one range instead of thousands of keys; it may have others, which does no harm
		which = "token_id between $2 and $3"
		args = []any{chainID, column.TokenNum(agents[0].TokenID), column.TokenNum(agents[len(agents)-1].TokenID)}
	}
	b.Queue(`select exists (select from trust_penalties where chain_id = $1 and final in (false, true) and `+which+`)`,
		args...).QueryRow(func(row pgx.Row) error { return row.Scan(has) })
}

// savePenalties stores the penalties of scored agents. The related agents of a changed or
// removed penalty are queued; of an unchanged final one only those with events since the last
// run.
func savePenalties(ctx context.Context, tx pgx.Tx, chainID, run uint64, agents []*ScoredAgent, who Identities) error {
	for _, final := range []bool{false, true} {
		var tokens []repute.TokenID
		var list []repute.Penalty
		for _, a := range agents {
			s := a.Current
			if final {
				s = a.Last
			}
			if final && !a.Final && a.Current != nil {
				continue // its final score was not asked for
			}
			tokens = append(tokens, a.TokenID)
			if s != nil {
				list = append(list, s.Penalties...)
			}
		}
		changed, err := replacePenalties(ctx, tx, chainID, run, final, tokens, list, who)
		if err != nil {
			return err
		}
		var stayed []Affiliation
		if final {
			if stayed, err = keepPenalties(ctx, tx, chainID, run, list); err != nil {
				return err
			}
		}
		if err := queueRelated(ctx, tx, chainID, final, changed, who, 0); err != nil {
			return err
		}
		if err := queueRelated(ctx, tx, chainID, final, stayed, who, run); err != nil {
			return err
		}
	}
	return nil
}

// keepPenalties assigns the penalties of final scores to this run and returns those of an
// earlier one. Each is returned once per run; otherwise two bad agents of one identity would
// mark each other without end.
func keepPenalties(ctx context.Context, tx pgx.Tx, chainID, run uint64, list []repute.Penalty) ([]Affiliation, error) {
	tokens, identities := make([]repute.TokenID, len(list)), make([]common.Address, len(list))
	for i, g := range list {
		tokens[i], identities[i] = g.TokenID, g.Identity
	}
	rows, _ := tx.Query(ctx, `
		update trust_penalties g set run = $2 from unnest($3::numeric[], $4::bytea[]) n(token_id, identity)
		where g.chain_id = $1 and g.final and (g.token_id, g.identity) = (n.token_id, n.identity) and g.run <> $2
		returning g.token_id, g.identity`, chainID, run, column.TokenArray(tokens), column.AddressColumn(identities))
	return pgx.CollectRows(rows, scanAffiliation)
}

// scanAffiliation reads an agent and an identity.
func scanAffiliation(row pgx.CollectableRow) (a Affiliation, err error) {
	var identity []byte
	err = row.Scan((*column.TokenNum)(&a.TokenID), &identity)
	a.Identity = common.BytesToAddress(identity)
	return a, err
}

// replacePenalties replaces the penalties by those tokens with list and returns the changed ones. "not in" is hashed.
// "not exists" would be a loop over all of list for each penalty, as these transactions have no other joins: see
// store.PlanByKey.
func replacePenalties(ctx context.Context, tx pgx.Tx, chainID, run uint64, final bool, tokens []repute.TokenID,
	list []repute.Penalty, who Identities) (changed []Affiliation, err error) {
	var of []repute.TokenID
	var identities, holders []common.Address
	var scores, highs, tiers []int32
	var known [][]byte
	var domains []string
	for _, g := range list {
		of, identities, holders = append(of, g.TokenID), append(identities, g.Identity), append(holders, g.Holder)
		scores, highs, tiers = append(scores, int32(g.Score)), append(highs, int32(g.High)), append(tiers,
			int32(g.Tier))
		known, domains = append(known, who.known(g.Identity)), append(domains, strings.Join(g.Domains, " "))
	}
	rows, _ := tx.Query(ctx, `
		with now as (
			select * from unnest($4::numeric[], $5::bytea[], $6::bytea[], $7::integer[], $8::integer[], $9::integer[],
				$11::bytea[], $12::text[])
				n(token_id, identity, owner, score, high, tier, known, domains)),
		gone as (
			delete from trust_penalties g where chain_id = $1 and final = $2 and token_id = any($3::numeric[])
			and (token_id, identity) not in (select token_id, identity from now) returning token_id, identity),
		put as (
			insert into trust_penalties as g (chain_id, final, token_id, identity, owner, score, high, tier, run, known,
				domains)
			select $1, $2, token_id, identity, owner, score, high, tier, $10, known, string_to_array(domains, ' ') from now
			on conflict (chain_id, final, token_id, identity) do update
				set owner = excluded.owner, score = excluded.score, high = excluded.high, tier = excluded.tier,
					run = excluded.run, known = excluded.known, domains = excluded.domains
			where (g.owner, g.score, g.high, g.tier, g.known, g.domains) is distinct from (excluded.owner, excluded.score,
				excluded.high, excluded.tier, excluded.known, excluded.domains)
			returning token_id, identity)
		select token_id, identity from gone union select token_id, identity from put`,
		chainID, final, column.TokenArray(tokens), column.TokenArray(of), column.AddressColumn(identities),
		column.AddressColumn(holders), scores, highs, tiers, run, known, domains)
	return pgx.CollectRows(rows, scanAffiliation)
}
