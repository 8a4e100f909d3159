-- Which Postgres cluster wrote the rows. Transaction ids, by which the change feed
-- is ordered, mean nothing in another one.
-- +goose Up
create table cluster (
    single     boolean primary key default true check (single),
    identifier bigint not null -- of pg_control_system()
);

-- +goose Down
drop table cluster;
