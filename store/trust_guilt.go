package store

import (
	"context"
	"slices"

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
	Members func(party common.Address) []common.Address
}

// lockGuilt keeps others from reading or writing what parties are guilty of until the
// transaction ends: who reads it before a writer began is seen by that writer, and who
// reads it later sees what was written.
func lockGuilt(ctx context.Context, tx pgx.Tx, chainID uint64, shared bool) error {
	lock := "pg_advisory_xact_lock"
	if shared {
		lock = "pg_advisory_xact_lock_shared"
	}
	_, err := tx.Exec(ctx, "select "+lock+"(hashtextextended('trust guilt of chain ' || $1::bigint, 0))", chainID)
	return err
}

// TrustGuilt finds for each affiliation the worst other agent of its party: in the newest
// state, or as of the newest run.
func (db *DB) TrustGuilt(ctx context.Context, chainID uint64, list []Affiliation, final bool) (out []Guilt, err error) {
	tokens, parties := make([]repute.TokenID, len(list)), make([]common.Address, len(list))
	for i, a := range list {
		tokens[i], parties[i] = a.TokenID, a.Party
	}
	err = db.inTx(ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly}, "read guilt", func(tx pgx.Tx) error {
		if err := lockGuilt(ctx, tx, chainID, true); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `
			select g.token_id, g.party, g.holder, g.score, g.high, g.tier
			from unnest($3::numeric[], $4::bytea[]) u(t, p)
			cross join lateral (
				select * from trust_guilt g where g.chain_id = $1 and g.final = $2 and g.party = u.p and g.token_id <> u.t
				order by g.score, g.token_id limit 1) g`, chainID, final, tokenArray(tokens), addressColumn(parties))
		if err != nil {
			return err
		}
		out, err = pgx.CollectRows(rows, scanGuilt)
		return err
	})
	return out, err
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

// saveGuilt stores what came of scoring agents, and makes the new agents of each party
// stale whose guilt is another now, of an earlier run or gone.
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
		changed, err := replaceGuilt(ctx, tx, chainID, run, final, tokens, list)
		if err != nil {
			return err
		}
		if err := followGuilt(ctx, tx, chainID, final, changed, who); err != nil {
			return err
		}
	}
	return nil
}

// replaceGuilt makes list the guilt by those tokens, and gives what is not as it was.
func replaceGuilt(ctx context.Context, tx pgx.Tx, chainID, run uint64, final bool, tokens []repute.TokenID, list []Guilt) (changed []Affiliation, err error) {
	var of []repute.TokenID
	var parties, holders []common.Address
	var scores, highs, tiers []int32
	for _, g := range list {
		of, parties, holders = append(of, g.TokenID), append(parties, g.Party), append(holders, g.Holder)
		scores, highs, tiers = append(scores, int32(g.Score)), append(highs, int32(g.High)), append(tiers, int32(g.Tier))
	}
	rows, err := tx.Query(ctx, `
		with now as (
			select * from unnest($4::numeric[], $5::bytea[], $6::bytea[], $7::integer[], $8::integer[], $9::integer[]) n(token_id, party, holder, score, high, tier)),
		gone as (
			delete from trust_guilt g where chain_id = $1 and final = $2 and token_id = any($3::numeric[])
			and not exists (select from now n where (n.token_id, n.party) = (g.token_id, g.party)) returning token_id, party),
		put as (
			insert into trust_guilt as g (chain_id, final, token_id, party, holder, score, high, tier, run)
			select $1, $2, token_id, party, holder, score, high, tier, $10 from now
			on conflict (chain_id, final, token_id, party) do update
				set holder = excluded.holder, score = excluded.score, high = excluded.high, tier = excluded.tier, run = excluded.run
			where (g.holder, g.score, g.high, g.tier, g.run) is distinct from (excluded.holder, excluded.score, excluded.high, excluded.tier, excluded.run)
			returning token_id, party)
		select token_id, party from gone union select token_id, party from put`,
		chainID, final, tokenArray(tokens), tokenArray(of), addressColumn(parties), addressColumn(holders), scores, highs, tiers, run)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (a Affiliation, err error) {
		var party []byte
		err = row.Scan((*tokenNum)(&a.TokenID), &party)
		a.Party = common.BytesToAddress(party)
		return a, err
	})
}

// followGuilt makes stale what parties ever had: which of it is new follows from what is said
// of it. They wait with those of a run: a party may have any number of them, and nobody else should wait for that.
func followGuilt(ctx context.Context, tx pgx.Tx, chainID uint64, final bool, changed []Affiliation, who Identities) error {
	if len(changed) == 0 {
		return nil
	}
	var members []common.Address
	seen := map[common.Address]bool{}
	for _, c := range changed {
		if !seen[c.Party] {
			seen[c.Party] = true
			members = append(members, who.Members(c.Party)...)
		}
	}
	itself := changed[0].TokenID // does not limit itself; where there are two each may limit the other
	alone := !slices.ContainsFunc(changed, func(c Affiliation) bool { return c.TokenID != itself })
	_, err := tx.Exec(ctx, `
		insert into trust_stale (chain_id, token_id, turn, final)
		select $1, had.token_id, $2, $3 from (
			select token_id from agent_states where chain_id = $1 and owner = any($4::bytea[])
			union select token_id from agent_states where chain_id = $1 and wallet = any($4::bytea[]) and wallet <> '' and wallet <> owner) had
		join agents a on (a.chain_id, a.token_id) = ($1, had.token_id)
		where not ($5 and had.token_id = $6)
		order by had.token_id`+markTokens, chainID, turnRun, final, addressColumn(members), alone, tokenNum(itself))
	return err
}
