-- The events that wait for a missing one, counted for every answer. Those that
-- contradict what is stored are left out: anybody can emit any number of them.
-- +goose Up
create index pending_waiting on pending (chain_id)
    where reason in ('unknown_agent', 'index_gap', 'unknown_feedback', 'unknown_request');

-- +goose Down
drop index pending_waiting;
