-- +goose Up

-- Final blocks that were compared with the chain. A row is one connected range: its newest block
-- follows, by the hashes of the parents, from the newest final block.
create table block_proofs (
    chain_id   bigint not null,
    from_block bigint not null,
    to_block   bigint not null check (to_block >= from_block),
    parent     bytea not null,                          -- hash of the block before from_block
    hash       bytea not null,                          -- of to_block; empty after a rewind cut the range
    unproven   int8multirange not null default '{}',    -- the blocks that could not be proven
    reason     text not null default '',                -- why the newest of them could not
    loose      bigint not null default 0,               -- newest block whose header nobody vouches for, 0: none
    primary key (chain_id, from_block)
);

-- Blocks that somebody asks to have compared again.
create table block_requests (
    chain_id bigint not null,
    block    bigint not null,
    asked_at timestamptz not null default now(),
    primary key (chain_id, block)
);

-- bloomless says that the blooms of the chain's headers lack logs of their blocks, so that no
-- bloom excludes any.
alter table chains add bloomless boolean not null default false;

alter table verifications drop logs_to;
delete from sweeps where pass <> 'agents';

-- +goose Down

alter table verifications add logs_to bigint not null default 0;
alter table chains drop bloomless;
drop table block_requests, block_proofs;
