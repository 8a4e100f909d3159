package historydb

import (
	"fmt"

	"repute"
	"repute/store/column"
	"repute/store/docdb"
)

// historySQL returns the statement that reads changes of agents. $1 and $2 are their keys, $3 the block of the view, $4
// to $6 the position to continue after, $7 how many of each agent are read, $8 the ranks of the wanted kinds, $9 the
// hash of the empty URI and $10 that of the metadata key of wallets.
//
// Each history is read in its own order up to the limit, and the three are merged: a long history costs no more than a
// page, unless it is one of operators, which are few. What a change replaced is the row before it. Texts, logs and
// times are joined for the rows of the page alone.
func historySQL(oldestFirst bool) string {
	than, direction := "<", "desc"
	if oldestFirst {
		than, direction = ">", "asc"
	}
	return fmt.Sprintf(`
	with h as (
		select k.chain_id, k.token_id, x.* from unnest($1::bigint[], $2::numeric[]) as k(chain_id, token_id)
		cross join lateral (
			select * from ((%[3]s) union all (%[4]s) union all (%[5]s)) x
			order by block %[1]s, rank %[1]s, subject %[1]s limit $7) x)
	select h.chain_id, c.identity, h.token_id, h.rank, h.subject, %[6]s, octet_length(h.key)::bigint,
		coalesce(h.old, %[7]s), octet_length(coalesce(h.old, wu.uri))::bigint, %[8]s is not null,
		coalesce(h.new, %[9]s), octet_length(coalesce(h.new, nu.uri))::bigint, %[10]s is not null,
		h.block, e.log_index::bigint, e.tx_hash, b.time
	from h
	join chains c on c.chain_id = h.chain_id
	left join uris wu on wu.id = h.old_uri
	left join uris nu on nu.id = h.new_uri
	left join lateral (%[11]s) e on true
	left join blocks b on (b.chain_id, b.number) = (h.chain_id, h.block)
	order by h.chain_id, h.token_id, h.block %[1]s, h.rank %[1]s, h.subject %[1]s`,
		direction, than, statesSQL(than, direction), metadataSQL(than, direction), operatorsSQL(than, direction),
		column.HeadOf("h.key"), column.HeadOf("wu.uri"), docdb.DeniedDocument("wu", "h"), column.HeadOf("nu.uri"),
		docdb.DeniedDocument("nu", "h"), logSQL())
}

// statesSQL returns the SQL of changes of owner, wallet, approved address and URI of the agent in row k: of each state
// the values that differ from those of the state before.
func statesSQL(than, direction string) string {
	return fmt.Sprintf(`
		select s.from_block as block, v.rank, ''::bytea as subject, null::bytea as key, v.old, v.new, v.old_uri, v.new_uri,
			null::integer as log
		from agent_states s
		left join lateral (
			select * from agent_states p
			where p.chain_id = s.chain_id and p.token_id = s.token_id and p.from_block < s.from_block
			order by p.from_block desc limit 1) p on true
		cross join lateral (values
			(%[3]d, coalesce(p.owner, ''), s.owner, null::bigint, null::bigint),
			(%[4]d, coalesce(p.wallet, ''), s.wallet, null, null),
			(%[5]d, coalesce(p.approved, ''), s.approved, null, null),
			(%[6]d, null, null, coalesce(p.uri_id, (select id from uris where hash = $9)), s.uri_id)) v(rank, old, new, old_uri, new_uri)
		where s.chain_id = k.chain_id and s.token_id = k.token_id and s.from_block <= $3
			and s.from_block %[1]s= $4 and (s.from_block, v.rank::bigint, ''::bytea) %[1]s ($4, $5, $6)
			and v.rank = any($8) and (v.old is distinct from v.new or v.old_uri is distinct from v.new_uri)
		order by s.from_block %[2]s, v.rank %[2]s limit $7`,
		than, direction, KindOwner.rank(), KindWallet.rank(), KindApproved.rank(), KindURI.rank())
}

