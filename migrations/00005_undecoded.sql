-- Logs of a registry that this version cannot read are kept and counted: they name
-- no agent, and are a gap until a version can.
-- +goose Up
alter table pending alter column token_id drop not null;
drop index pending_waiting;
create index pending_waiting on pending (chain_id, reason) where reason in
    ('unknown_agent', 'index_gap', 'unknown_feedback', 'unknown_request', 'legacy_event', 'malformed_event');

-- +goose Down
-- The older version cannot hold these logs, and migrating up again does not bring
-- them back: their blocks are no longer covered, so that nothing claims to be whole
-- without them. Index the chain anew to have them.
create temp table uncovered on commit drop as
    select v.chain_id, unnest(int8multirange(int8range(v.from_block, v.to_block, '[]')) - l.blocks) rest
    from covered v join (
        select p.chain_id, range_agg(int8range(p.block, p.block, '[]')) blocks from pending p
        where p.token_id is null group by p.chain_id) l using (chain_id);
delete from covered where chain_id in (select chain_id from pending where token_id is null);
insert into covered select chain_id, lower(rest), upper(rest) - 1 from uncovered;
delete from events e using pending p where (e.chain_id, e.block, e.log_index) = (p.chain_id, p.block, p.log_index)
    and p.token_id is null;
delete from pending where token_id is null;
alter table pending alter column token_id set not null;
drop index pending_waiting;
create index pending_waiting on pending (chain_id)
    where reason in ('unknown_agent', 'index_gap', 'unknown_feedback', 'unknown_request');
