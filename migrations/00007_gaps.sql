-- What is known to be missing, and how far the index was compared with the chain.
-- Both tables hold a few rows per chain.
-- +goose Up
create table gaps (
    chain_id   bigint not null,
    kind       smallint not null,       -- of the missing event
    subject    text not null,           -- names it within the kind: token/client/index, key, request
    token_id   numeric(78, 0),          -- null when of no single agent
    client     bytea,                   -- null when no feedback is concerned
    from_block bigint not null,
    to_block   bigint not null check (to_block >= from_block),
    reason     text not null,
    found_at   timestamptz not null default now(),
    tries      integer not null default 0,
    next_try   timestamptz not null default now(),
    primary key (chain_id, kind, subject)
);

create table verifications (
    chain_id    bigint not null,
    kind        smallint not null,
    verified_to bigint not null default 0, -- state compared for all agents at this block
    logs_to     bigint not null default 0, -- every block up to here proven
    primary key (chain_id, kind)
);

-- Where the comparison of a chain stands, so that a restart goes on from there.
create table sweeps (
    chain_id bigint not null,
    pass     text not null,
    pinned   bigint not null,         -- lowest block a part of it was compared at
    position bigint not null,         -- what comes next: a token or a block
    skipped  smallint[] not null,     -- kinds that a part of it could not compare
    primary key (chain_id, pass)
);

-- +goose Down
drop table sweeps, verifications, gaps;
