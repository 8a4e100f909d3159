-- +goose Up
-- Transactions whose end is not stored: few at any time, and looked for again and again.
create index run_calls_open on run_calls (id) where kind = 'transaction' and not done;

-- +goose Down
drop index run_calls_open;
