package store_test

import (
	"context"
	"crypto/sha256"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/internal/pgtest"
	"repute/store"
	"repute/store/batchdb"
	"repute/store/chaindb"
	"repute/store/docdb"
	"repute/store/historydb"
	"repute/store/paydb"
	"repute/store/query"
	"repute/store/scoredb"
	"repute/store/searchdb"
	"repute/store/statsdb"
	"repute/store/trustdb"
)

// crowd is a database with many rows of everything: plans over a few rows say
// nothing. Agent 0 of chain 1 has most of the feedback.
func crowd(t *testing.T) (*store.DB, *recorder) {
	t.Helper()
	url := pgtest.New(t)
	r := &recorder{}
	db := store.OpenTraced(t, url, r)
	for _, id := range []uint64{1, 2} {
		if err := chaindb.AddChain(context.Background(), db, newWorld(id, 100, 0).chain); err != nil {
			t.Fatal(err)
		}
	}
	for _, sql := range []string{
		`update chains set cursor_block = 100000, safe_block = 90000, finalized_block = 80000`,
		`insert into blocks select c, n, sha256(n::text::bytea), '', to_timestamp(n) from generate_series(1, 2) c, generate_series(100, 20100) n`,
		`insert into tags (hash, value) select sha256(i::text::bytea), i::text::bytea from generate_series(1, 50) i`,
		`insert into uris (hash, uri, kind, host, next_due) select sha256(i::text::bytea), i::text::bytea, 'https', 'h' || i % 100,
			case when i % 3 > 0 then now() + (i % 7 - 3) * interval '1 hour' end from generate_series(1, 20000) i`,
		`insert into hosts select 'h' || i, now() + (i % 7 - 3) * interval '1 hour' from generate_series(1, 20000) i`,
		`insert into events select c, 100 + i, l, 0, 1, '', sha256(i::text::bytea), i, '', '' from generate_series(1, 2) c, generate_series(0, 20000) i, generate_series(0, 1) l`,
		`insert into agents (chain_id, token_id, owner, claimed, wallet, approved, uri_id, registered_block, registered_log, updated_block, updated_log, feedback)
			select c, i, substr(sha256((i % 50)::text::bytea), 1, 20), false, case when i % 2 = 0 then substr(sha256((i %
				50)::text::bytea), 1, 20) else '' end,
			'', 1 + i % 20000, 100 + i, 0, 100 + i, 1, i % 300 from generate_series(1, 2) c, generate_series(0, 20000) i`,
		`insert into agent_states select chain_id, token_id, registered_block, null, owner, false, wallet, '', uri_id from agents`,
		`insert into metadata select chain_id, token_id, sha256('k'), registered_block, null, 0, 'k', 'v' from agents`,
		`insert into operators select c, substr(sha256(i::text::bytea), 1, 20), substr(sha256('o'), 1, 20), 100 + i, null from generate_series(1, 2) c, generate_series(0, 20000) i`,
		`insert into feedback select 1, a, substr(sha256((i / 3)::text::bytea), 1, 20), 1 + i % 3, 100 + i % 20000, i, i % 100, 0, 1 + i % 50, 1, 1, '', '', null, null
			from generate_series(0, 20) a, generate_series(0, case when a = 0 then 30000 else 1000 end) i`,
		`insert into sums select chain_id, token_id, client, tag1, tag2, decimals, count(*), sum(value) from feedback group by 1, 2, 3, 4, 5, 6`,
		`insert into agent_sums select chain_id, token_id, 60, 1, 0, 1, 1 from agents where token_id > 100`,
		`insert into hours select chain_id, 2, token_id, 480000 + n, 1, 1, 0, 1, 1 from agents, generate_series(0, 1) n`,
		`insert into votes select distinct on (chain_id, token_id, tag1, client) chain_id, token_id, tag1, client, idx, value, decimals from feedback`,
		`insert into responses select chain_id, token_id, client, idx, block, log_index + 100000, client, 1, '' from feedback where idx = 1`,
		`insert into validation_requests select 1, substr(sha256((i % 9)::text::bytea), 1, 20), sha256(i::text::bytea), i % 40,
				substr(sha256((i % 500)::text::bytea), 1, 20), 1, 100 + i % 20000, i from generate_series(1, 20000) i`,
		`insert into validation_responses select 1, contract, request_hash, block, log_index + 1, 50, 1, '', 1 from validation_requests`,
		`insert into pending select 1, 100 + i, 0, 0, case when i < 5 then 'index_gap' else 'foreign_request' end from generate_series(0, 20000) i`,
		`insert into documents select sha256(i::text::bytea), 'b', '', now() - i * interval '1 second' from generate_series(1, 5000) i`,
		`insert into parses select sha256, 'registration', 1, 'null', '[]', 0 from documents`,
		`update uris set sha256 = hash where id <= 5000`,
		`insert into searchable (sha256, form, version, errors, name, words, title, vector, places, alike, services, skills, domains, trust)
			select sha256(i::text::bytea), 9, 1, 0, w.n, w.n, w.n, setweight(to_tsvector('english', w.n), 'A'), array['h' ||
				i || '.example'], i, array['s' || i % 100], '{}', '{}', '{}'
			from generate_series(1, 5000) i, lateral (select substr(md5((i % 1000)::text), 1, 9) || ' ' || substr(md5((i %
				500)::text), 1, 9) as n) w`,
		`insert into parses select sha256, 'feedback', 1, 'null', '[]', 0 from documents`,
		`update documents set roots = array[sha256]`,
		`insert into ipfs_blocks select sha256, '' from documents`,
		`insert into document_blocks select sha256, sha256 from documents`,
		`insert into domains select sha256(i::text::bytea), 'd' || i % 2500, 1 + i % 20000 from generate_series(1, 5000) i`,
		`insert into operators select 1 + i % 2, substr(sha256((i % 50)::text::bytea), 1, 20), substr(sha256(('o' || i / 3)::bytea), 1, 20), 100 + i, null
			from generate_series(1, 20000) i`,
		`insert into manifests (domain, state, body, sha256, payout)
			select 'd' || i, 'ok', '{}', sha256(i::text::bytea), substr(sha256(i::text::bytea), 1, 20) from generate_series(1, 5000) i`,
		`insert into manifest_intents (domain, name, position, description, method, url, parameters, price, protocols, networks, terms, words, vector)
			select 'd' || 1 + i / 3, 'n' || i, i % 3, '', '', '', '{}', case when i % 1500 < 3 then i % 100 end, '{}', '{}', '{}', '', ''
			from generate_series(0, 14000) i`,
		`insert into links select sha256(i::text::bytea), 1 + i % 2, c.identity, i from generate_series(1, 5000) i, chains c where c.chain_id = 1 + i % 2`,
		`insert into trust_runs (chain_id, run, epoch, boundary, block, block_hash, scorer, params, tags, roots, links, weights, identities, edges)
			select c, i, i, i, i, sha256(i::text::bytea), '', '', '', '', '', '', 0, 0 from generate_series(1, 2) c,
				generate_series(1, 1000) i`,
		`insert into trust_scores (chain_id, token_id, run, block, block_hash, evidence, status, score, low, high, mean, confidence, tier, result)
			select chain_id, token_id, 1000, updated_block, sha256(updated_block::text::bytea), '', 'rated',
				(token_id * 7919 % 100000)::int, 0, 0, 0, 0, (token_id % 5)::int, '' from agents`,
		`insert into trust_finals (chain_id, token_id, run, evidence, status, score, low, high, mean, confidence, tier, facts, result)
			select chain_id, token_id, 1000, '', 'rated', score, 0, 0, 0, 0, tier, '', '' from trust_scores`,
		`insert into payments (chain_id, token_id, client, idx, state) select chain_id, token_id, client, idx, 'refused' from feedback limit 5000`,
		`insert into payments (chain_id, token_id, client, idx, state, pay_chain, next_due)
			select chain_id, token_id, client, idx, 'pending', 1, now() - idx * interval '1 minute' from feedback offset 5000
				limit 20000`,
		`insert into trust_penalties select chain_id, f, token_id, owner, owner, -50000, -20000, 0, 999 from agents cross join (values (true), (false)) v(f) where token_id % 2 = 0`,
		`analyze`,
	} {
		sqlExec(t, db, sql)
	}
	r.take()
	return db, r
}