// metadataSQL returns the SQL of the blocks in which a key of the agent in row k was set.
func metadataSQL(than, direction string) string {
	return fmt.Sprintf(`
		select m.from_block, %[3]d, m.key_hash, m.key, p.value, m.value, null::bigint, null::bigint, m.log_index
		from metadata m
		left join lateral (
			select value from metadata p
			where p.chain_id = m.chain_id and p.token_id = m.token_id and p.key_hash = m.key_hash and p.from_block < m.from_block
			order by p.from_block desc limit 1) p on true
		where m.chain_id = k.chain_id and m.token_id = k.token_id and m.from_block <= $3
			and m.from_block %[1]s= $4 and (m.from_block, %[3]d::bigint, m.key_hash) %[1]s ($4, $5, $6) and %[3]d = any($8)
		order by m.from_block %[2]s, m.key_hash %[2]s limit $7`, than, direction, KindMetadata.rank())
}

// operatorsSQL returns the SQL of the blocks in which an operator began or ceased to act for the agent in row k. It may
// act while an owner lets it and owns the agent, so a transfer changes operators too. An operator that both the former
// and the new owner let act continues, and is left out.
func operatorsSQL(than, direction string) string {
	return fmt.Sprintf(`
		select t.block, %[3]d, t.operator, null::bytea, case when t.turn < 0 then t.operator end,
			case when t.turn > 0 then t.operator end, null::bigint, null::bigint, null::integer
		from (
			select operator, block, sum(turn) as turn from (
				select o.operator, i.block, i.turn from (
					select owner, from_block, lead(from_block) over (order by from_block) as to_block from (
						select owner, from_block, owner is distinct from lag(owner) over (order by from_block) as moved
						from agent_states where chain_id = k.chain_id and token_id = k.token_id and from_block <= $3) s
					where moved) w
				join operators o on o.chain_id = k.chain_id and o.owner = w.owner and o.from_block <= $3
					and (o.to_block is null or o.to_block > w.from_block) and (w.to_block is null or o.from_block < w.to_block)
				cross join lateral (values (greatest(o.from_block, w.from_block), 1), (least(o.to_block, w.to_block), -1)) i(block, turn)
				where i.block <= $3) i
			group by operator, block having sum(turn) <> 0) t
		where (t.block, %[3]d::bigint, t.operator) %[1]s ($4, $5, $6) and %[3]d = any($8)
		order by t.block %[2]s, t.operator %[2]s limit $7`, than, direction, KindOperator.rank())
}

// logSQL returns the SQL of the log that made the change in row h: of the block's logs that can have made it the last
// one. A transfer clears the wallet with a log of its own, and the approved address without any.
func logSQL() string {
	return fmt.Sprintf(`
		select e.log_index, e.tx_hash from events e
		where e.chain_id = h.chain_id and e.block = h.block and case h.rank
			when %[1]d then e.token_id = h.token_id and e.kind in (%[7]d, %[8]d)
			when %[2]d then e.token_id = h.token_id and e.kind in (%[7]d, %[8]d, %[10]d)
			when %[3]d then e.token_id = h.token_id and e.kind in (%[7]d, %[11]d)
			when %[4]d then e.token_id = h.token_id and e.kind in (%[8]d, %[9]d)
			when %[5]d then e.log_index = h.log
			when %[6]d then e.token_id = h.token_id and e.kind = %[7]d or e.kind = %[12]d end
		order by h.rank = %[1]d and e.kind = %[7]d desc, e.kind = %[10]d and substring(e.topics from 65 for 32) = $10 desc,
			e.kind = %[12]d and position(h.subject in e.topics) > 0 desc, e.kind <> %[12]d desc, e.log_index desc limit 1`,
		KindOwner.rank(), KindWallet.rank(), KindApproved.rank(), KindURI.rank(), KindMetadata.rank(),
		KindOperator.rank(),
		repute.KindTransfer, repute.KindRegistered, repute.KindURIUpdated, repute.KindMetadataSet, repute.KindApproval,
		repute.KindApprovalForAll)
}
