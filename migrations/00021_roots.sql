-- What scores follow from beside the chain and the parameters: who is trusted by
-- configuration, and who is known from elsewhere to be one party.
-- +goose Up
create table trust_roots (
    chain_id   bigint not null,
    set_name   text not null,   -- "default" is the one that stored scores use
    address    bytea not null,
    weight     bigint not null check (weight > 0), -- millionths
    reason     text not null,
    expires_at timestamptz,     -- null: never; compared with times of blocks
    created_at timestamptz not null default now(),
    primary key (chain_id, set_name, address)
);
create table trust_links (
    chain_id   bigint not null,
    a          bytea not null,
    b          bytea not null,
    reason     text not null,
    source     text not null,   -- where anybody can check it
    created_at timestamptz not null default now(),
    primary key (chain_id, a, b),
    check (a < b)
);
-- Sets as they were when something was scored by them, so that it can be scored again.
create table trust_inputs (
    hash       bytea primary key, -- sha256 of body
    body       bytea not null,
    created_at timestamptz not null default now()
);

-- +goose Down
drop table trust_inputs;
drop table trust_links;
drop table trust_roots;
