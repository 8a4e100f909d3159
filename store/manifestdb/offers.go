package manifestdb

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/column"
	"repute/store/docdb"
	"repute/store/query"
)

// Kinds of offers that documents of agents make, as package intent calls them.
const (
	kindSkill = "skill" // of A2A
	kindTool  = "tool"  // of MCP
	kindClass = "class" // of OASF
)

// Offer is what an agent says in its document that it does.
type Offer struct {
	Kind, Name, Description string
	Tags                    []string
}

// DocumentOffers are the offers of a registration file or an agent card.
type DocumentOffers struct {
	Sum    common.Hash // sha256 of the bytes
	Offers []Offer
}

// offersColumn is where a document has its offers, of parses p.
const offersColumn = `case p.kind when 'card' then p.content->'Skills' else p.content->'services' end`

// OffersAfter returns the offers of up to limit documents that agents show, ordered by sha256, after one. It returns
// none at the end. The offset has each document looked up: a merge of all documents with all URIs would begin at the
// first URI for each page.
func OffersAfter(ctx context.Context, db *store.DB, after common.Hash, limit int) ([]DocumentOffers, error) {
	rows, _ := db.Pool().Query(ctx, `
		with d as materialized (
			select s.sha256 from documents s where s.sha256 > $1
				and exists (select from uris u join agents a on a.uri_id = u.id where u.sha256 = s.sha256 offset 0)
			order by s.sha256 limit $2)
		select distinct on (d.sha256, p.kind) d.sha256, coalesce(p.kind, ''), `+offersColumn+`
		from d left join parses p on p.sha256 = d.sha256 and p.kind in ('registration', 'card')
		order by d.sha256, p.kind, p.parser_version desc`, after.Bytes(), limit)
	offers, err := offersOf(rows)
	return offers, store.Failed("read offers", err)
}

// OffersOf returns the offers of the documents that some agents show.
func OffersOf(ctx context.Context, db *store.DB, ids []repute.AgentID) ([]DocumentOffers, error) {
	chains, tokens := column.KeyColumns(ids)
	rows, _ := db.Pool().Query(ctx, `
		select distinct on (p.sha256, p.kind) p.sha256, p.kind, `+offersColumn+`
		from unnest($1::bigint[], $2::numeric[]) k(chain_id, token_id)
		join agents a on (a.chain_id, a.token_id) = (k.chain_id, k.token_id)
		join uris u on u.id = a.uri_id
		join parses p on p.sha256 = u.sha256 and p.kind in ('registration', 'card')
		order by p.sha256, p.kind, p.parser_version desc`, chains, tokens)
	offers, err := offersOf(rows)
	return offers, store.Failed("read offers of agents", err)
}

// offersOf reads documents; the kinds of one document follow each other.
func offersOf(rows pgx.Rows) (out []DocumentOffers, err error) {
	var sum []byte
	var kind string
	var content json.RawMessage
	_, err = pgx.ForEachRow(rows, []any{&sum, &kind, &content}, func() error {
		if n := len(out); n == 0 || out[n-1].Sum != common.BytesToHash(sum) {
			out = append(out, DocumentOffers{Sum: common.BytesToHash(sum)})
		}
		last := &out[len(out)-1]
		last.Offers = append(last.Offers, readOffers(kind, content)...)
		content = nil
		return nil
	})
	return out, err
}

// readOffers reads the services of a registration file, or the skills of a card. This program stored them.
func readOffers(kind string, content json.RawMessage) (out []Offer) {
	if kind == "card" {
		var skills []repute.CardSkill
		_ = json.Unmarshal(content, &skills)
		for _, s := range skills {
			out = append(out, Offer{Kind: kindSkill, Name: s.Name, Description: s.Description, Tags: s.Tags})
		}
		return out
	}
	var services []struct {
		Name          string
		Skills, Tools []string
	}
	_ = json.Unmarshal(content, &services)
	for _, s := range services {
		of := kindSkill
		if strings.EqualFold(strings.TrimSpace(s.Name), "oasf") {
			of = kindClass
		}
		for _, name := range s.Skills {
			out = append(out, Offer{Kind: of, Name: name})
		}
		for _, name := range s.Tools {
			out = append(out, Offer{Kind: kindTool, Name: name})
		}
	}
	return out
}

// bestScore is the SQL of the newest score of agent a where it is rated; null otherwise.
func bestScore() string {
	return `(select max(ts.score) from trust_scores ts join trust_runs tr on true
		where ` + query.Scored() + ` and ts.status = 'rated')`
}

// ScoredDocuments returns the documents that a rated agent of at least a score shows.
func ScoredDocuments(ctx context.Context, db *store.DB, least repute.Points) (map[common.Hash]bool, error) {
	out := map[common.Hash]bool{}
	rows, _ := db.Pool().Query(ctx, `
		select distinct u.sha256 from trust_scores ts join trust_runs tr on true
		join agents a on true join uris u on u.id = a.uri_id
		where `+query.Scored()+` and ts.status = 'rated' and ts.score >= $1 and u.sha256 is not null`, int64(least))
	var sum []byte
	_, err := pgx.ForEachRow(rows, []any{&sum}, func() error { out[common.BytesToHash(sum)] = true; return nil })
	return out, store.Failed("read documents of scored agents", err)
}

// Offering are the agents that make an offer.
type Offering struct {
	Best  repute.AgentID // the one of the highest score, then of the lowest id
	Count int64
}

// mostAgents bounds the agents of one document that are looked at: a platform may give one file to a hundred thousand.
const mostAgents = 1000

// OfferingAgents returns the agents that show some documents, by the number that is given with each document. With a
// score only rated agents of at least that count. Numbers without an agent that may be shown are absent.
func OfferingAgents(ctx context.Context, db *store.DB, of []int, documents []common.Hash, least *repute.Points) (
	map[int]Offering, error) {
	sums := make([][]byte, len(documents))
	for i := range documents {
		sums[i] = documents[i].Bytes()
	}
	out := map[int]Offering{}
	err := chaindb.View(ctx, db, "read offering agents", func(ctx context.Context, tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, `
			select distinct on (k.n) k.n, s.chain_id, c.identity, s.token_id, count(*) over (partition by k.n)
			from unnest($1::int[], $2::bytea[]) k(n, sum)
			cross join lateral (
				select a.chain_id, a.token_id, `+bestScore()+` as score from uris u join agents a on a.uri_id = u.id
				where u.sha256 = k.sum and `+docdb.DeniedDocument("u", "a")+` is null limit $4) s
			join chains c on c.chain_id = s.chain_id
			where $3::bigint is null or s.score >= $3
			order by k.n, s.score desc nulls last, s.chain_id, s.token_id`, of, sums, least, mostAgents)
		var n int
		var chain uint64
		var registry []byte
		var token column.TokenNum
		var count int64
		_, err := pgx.ForEachRow(rows, []any{&n, &chain, &registry, &token, &count}, func() error {
			out[n] = Offering{repute.AgentID{ChainID: chain, Registry: common.BytesToAddress(registry),
				TokenID: repute.TokenID(token)}, count}
			return nil
		})
		return err
	})
	return out, err
}
