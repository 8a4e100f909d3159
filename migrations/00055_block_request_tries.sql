-- +goose Up
-- A request whose block no endpoint could answer about is tried again later.
alter table block_requests
    add tries integer not null default 0,                  -- how often no endpoint answered
    add next_try timestamptz not null default now();       -- when it is due

-- +goose Down
alter table block_requests drop tries, drop next_try;
