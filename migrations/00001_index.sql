-- The index: events as received, histories by block range, current rows.
-- Addresses are 20 raw bytes (empty for none), hashes 32. Text of the chain is bytea.
-- Tags and URIs are interned, so that no key ever holds a string of foreign length.
-- +goose Up
create table chains (
    chain_id        bigint primary key check (chain_id > 0),
    name            text not null,
    identity        bytea not null check (length(identity) = 20),
    reputation      bytea not null check (length(reputation) = 20),
    validations     bytea[] not null,
    start_block     bigint not null,
    imported        boolean not null,
    cursor_block    bigint not null, -- everything up to here is stored; start_block - 1 at first
    cursor_hash     bytea not null,  -- empty before the first block
    cursor_time     timestamptz,
    head_block      bigint not null default 0,
    head_seen_at    timestamptz,
    safe_block      bigint not null default 0,
    finalized_block bigint not null default 0,
    reorgs          bigint not null default 0,
    halted          boolean not null default false,
    last_error      text not null default ''
);

create table leases (
    name       text primary key,
    owner      text not null,
    epoch      bigint not null,
    expires_at timestamptz not null
);

-- Block ranges a chain's events are known for; one range for a followed chain.
create table covered (
    chain_id   bigint not null references chains on delete cascade,
    from_block bigint not null,
    to_block   bigint not null check (to_block >= from_block),
    primary key (chain_id, from_block)
);

-- Blocks that hold events, and every block near the head.
create table blocks (
    chain_id bigint not null,
    number   bigint not null,
    hash     bytea not null,
    parent   bytea not null, -- empty when unknown
    time     timestamptz,    -- null when unknown (imports)
    primary key (chain_id, number)
);

create table tags (
    id    bigint generated always as identity primary key,
    hash  bytea not null unique check (length(hash) = 32), -- keccak256(value)
    value bytea not null
);

create table uris (
    id            bigint generated always as identity primary key,
    hash          bytea not null unique check (length(hash) = 32), -- sha256(uri)
    uri           bytea not null,
    kind          text not null, -- data, json, https, http, ipfs, empty, unsupported
    host          text not null, -- queue key, '' for what needs no network
    next_due      timestamptz,   -- null when nothing is planned
    attempts      integer not null default 0,
    fetched_at    timestamptz,
    source        text not null default '',
    sha256        bytea,         -- newest bytes, null when none were ever read
    reason        text not null default '', -- code of the last failure
    detail        text not null default '',
    etag          text not null default '',
    last_modified text not null default ''
);
create index uris_due on uris (host, next_due) where next_due is not null;

create table documents (
    sha256     bytea primary key check (length(sha256) = 32),
    body       bytea not null,
    media_type text not null,
    first_seen timestamptz not null
);

create table fetches (
    uri_id     bigint not null references uris on delete cascade,
    fetched_at timestamptz not null,
    sha256     bytea,
    source     text not null,
    reason     text not null,
    primary key (uri_id, fetched_at)
);

create table parses (
    sha256         bytea not null references documents on delete cascade,
    parser_version integer not null,
    registration   jsonb not null,
    problems       jsonb not null,
    errors         integer not null, -- problems of severity error
    primary key (sha256, parser_version)
);

-- Layer 1: the truth.
create table events (
    chain_id  bigint not null,
    block     bigint not null,
    log_index integer not null,
    tx_index  integer not null,
    kind      smallint not null check (kind > 0),
    address   bytea not null,
    tx_hash   bytea not null,
    token_id  numeric(78, 0), -- the agent concerned, null when none
    topics    bytea not null, -- 32 bytes each
    data      bytea not null,
    primary key (chain_id, block, log_index)
);

-- Stored events that could not be applied because one before them is missing.
create table pending (
    chain_id  bigint not null,
    block     bigint not null,
    log_index integer not null,
    token_id  numeric(78, 0) not null,
    reason    text not null,
    primary key (chain_id, block, log_index)
);

-- Layer 2: histories. A row holds from from_block on, until before to_block (null: still).
create table agent_states (
    chain_id   bigint not null,
    token_id   numeric(78, 0) not null,
    from_block bigint not null,
    to_block   bigint check (to_block > from_block),
    owner      bytea not null,
    claimed    boolean not null, -- owner known from Registered only
    wallet     bytea not null,
    approved   bytea not null,
    uri_id     bigint not null,
    primary key (chain_id, token_id, from_block)
);

create table metadata (
    chain_id   bigint not null,
    token_id   numeric(78, 0) not null,
    key_hash   bytea not null, -- sha256(key)
    from_block bigint not null,
    to_block   bigint check (to_block > from_block),
    log_index  integer not null,
    key        bytea not null,
    value      bytea not null,
    primary key (chain_id, token_id, key_hash, from_block)
);

