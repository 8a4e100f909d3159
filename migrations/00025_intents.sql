-- What the orchestrator signs: the accounts it signs with, what each transaction is for,
-- and every signed form of it.
-- +goose Up

create table accounts (
    chain_id   bigint not null,
    address    bytea not null,
    next_nonce bigint not null default 0,
    primary key (chain_id, address)
);

-- An intent has one nonce for ever. Nothing refers to runs: what was sent stays known when
-- a run is deleted.
create table intents (
    id          text primary key,
    run_id      text not null,
    task_id     text not null,
    agent       text not null, -- slug
    chain_id    bigint not null,
    sender      bytea not null,
    nonce       bigint not null,
    target      bytea not null,
    value       numeric(78) not null,
    data        bytea not null,
    max_fee     numeric(78), -- wei for gas in all; null: no limit
    state       text not null default 'signed',
    reason      text not null default '',
    -- Where it was mined; null while it is not.
    hash        bytea,
    block       bigint,
    block_hash  bytea,
    gas_used    bigint,
    fee         numeric(78),
    logs        json,
    created_at  timestamptz not null default now(),
    updated_at  timestamptz not null default now(),
    unique (chain_id, sender, nonce),
    check (state in ('signed', 'broadcast', 'mined', 'confirmed', 'reverted', 'failed'))
);
create index intents_run on intents (run_id);
create index intents_open on intents (chain_id, id) where state not in ('confirmed', 'reverted', 'failed');

-- Signed forms, the last of which is the one to send; the earlier ones may still be mined.
create table intent_attempts (
    intent_id text not null references intents on delete cascade,
    number    int not null,
    hash      bytea not null unique,
    raw       bytea not null,
    gas       bigint not null,
    fee_cap   numeric(78) not null,
    tip_cap   numeric(78) not null,
    at        timestamptz not null default clock_timestamp(),
    primary key (intent_id, number)
);

-- +goose Down
drop table intent_attempts, intents, accounts;
