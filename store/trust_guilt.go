package store

import (
	"context"
	"crypto/sha256"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
)

// Guilt is how bad an agent was while a party had it: surely bad, or it is not stored.
type Guilt struct {
	TokenID     repute.TokenID
	Party       common.Address // the name of an identity of the run's graph
	Holder      common.Address // the address of it that had the agent first
	Score, High repute.Points
	Tier        int
}

// Affiliation is a party that is behind an agent.
type Affiliation struct {
	TokenID repute.TokenID
	Party   common.Address
}

// Identities tell what the run's graph knows of parties, so that the agents of a guilty
// one are found.
type Identities struct {
	Members func(party common.Address) []common.Address // in an order of their own
	Params  common.Hash                                 // of the run
}

// known tells what guilt of a party must follow again: other members, or other rules.
func (who Identities) known(party common.Address) []byte {
	h := sha256.New()
	h.Write(who.Params[:])
	for _, m := range who.Members(party) {
		h.Write(m[:])
	}
	return h.Sum(nil)
}

// TrustGuilt finds for each affiliation the worst other agent of its party: in the newest
// state, or as of the newest run. Nobody waits for whoever writes it meanwhile: what follows
// of that makes the agent stale again.
func (db *DB) TrustGuilt(ctx context.Context, chainID uint64, list []Affiliation, final bool) (out []Guilt, err error) {
	tokens, parties := make([]repute.TokenID, len(list)), make([]common.Address, len(list))
	for i, a := range list {
		tokens[i], parties[i] = a.TokenID, a.Party
	}
	rows, err := db.pool.Query(ctx, `
		select g.token_id, g.party, g.holder, g.score, g.high, g.tier
		from unnest($3::numeric[], $4::bytea[]) u(t, p)
		cross join lateral (
			select * from trust_guilt g where g.chain_id = $1 and g.final = $2 and g.party = u.p and g.token_id <> u.t
			order by g.score, g.token_id limit 1) g`, chainID, final, tokenArray(tokens), addressColumn(parties))
	if err != nil {
		return nil, failed("read guilt", err)
	}
	out, err = pgx.CollectRows(rows, scanGuilt)
	return out, failed("read guilt", err)
}

func scanGuilt(row pgx.CollectableRow) (g Guilt, err error) {
	var party, holder []byte
	err = row.Scan((*tokenNum)(&g.TokenID), &party, &holder, &g.Score, &g.High, &g.Tier)
	g.Party, g.Holder = common.BytesToAddress(party), common.BytesToAddress(holder)
	return g, err
}

// guards tells whether saving the agents writes guilt: some have it now or had it before.
func guards(ctx context.Context, tx pgx.Tx, chainID uint64, agents []ScoredAgent) (has bool, err error) {
	tokens := make([]repute.TokenID, len(agents))
	for i := range agents {
		a := &agents[i]
		if a.Current != nil && len(a.Current.Guilt) > 0 || a.Last != nil && len(a.Last.Guilt) > 0 {
			return true, nil
		}
		tokens[i] = a.TokenID
	}
	err = tx.QueryRow(ctx, `
		select exists (select from trust_guilt where chain_id = $1 and final in (false, true) and token_id = any($2::numeric[]))`,
		chainID, tokenArray(tokens)).Scan(&has)
	return has, err
}

// saveGuilt stores what came of scoring agents. The new agents of each party are to follow
// whose guilt is another now or gone; of a final one that stayed, those to which something
// happened since the last run.
func saveGuilt(ctx context.Context, tx pgx.Tx, chainID, run uint64, agents []*ScoredAgent, who Identities) error {
	for _, final := range []bool{false, true} {
		var tokens []repute.TokenID
		var list []Guilt
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
				list = append(list, s.Guilt...)
			}
		}
		changed, err := replaceGuilt(ctx, tx, chainID, run, final, tokens, list, who)
		if err != nil {
			return err
		}
		var stayed []Affiliation
		if final {
			if stayed, err = stayGuilty(ctx, tx, chainID, run, list); err != nil {
				return err
			}
		}
		if err := queueFollow(ctx, tx, chainID, final, changed, who, 0); err != nil {
			return err
		}
		if err := queueFollow(ctx, tx, chainID, final, stayed, who, run); err != nil {
			return err
		}
	}
	return nil
}

// stayGuilty takes down that guilt of final scores is of a run, and gives what was of an
// earlier one: once in each run, or two bad agents of a party would follow each other for ever.
func stayGuilty(ctx context.Context, tx pgx.Tx, chainID, run uint64, list []Guilt) ([]Affiliation, error) {
	tokens, parties := make([]repute.TokenID, len(list)), make([]common.Address, len(list))
	for i, g := range list {
		tokens[i], parties[i] = g.TokenID, g.Party
	}
	rows, err := tx.Query(ctx, `
		update trust_guilt g set run = $2 from unnest($3::numeric[], $4::bytea[]) n(token_id, party)
		where g.chain_id = $1 and g.final and (g.token_id, g.party) = (n.token_id, n.party) and g.run <> $2
		returning g.token_id, g.party`, chainID, run, tokenArray(tokens), addressColumn(parties))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanAffiliation)
}

func scanAffiliation(row pgx.CollectableRow) (a Affiliation, err error) {
	var party []byte
	err = row.Scan((*tokenNum)(&a.TokenID), &party)
	a.Party = common.BytesToAddress(party)
	return a, err
}

// replaceGuilt makes list the guilt by those tokens, and gives what is not as it was.
func replaceGuilt(ctx context.Context, tx pgx.Tx, chainID, run uint64, final bool, tokens []repute.TokenID, list []Guilt, who Identities) (changed []Affiliation, err error) {
	var of []repute.TokenID
	var parties, holders []common.Address
	var scores, highs, tiers []int32
	var known [][]byte
	for _, g := range list {
		of, parties, holders = append(of, g.TokenID), append(parties, g.Party), append(holders, g.Holder)
		scores, highs, tiers = append(scores, int32(g.Score)), append(highs, int32(g.High)), append(tiers, int32(g.Tier))
		known = append(known, who.known(g.Party))
	}
	rows, err := tx.Query(ctx, `
		with now as (
			select * from unnest($4::numeric[], $5::bytea[], $6::bytea[], $7::integer[], $8::integer[], $9::integer[], $11::bytea[])
				n(token_id, party, holder, score, high, tier, known)),
		gone as (
			delete from trust_guilt g where chain_id = $1 and final = $2 and token_id = any($3::numeric[])
			and not exists (select from now n where (n.token_id, n.party) = (g.token_id, g.party)) returning token_id, party),
		put as (
			insert into trust_guilt as g (chain_id, final, token_id, party, holder, score, high, tier, run, known)
			select $1, $2, token_id, party, holder, score, high, tier, $10, known from now
			on conflict (chain_id, final, token_id, party) do update
				set holder = excluded.holder, score = excluded.score, high = excluded.high, tier = excluded.tier, run = excluded.run, known = excluded.known
			where (g.holder, g.score, g.high, g.tier, g.known) is distinct from (excluded.holder, excluded.score, excluded.high, excluded.tier, excluded.known)
			returning token_id, party)
		select token_id, party from gone union select token_id, party from put`,
		chainID, final, tokenArray(tokens), tokenArray(of), addressColumn(parties), addressColumn(holders), scores, highs, tiers, run, known)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanAffiliation)
}
