-- What keeps documents within bounds, however many share one and however often it
-- changes: telling those who share it takes its time, old versions go, and upkeep goes on
-- where it stopped.
-- +goose Up
-- Documents that changed and are shown by more agents than one transaction tells.
create table announcements (
    uri_id   bigint primary key references uris on delete cascade,
    due      timestamptz,                        -- when to go on telling; null when all are told
    begun    timestamptz,                        -- when telling began last
    chain_id bigint not null default -1,         -- told up to here, -1: nobody yet
    token_id numeric(78, 0) not null default -1,
    again    boolean not null default false      -- it changed since telling began
);
create index announcements_due on announcements (due) where due is not null;
drop index agents_uri;
create index agents_uri on agents (uri_id, chain_id, token_id);

-- URIs with more versions than are kept.
create table overgrown (
    uri_id bigint primary key references uris on delete cascade
);

-- Where passes over many rows stand, one row each; whoever works on one has it locked.
create table upkeep (
    pass  text primary key,
    next  timestamptz not null default now(), -- when to go on
    place bytea,                              -- done up to here, null at the start
    since timestamptz,                        -- the same, where the order is by time
    bytes bigint not null default 0,          -- added up so far
    spare bigint not null default 0           -- still to be dropped
);

-- Second tries of ipfs documents have a queue of their own, and hosts one spelling: see
-- Migrate for those that only code can read.
update uris set host = 'ipfs/again' where kind = 'ipfs' and host = 'ipfs' and failures > 1;
insert into hosts (host, turn, rank)
select host, min(next_due), min(rank) from uris where host = 'ipfs/again' and next_due is not null group by host
on conflict (host) do nothing;

-- +goose Down
update uris set host = 'ipfs' where host = 'ipfs/again';
insert into hosts (host, turn, rank)
select 'ipfs', turn, rank from hosts where host = 'ipfs/again'
on conflict (host) do update set turn = least(hosts.turn, excluded.turn);
delete from hosts where host = 'ipfs/again';
drop table upkeep, overgrown, announcements;
drop index agents_uri;
create index agents_uri on agents (uri_id);
