// Package subgraph serves the GraphQL API of the agent0 subgraph, one endpoint for each chain, so that SDKs and
// dashboards of agent0 work on this index by a change of their URL.
//
// The types, filters, orders and query fields follow mechanically from the table of entities in package subgraphdb, as
// graph-node makes them from a subgraph's schema. A query is parsed (package ast is gqlparser's), turned into a tree of
// selections, and read level by level with one statement each. A level with conditions on times looks up their blocks
// with one statement before, and a page far behind others finds the places of its list with another one. Nothing is
// validated beyond what graph-node validates, because SDKs rely on its leniency and on the words of its errors.
//
// # From a query to SQL
//
// The query
//
//	{ feedbacks(first: 2, where: {value_gt: "50", agent_: {owner: "0xa001"}}, orderBy: createdAt, orderDirection: desc) {
//	    id value agent { id } } }
//
// has two levels. Its arguments become a subgraphdb.Query, in which each condition names a field of the table and an
// operator; the SQL of each field comes from the table, and the caller's values are parameters ($1 is the chain):
//
//	select 1::bigint, (f0.token_id)::text as c0, f0.client as c1, (f0.idx)::text as c2,     -- id
//	    trim_scale((f0.value * (array[1, 0.1, …])[f0.decimals + 1]))::text as c3,           -- value
//	    (f0.token_id)::text as c4, f0.block as block                                        -- agent
//	from feedback f0 left join tags t0 on … left join blocks b0 on …
//	where f0.chain_id = $1 and (… > $2::text::numeric
//	    and exists (select from agents a1 left join … where a1.chain_id = $1 and a1.token_id = f0.token_id
//	        and a1.owner = $3::bytea))
//	order by (f0.block) desc, (… the id …) desc limit $4::bigint offset $5::bigint
//
// The second level reads the agents of all rows of the first one, whose keys are $2:
//
//	select k.n, y.c0, y.r from unnest($2::text[]::numeric[]) with ordinality as k(k0, n)
//	cross join lateral (select z.*, row_number() over () as r from (
//	    select (a0.token_id)::text as c0, null from agents a0 left join …
//	    where a0.chain_id = $1 and a0.token_id = k.k0 … limit $3 offset $4) z) y order by k.n, y.r limit $5
//
// Postgres leaves out the joins that no field of a statement needs. A registration file is in the tables of its agent
// and is read with it. What the order of a list costs is said in package subgraphdb.
//
// # Bounds
//
// The size of a document, its depth, the statements, conditions and values of a query and the rows and bytes of its
// answer are bounded: see document.go and maxRows. A statement ends after ten seconds. All refusals have status 200.
package subgraph
