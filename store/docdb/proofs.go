package docdb

import (
	"context"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/column"
)

// maxLinked is the most linked agents of one agent in an answer.
const maxLinked = 100

// provenBy returns the SQL of whether the document with hash sum names agent a, whose chain is c.
func provenBy(sum string) string {
	return `exists (select from links l where l.sha256 = ` + sum +
		` and (l.chain_id, l.token_id, l.registry) = (a.chain_id, a.token_id, c.identity))`
}

// proofPatience is how long a proof counts after it could last be read. A domain whose registration
// lapsed MUST NOT prove an agent for ever.
const proofPatience = "interval '7 days'"

// StillServed returns the SQL of whether the bytes read from URI u still count as what its host
// serves.
func StillServed(u string) string { return stillServedAt(u, "now()") }

// stillServedAt is StillServed at a time.
func stillServedAt(u, at string) string {
	return `(` + u + `.sha256 is not null and not ` + u + `.gone and (` + u + `.reason = '' or ` + u +
		`.fetched_at > ` +
		at + ` - ` + proofPatience + `))`
}

// proofState returns the SQL of everything but bytes that decides what URI u proves, as of its
// last fetch. When it changes, so may the result for a domain.
func proofState(u string) string {
	return `concat(` + stillServedAt(u, u+".tried_at") + `, ' ', ` + u + `.gone, ' ', ` + u + `.served_by)`
}

// servedBy returns the SQL of whether domain, or www. before it, answered itself for URI u. A
// redirect to another host proves nothing, because with an open redirect anybody's file would be
// the domain's.
func servedBy(u, domain string) string {
	return `coalesce(` + u + `.served_by in (` + domain + `, 'www.' || ` + domain + `), false)`
}

// ProvenDomain returns the SQL of whether the document of URI p proves that agent a, whose chain is c, belongs to a
// domain.
func ProvenDomain(p, domain string) string {
	return `coalesce(` + StillServed(p) + ` and ` + servedBy(p, domain) + ` and ` + provenBy(p+".sha256") + `, false)`
}

// ProofsOfAgents returns the statement that reads, for ProofRow, the domains that the files of
// relation a name. Relation a has the columns chain_id, token_id and uri_id.
func ProofsOfAgents() string {
	return `
	select a.chain_id, c.identity, a.token_id, w.domain,
		coalesce(p.uri, ''), p.sha256, coalesce(p.gone, false), ` + StillServed("p") + `, ` + servedBy("p", "w.domain") + ` and ` + provenBy("p.sha256") + `, p.tried_at, p.next_due,
		coalesce(p.reason, ''), coalesce(p.detail, '')
	from a
	join chains c on c.chain_id = a.chain_id
	join uris u on u.id = a.uri_id
	join domains w on w.sha256 = u.sha256
	left join uris p on p.id = w.uri_id
	where ` + DeniedDocument("u", "a") + ` is null
	order by a.chain_id, a.token_id, w.domain`
}

// ProofRow receives one domain of one agent with the state of its proof.
type ProofRow struct {
	Chain    uint64
	Registry []byte
	Token    column.TokenNum
	domain   string
	// gone says that the host answered that there is no such file, and it was not read since.
	gone bool
	// served says that what the proof said still counts: see StillServed.
	served bool
	// named says that the proof names the agent and the domain itself served it.
	named          bool
	uri, sum       []byte
	tried, due     *time.Time
	reason, detail string
}

// Into returns where to scan the columns of ProofsOfAgents.
func (p *ProofRow) Into() []any {
	return []any{&p.Chain, &p.Registry, &p.Token, &p.domain, &p.uri, &p.sum, &p.gone, &p.served, &p.named, &p.tried,
		&p.due, &p.reason, &p.detail}
}

// Proof returns the result for the domain. A proof that was read once counts until other bytes are
// read, the host answers that it is gone, or the host failed for proofPatience. A host in shared
// proves no agent.
func (p *ProofRow) Proof(shared []string) repute.DomainProof {
	out := repute.DomainProof{Domain: p.domain, URL: string(p.uri), CheckedAt: column.TimeOf(p.tried),
		NextCheck: column.TimeOf(p.due),
		Reason:    p.reason, Detail: p.detail, Result: repute.DomainUnavailable}
	copy(out.SHA256[:], p.sum)
	switch {
	case slices.Contains(shared, p.domain):
		out.Result, out.Detail = repute.DomainRefused, "the host serves files of many agents, so it proves none"
	case p.served && p.named:
		out.Result = repute.DomainProven
	case p.gone || p.served && p.sum != nil:
		out.Result = repute.DomainRefused
	}
	return out
}

// reasonNotFound is the code of package resolver for a host that says there is no such file.
const reasonNotFound = "not_found"

// LinkedAgents returns the agents whose current file names this one and which its own current file
// names, ordered by id, at most maxLinked. repute.ErrNotFound when there is no such agent.
func LinkedAgents(ctx context.Context, db *store.DB, id repute.AgentID) (out []repute.LinkedAgent, err error) {
	err = chaindb.ViewAgent(ctx, db, "read linked agents", id, repute.At{Finality: repute.Latest},
		func(ctx context.Context, s chaindb.Subject) error {
			rows, _ := s.Tx.Query(ctx, `
			select b.chain_id, cb.identity, b.token_id, coalesce((
				select left(content->>'name', 500) from parses where sha256 = ub.sha256 and kind = 'registration' order by
					parser_version desc limit 1), ''),
				ub.sha256 = u.sha256
			from agents a
			join chains c on c.chain_id = a.chain_id
			join uris u on u.id = a.uri_id
			join links f on f.sha256 = u.sha256
			join chains cb on (cb.chain_id, cb.identity) = (f.chain_id, f.registry)
			join agents b on (b.chain_id, b.token_id) = (f.chain_id, f.token_id)
			join uris ub on ub.id = b.uri_id
			where (a.chain_id, a.token_id) = ($1, $2) and (b.chain_id, b.token_id) <> (a.chain_id, a.token_id)
				and `+provenBy("ub.sha256")+`
				and `+DeniedDocument("u", "a")+` is null and `+DeniedDocument("ub", "b")+` is null
			order by b.chain_id, b.token_id limit $3`, id.ChainID, column.TokenNum(id.TokenID), maxLinked)
			out, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (l repute.LinkedAgent, err error) {
				var registry []byte
				var token column.TokenNum
				err = row.Scan(&l.ID.ChainID, &registry, &token, &l.Name, &l.SameFile)
				l.ID.Registry, l.ID.TokenID = common.BytesToAddress(registry), repute.TokenID(token)
				return l, err
			})
			return err
		})
	return out, err
}
