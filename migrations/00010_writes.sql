-- How often a chain's rows were written: who wrote last knows what they hold.
-- +goose Up
alter table chains add column writes bigint not null default 0;

-- +goose Down
alter table chains drop column writes;