-- Spans in which operator may act for every agent of owner.
create table operators (
    chain_id   bigint not null,
    owner      bytea not null,
    operator   bytea not null,
    from_block bigint not null,
    to_block   bigint check (to_block > from_block),
    primary key (chain_id, owner, operator, from_block)
);

create table feedback (
    chain_id      bigint not null,
    token_id      numeric(78, 0) not null,
    client        bytea not null,
    idx           bigint not null check (idx > 0),
    block         bigint not null,
    log_index     integer not null,
    value         numeric(39, 0) not null,
    decimals      smallint not null check (decimals between 0 and 18),
    tag1          bigint not null,
    tag2          bigint not null,
    uri_id        bigint not null,
    endpoint      bytea not null,
    hash          bytea not null, -- empty for zero
    revoked_block bigint,
    revoked_log   integer,
    primary key (chain_id, token_id, client, idx)
);
create index feedback_newest on feedback (chain_id, token_id, block, log_index);

create table responses (
    chain_id  bigint not null,
    token_id  numeric(78, 0) not null,
    client    bytea not null,
    idx       bigint not null,
    block     bigint not null,
    log_index integer not null,
    responder bytea not null,
    uri_id    bigint not null,
    hash      bytea not null,
    primary key (chain_id, token_id, client, idx, block, log_index)
);

create table validation_requests (
    chain_id     bigint not null,
    contract     bytea not null,
    request_hash bytea not null,
    token_id     numeric(78, 0) not null,
    validator    bytea not null,
    uri_id       bigint not null,
    block        bigint not null,
    log_index    integer not null,
    primary key (chain_id, contract, request_hash)
);
create index validation_requests_agent on validation_requests (chain_id, token_id, block, log_index);

create table validation_responses (
    chain_id     bigint not null,
    contract     bytea not null,
    request_hash bytea not null,
    block        bigint not null,
    log_index    integer not null,
    response     smallint not null check (response between 0 and 100),
    uri_id       bigint not null,
    hash         bytea not null,
    tag          bigint not null,
    primary key (chain_id, contract, request_hash, block, log_index)
);

-- Layer 3: current rows, recomputed from the histories on a rewind.
create table agents (
    chain_id         bigint not null,
    token_id         numeric(78, 0) not null,
    owner            bytea not null,
    claimed          boolean not null,
    wallet           bytea not null,
    approved         bytea not null,
    uri_id           bigint not null,
    registered_block bigint not null,
    registered_log   integer not null,
    updated_block    bigint not null,
    updated_log      integer not null,
    feedback         bigint not null default 0, -- live
    revoked          bigint not null default 0,
    clients          bigint not null default 0, -- with live feedback
    responses        bigint not null default 0,
    validations      bigint not null default 0, -- answered, trusted contracts
    primary key (chain_id, token_id)
);
create index agents_owner on agents (chain_id, owner, token_id);
create index agents_wallet on agents (chain_id, wallet, token_id) where wallet <> '';
create index agents_updated on agents (chain_id, updated_block, token_id);
create index agents_feedback on agents (chain_id, feedback, token_id);
create index agents_uri on agents (uri_id);

-- Live feedback added up per client, tags and decimals: getSummary without rows.
create table sums (
    chain_id bigint not null,
    token_id numeric(78, 0) not null,
    client   bytea not null,
    tag1     bigint not null,
    tag2     bigint not null,
    decimals smallint not null,
    n        bigint not null check (n > 0),
    sum      numeric not null,
    primary key (chain_id, token_id, client, tag1, tag2, decimals)
);

-- A client's latest live value per tag1.
create table votes (
    chain_id bigint not null,
    token_id numeric(78, 0) not null,
    tag1     bigint not null,
    client   bytea not null,
    idx      bigint not null,
    value    numeric(39, 0) not null,
    decimals smallint not null,
    primary key (chain_id, token_id, tag1, client)
);

-- The outbox. Readers order by (xid, seq) below the oldest running transaction.
create table changes (
    seq        bigint generated always as identity primary key,
    xid        xid8 not null default pg_current_xact_id(),
    chain_id   bigint not null,
    kind       text not null,
    block      bigint not null,
    log_index  integer not null,
    token_id   numeric(78, 0),
    data       jsonb not null,
    retracts   bigint, -- the seq this row undoes
    created_at timestamptz not null default now()
);
create index changes_order on changes (xid, seq);
create index changes_block on changes (chain_id, block);

-- +goose Down
drop table changes, votes, sums, agents, validation_responses, validation_requests, responses,
    feedback, operators, metadata, agent_states, pending, events, parses, fetches, documents,
    uris, tags, blocks, covered, leases, chains;