// TestReadsUseIndexes explains every statement of every read, with a plan for
// the very parameters and with one for any, and expects no table to be read as
// a whole, nor a list to be sorted before it is cut.
func TestReadsUseIndexes(t *testing.T) {
	t.Parallel()
	db, r := crowd(t)
	ctx := context.Background()
	// Where one agent has most of a table, reading all of it to add up is right:
	// lists are asked of that agent, sums of another.
	id, plain := repute.AgentID{ChainID: 1}, repute.AgentID{ChainID: 1, TokenID: tokenID(9)}
	owner := common.Address{1}
	tag := "7"
	ids := []repute.AgentID{id, {ChainID: 2, TokenID: tokenID(7)}, {ChainID: 1, TokenID: tokenID(9)}}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	reads := map[string]func(){
		"feedback": func() {
			_, err := query.Feedback(ctx, db, id, query.FeedbackFilter{Limit: 20, At: latest})
			must(err)
		},
		"feedback filtered": func() {
			_, err := query.Feedback(ctx, db, id,
				query.FeedbackFilter{Limit: 20, At: at(15000), Tag1: &tag, Clients: []common.Address{owner},
					Order: query.OldestFirst})
			must(err)
		},
		"validations": func() {
			_, err := query.Validations(ctx, db, id, query.ValidationFilter{Limit: 20, At: latest})
			must(err)
		},
		"agent":      func() { _, _, err := query.Agent(ctx, db, id, latest); must(err) },
		"agent then": func() { _, _, err := query.Agent(ctx, db, plain, at(15000)); must(err) },
		"summary":    func() { _, _, err := query.Summary(ctx, db, plain, nil, "", "", latest); must(err) },
		"summary of clients": func() {
			_, _, err := query.Summary(ctx, db, plain, []common.Address{owner, owner}, tag, tag, latest)
			must(err)
		},
		"reputation": func() { _, err := query.ReadReputation(ctx, db, plain, query.ReputationQuery{At: latest}); must(err) },
		"reputation then": func() {
			_, err := query.ReadReputation(ctx, db, plain, query.ReputationQuery{At: at(15000)})
			must(err)
		},
		"independence": func() {
			_, _, err := query.Independence(ctx, db, id, latest)
			must(err)
			_, err = trustdb.ReadTransactions(ctx, db, 1, repute.Block{}, []trustdb.LogAt{{Block: 101, LogIndex: 1}})
			must(err)
		},
		"loaders": func() {
			_, err := query.AgentsByID(ctx, db, ids)
			must(err)
			_, err = query.FeedbackByAgents(ctx, db, ids, 5)
			must(err)
			_, err = query.DomainProofs(ctx, db, ids...)
			must(err)
			_, err = query.ValidationsByAgents(ctx, db, ids, 5)
			must(err)
			_, err = query.Reputations(ctx, db, ids,
				query.ReputationParts{Summary: true, Tags: true, Results: true, Independence: true})
			must(err)
		},
		"documents": func() {
			_, err := docdb.Versions(ctx, db, plain, "", 20)
			must(err)
			_, err = docdb.LinkedAgents(ctx, db, plain)
			must(err)
			_, err = docdb.Body(ctx, db, sha256.Sum256([]byte("1")))
			must(err)
			_, err = query.RequestRefresh(ctx, db, plain)
			must(err)
			_, err = docdb.PlanFiles(ctx, db, 100)
			must(err)
			_, err = docdb.ListUnparsed(ctx, db, 2, 10)
			must(err)
		},
		"upkeep": func() {
			sqlExec(t, db, "insert into cursors (job, part, due) values ('shared document', 7, now())")
			_, err := docdb.AddSharedChanges(ctx, db, 10)
			must(err)
			sqlExec(t, db, "update uris set overgrown = true where id = 7")
			sqlExec(t, db,
				"insert into fetches select 7, now() - i * interval '1 minute', sha256(i::text::bytea), 'https', '' from generate_series(1, 220) i")
			_, err = docdb.PruneVersions(ctx, db)
			must(err)
			for range 7 { // it counts, then drops
				_, _, err = docdb.DropBodies(ctx, db, 100)
				must(err)
			}
			_, _, err = docdb.RestoreBodies(ctx, db, 10)
			must(err)
		},
		"history": func() {
			_, err := historydb.History(ctx, db, plain, historydb.Filter{Limit: 20, At: latest})
			must(err)
			_, err = historydb.HistoryByAgents(ctx, db, ids, historydb.Filter{Limit: 20, OldestFirst: true})
			must(err)
		},
		"series": func() {
			for _, m := range []historydb.Measure{historydb.MeasureScore, historydb.MeasureRatings,
				historydb.MeasureReviewers} {
				f := historydb.SeriesFilter{Measure: m, Every: historydb.StepDay, At: latest, To: worldStart}
				_, err := historydb.ReadSeries(ctx, db, plain, f)
				must(err)
				_, err = historydb.SeriesByAgents(ctx, db, ids[1:], f)
				must(err)
			}
		},
		"client": func() {
			var list []statsdb.ClientChain
			_, err := query.FeedbackOf(ctx, db, owner, query.ParticipantFilter{Limit: 20},
				statsdb.ClientInto(owner, &list))
			must(err)
			_, err = trustdb.ClientRatings(ctx, db, 1, owner, 1000)
			must(err)
		},
		"validator": func() {
			var list []statsdb.Validator
			_, err := query.ValidationsOf(ctx, db, owner, query.ParticipantFilter{Limit: 20},
				statsdb.ValidatorInto(owner, false, &list))
			must(err)
		},
		"leaders by score": func() {
			_, err := statsdb.Leaders(ctx, db, statsdb.LeaderFilter{By: statsdb.ByScore, Limit: 20})
			must(err)
		},
		"leaders by reviewers": func() {
			_, err := statsdb.Leaders(ctx, db,
				statsdb.LeaderFilter{By: statsdb.ByReviewers, MinReviewers: 3, Limit: 20})
			must(err)
		},
		"payments": func() { _, _, err := paydb.DuePayments(ctx, db, 1, common.Address{}, 20); must(err) },
		"penalties": func() {
			_, err := scoredb.WorstPenalties(ctx, db, 1,
				[]scoredb.Affiliation{{TokenID: tokenID(3), Identity: owner},
					{TokenID: tokenID(5), Identity: common.Address{2}}}, true)
			must(err)
		},
		"penalties saved": func() {
			bad := scoredb.AgentScore{Score: repute.Score{Status: repute.Unrated, Result: []byte("{}")},
				Penalties: []repute.Penalty{{TokenID: tokenID(4), Identity: owner, Holder: owner, Score: -60_000}}}
			sqlExec(t, db,
				"insert into trust_stale (chain_id, token_id, cause, final) values (1, 4, 0, true) on conflict do nothing")
			who := scoredb.Identities{Members: func(p common.Address) []common.Address { return []common.Address{p, {3}} }}
			must(scoredb.SaveScores(ctx, db, 1, 1000,
				[]scoredb.ScoredAgent{{StaleAgent: scoredb.StaleAgent{TokenID: tokenID(4), Final: true}, Current: &bad,
					Last: &bad}}, who))
			_, err := scoredb.MarkRelated(ctx, db, 1, 100)
			must(err)
		},
		"hosts": func() {
			_, err := docdb.ClaimHosts(ctx, db, []docdb.Rank{docdb.RankNew, docdb.RankAgent, docdb.RankProof}, 10, "",
				"ipfs")
			must(err)
			must(docdb.FinishHost(ctx, db, docdb.HostClaim{Host: "h7"}))
		},
		"queue": func() {
			_, err := docdb.DueURIs(ctx, db, "h7", 10)
			must(err)
			must(docdb.SaveDocuments(ctx, db,
				docdb.FetchResult{URIID: 77, FetchedAt: fetched, Body: []byte("{}"), ParserVersion: 1}))
		},
	}
	for _, sort := range []string{query.SortID, query.SortFeedback, query.SortUpdated, query.SortScore} {
		reads["agents by "+
			sort] = func() { _, err := searchdb.Agents(ctx, db, searchdb.AgentFilter{Sort: sort, Limit: 20}); must(err) }
		reads["agents by "+sort+" down"] = func() {
			_, err := searchdb.Agents(ctx, db, searchdb.AgentFilter{Sort: sort, Desc: true, Limit: 20})
			must(err)
		}
	}
	least, tier := repute.Points(50_000), 3
	reads["agents of a score"] = func() {
		_, err := searchdb.Agents(ctx, db, searchdb.AgentFilter{Score: searchdb.ScoreFilter{MinScore: &least,
			Tier: &tier}, Limit: 20})
		must(err)
		_, err = searchdb.Agents(ctx, db, searchdb.AgentFilter{Score: searchdb.ScoreFilter{Status: repute.Unrated},
			Sort: query.SortScore, Limit: 20})
		must(err)
	}
	reads["agents of everything"] = func() {
		for _, f := range []searchdb.AgentFilter{
			{Text: "8f14e45fc", Score: searchdb.ScoreFilter{MinScore: &least},
				Registered: searchdb.Since{Time: worldStart}, Sort: query.SortScore, Limit: 20},
			{Text: "https://h7.example/1", Limit: 20}, {Text: owner.Hex(), Limit: 20},
			{Text: "8f14e45fc nothing nowhere", Limit: 20},
			{Service: "s7", Score: searchdb.ScoreFilter{MaxScore: &least}, MinFeedback: 1, Sort: query.SortUpdated,
				Limit: 20},
		} {
			_, err := searchdb.Agents(ctx, db, f)
			must(err)
		}
	}
	reads["agents of operator"] = func() {
		_, err := searchdb.Agents(ctx, db, searchdb.AgentFilter{Operator: &owner, Limit: 20})
		must(err)
	}
	reads["agents of host"] = func() {
		for _, f := range []searchdb.AgentFilter{{Host: "h7.example", Limit: 20},
			{Text: "8f14e45fc", Host: "h7.example",
				Operator: &owner, Score: searchdb.ScoreFilter{MinScore: &least, Tier: &tier},
				Updated: searchdb.Since{Time: worldStart}, Limit: 20}} {
			_, err := searchdb.Agents(ctx, db, f)
			must(err)
		}
	}
	reads["agents of a price"] = func() {
		dollars := "7"
		for _, f := range []searchdb.AgentFilter{{MaxPrice: &dollars, Limit: 20},
			{Text: "8f14e45fc", MinPrice: &dollars, Limit: 20}} {
			_, err := searchdb.Agents(ctx, db, f)
			must(err)
		}
	}
	reads["batch"] = func() {
		id := repute.AgentRef{ChainID: 1, TokenID: tokenID(9)}
		_, err := batchdb.Read(ctx, db, []batchdb.Item{{ID: &id}, {Address: &owner}, {Domain: "d7"}}, 0)
		must(err)
	}
	reads["comparison"] = func() {
		_, _, err := batchdb.Compare(ctx, db,
			[]repute.AgentRef{{ChainID: 1, TokenID: tokenID(9)}, {ChainID: 1, TokenID: tokenID(10)}}, 0)
		must(err)
	}
	reads["agents of owner"] = func() { _, err := searchdb.Agents(ctx, db, searchdb.AgentFilter{Owner: &owner, Limit: 20}); must(err) }
	reads["agents of wallet"] = func() { _, err := searchdb.Agents(ctx, db, searchdb.AgentFilter{Wallet: &owner, Limit: 20}); must(err) }
	// What each list is cut by.
	index := map[string]string{
		"agents by id": "Scan using agents_pkey", "agents by id down": "Scan Backward using agents_pkey",
		"agents by feedback":      "Scan using agents_feedback",
		"agents by feedback down": "Scan Backward using agents_feedback",
		"agents by updated":       "Scan using agents_updated",
		"agents by updated down":  "Scan Backward using agents_updated",
		"agents by score":         "Scan using trust_scores_order",
		"agents by score down":    "Scan Backward using trust_scores_order", "agents of a score": "trust_scores_pkey",
		"agents of everything": "searchable_vector",
		"agents of operator":   "operators_operator", "agents of host": "searchable_places",
		"agents of a price": "manifest_intents_price", "batch": "domains_domain",
		"comparison":      "manifest_intents_price",
		"agents of owner": "Scan using agents_owner", "agents of wallet": "Scan using agents_wallet",
		"feedback": "Scan Backward using feedback_newest", "independence": "feedback_client",
		"summary": "pending_waiting", "validations": "Scan Backward using validation_requests_agent",
		"history": "Scan Backward using metadata_block", "series": "feedback_newest", "client": "feedback_client",
		"validator":            "Scan Backward using validation_requests_validator",
		"leaders by score":     "Scan Backward using trust_scores_order",
		"leaders by reviewers": "Scan Backward using agents_clients",
		"agent then":           "Scan Backward using events_agent", "payments": "payments_client",
		"penalties": "Scan using trust_penalties_identity", "penalties saved": "agent_states_owner",
		"queue": "Scan Backward using uris_due", "hosts": "Scan using hosts_due",
	}
	for name, read := range reads {
		r.take()
		read()
		seen := r.take()
		for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
			// A search, and a read of a number of agents that the plan does not know, may read small tables whole. A
			// search by price is always planned for its bounds.
			if mode == "force_generic_plan" &&
				(name == "agents of everything" || name == "loaders" || name == "agents of a price") {
				continue
			}
			var plans strings.Builder
			for _, s := range seen {
				plan := explain(t, db, mode, s)
				checkPlan(t, name+", "+mode, plan, s.sql)
				plans.WriteString(plan + "\n")
			}
			if !strings.Contains(plans.String(), index[name]) {
				t.Errorf("%s, %s: no %s in\n%s", name, mode, index[name], plans.String())
			}
		}
	}
}

// small tables may well be read as a whole.
var small = []string{"chains", "tags", "trust_roots", "fetches", "gaps", "block_proofs", "denied", "cursors",
	"trust_marks", "trust_related", "trust_stale"}
