-- Scores: what they follow from, the newest of every agent, their history, and which
-- of them are out of date.
-- +goose Up

-- One row per walk over a chain's graph: one for each epoch that was closed, one more
-- where roots, links or parameters changed within it.
create table trust_runs (
    chain_id   bigint not null,
    run        bigint not null check (run > 0), -- 1, 2, … per chain
    epoch      bigint not null,
    boundary   bigint not null, -- the epoch's last block
    block      bigint not null, -- the newest one with an event, up to there
    block_hash bytea not null,  -- empty when there is none
    block_time timestamptz,
    scorer     text not null,
    params     bytea not null,
    tags       bytea not null,
    roots      bytea not null,
    links      bytea not null,
    weights    bytea not null, -- sha256 of graph and weights
    identities bigint not null,
    edges      bigint not null,
    started_at timestamptz not null default now(),
    closed_at  timestamptz,    -- when every agent had its final score
    primary key (chain_id, run)
);

-- The newest score of every agent that has or had ratings.
create table trust_scores (
    chain_id   bigint not null,
    token_id   numeric(78, 0) not null,
    run        bigint not null,
    block      bigint not null, -- of the newest event it follows from, or the run's
    block_hash bytea not null,
    block_time timestamptz,
    evidence   bytea not null,  -- sha256 of the manifest
    rated      boolean not null,
    score      integer not null, -- thousandths of a point
    low        integer not null,
    high       integer not null,
    mean       integer not null,
    confidence integer not null, -- millionths
    tier       smallint not null,
    own_score  integer not null, -- without the guard
    own_high   integer not null,
    final_own_score integer,    -- of the newest final score, null without one
    final_own_high  integer,
    owner      bytea not null,
    wallet     bytea not null,  -- empty when cleared
    result     bytea not null,
    primary key (chain_id, token_id)
);
create index trust_scores_order on trust_scores (chain_id, score, token_id);
create index trust_scores_bad_owner on trust_scores (chain_id, owner) where own_high < 0;
create index trust_scores_bad_wallet on trust_scores (chain_id, wallet) where own_high < 0 and wallet <> '';
create index trust_scores_final_owner on trust_scores (chain_id, owner) where final_own_high < 0;
create index trust_scores_final_wallet on trust_scores (chain_id, wallet) where final_own_high < 0 and wallet <> '';
create index trust_scores_block on trust_scores (chain_id, block);

-- Final scores, a row for each run that changed one.
create table trust_finals (
    chain_id   bigint not null,
    token_id   numeric(78, 0) not null,
    run        bigint not null,
    evidence   bytea not null,
    rated      boolean not null,
    score      integer not null,
    low        integer not null,
    high       integer not null,
    mean       integer not null,
    confidence integer not null,
    tier       smallint not null,
    facts      bytea not null,  -- digest of what does not change by age alone
    result     bytea not null,
    primary key (chain_id, token_id, run)
);

-- Agents whose scores must be looked at.
create table trust_stale (
    chain_id bigint not null,
    token_id numeric(78, 0) not null,
    turn     smallint not null, -- 0: something happened, 1: a run
    final    boolean not null,  -- the final score too
    since    timestamptz not null default now(),
    mark     bigint generated always as identity, -- another one each time it is marked
    claimed  timestamptz not null default '-infinity', -- until then somebody works on it
    primary key (chain_id, token_id)
);
create index trust_stale_turn on trust_stale (chain_id, turn, since);
create index trust_stale_final on trust_stale (chain_id) where final;

-- How far the change feed was read for scores.
create table trust_feed (
    chain_id bigint primary key,
    xid      xid8 not null,
    seq      bigint not null
);

-- +goose Down
drop table trust_feed, trust_stale, trust_finals, trust_scores, trust_runs;
