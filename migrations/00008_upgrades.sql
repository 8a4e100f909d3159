-- Upgrades of followed proxies: a handful among millions of events.
-- +goose Up
create index events_upgrades on events (chain_id, block) where kind = 14;

-- +goose Down
drop index events_upgrades;
