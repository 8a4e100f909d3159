-- The operator's own acts, and what treasuries say happened.
-- +goose Up

-- Acts outside any run. Their transactions are intents named ID/1, ID/2 …
create table acts (
    id           text primary key,
    key          text unique, -- of whoever asked, so that asking twice is one act; null: none was given
    kind         text not null,
    asked_by     text not null,
    chain_id     bigint not null,
    agent        text not null, -- slug, empty: of none
    request      json not null,
    decision     json not null,
    transactions json not null, -- as they were simulated
    result       json not null default 'null',
    refused      text not null default '', -- why nothing was sent
    error        text not null default '', -- why it ended early
    created_at   timestamptz not null default now(),
    ended_at     timestamptz -- null: its transactions are not all final
);
create index acts_newest on acts (created_at desc, id);
create index acts_open on acts (created_at) where ended_at is null;
-- An agent is registered once, also when two ask at once.
create unique index acts_one_identity on acts (chain_id, agent) where kind = 'identity' and ended_at is null;

-- Treasuries that are followed, each with a cursor of its own.
create table treasuries (
    chain_id    bigint not null,
    address     bytea not null check (length(address) = 20),
    start_block bigint not null,
    cursor_block bigint not null, -- start_block - 1 at first
    cursor_hash  bytea not null,  -- empty before the first block
    cursor_time  timestamptz,
    finalized    bigint not null default 0,
    reorgs       bigint not null default 0,
    primary key (chain_id, address)
);

-- Blocks that may still be replaced, and those that hold events.
create table treasury_blocks (
    chain_id bigint not null,
    address  bytea not null,
    number   bigint not null,
    hash     bytea not null,
    time     timestamptz,
    primary key (chain_id, address, number)
);

create table treasury_events (
    chain_id  bigint not null,
    address   bytea not null,
    block     bigint not null,
    log_index int not null,
    tx_hash   bytea not null,
    kind      text not null, -- the event's name
    agent_key bytea, -- keccak256 of the slug; null: of no agent
    run_key   bytea, -- keccak256 of the run's id
    task_key  bytea,
    fields    json not null,
    primary key (chain_id, address, block, log_index),
    foreign key (chain_id, address) references treasuries on delete cascade
);
create index treasury_events_run on treasury_events (run_key) where run_key is not null;
create index treasury_events_agent on treasury_events (chain_id, address, agent_key, block);
create index treasury_events_tx on treasury_events (tx_hash);
create index intents_confirmed on intents (chain_id, target, block) where state = 'confirmed';

-- +goose Down
drop index intents_confirmed;
drop table treasury_events, treasury_blocks, treasuries, acts;
