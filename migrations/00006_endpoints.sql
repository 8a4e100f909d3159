-- Health of the JSON-RPC endpoints, as each process that asks them sees it.
-- +goose Up
create table endpoints (
    chain_id bigint not null,
    name text not null, -- host, never path, query or key
    owner text not null, -- the process
    kind text not null,
    state text not null check (state in ('closed', 'open', 'half_open', 'excluded')),
    latency_ms double precision not null,
    error_rate double precision not null,
    requests bigint not null,
    failures bigint not null,
    rate_limit double precision not null, -- requests per second, 0 for none
    concurrency integer not null,
    head bigint not null, -- 0 when unknown
    last_error text not null,
    last_ok_at timestamptz,
    updated_at timestamptz not null,
    primary key (chain_id, name, owner)
);

-- +goose Down
drop table endpoints;
