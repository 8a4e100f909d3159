-- Logs of a registry that this version cannot read are kept and counted: they name
-- no agent, and are a gap until a version can.
-- +goose Up
alter table pending alter column token_id drop not null;
drop index pending_waiting;
create index pending_waiting on pending (chain_id, reason) where reason in
    ('unknown_agent', 'index_gap', 'unknown_feedback', 'unknown_request', 'legacy_event', 'malformed_event');

-- +goose Down
delete from events e using pending p where (e.chain_id, e.block, e.log_index) = (p.chain_id, p.block, p.log_index)
    and p.token_id is null;
delete from pending where token_id is null;
alter table pending alter column token_id set not null;
drop index pending_waiting;
create index pending_waiting on pending (chain_id)
    where reason in ('unknown_agent', 'index_gap', 'unknown_feedback', 'unknown_request');
