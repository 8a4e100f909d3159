-- What a rewind and a repair look up: an agent's events, and feedback by the block of
-- its revocation.
-- +goose Up
create index events_agent on events (chain_id, token_id, block, log_index) where token_id is not null;
create index feedback_revoked on feedback (chain_id, revoked_block) where revoked_block is not null;

-- +goose Down
drop index events_agent, feedback_revoked;
