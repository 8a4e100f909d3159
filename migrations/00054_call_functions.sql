-- +goose Up
-- The text of the function that a pair of an allow-list names, for people and rules: the chain
-- knows selectors alone.
create table call_functions (
    chain_id bigint not null,
    target bytea not null check (octet_length(target) = 20),
    selector bytea not null check (octet_length(selector) = 4),
    text text not null,
    act text not null references acts (id) on delete cascade, -- by which it was given last
    primary key (chain_id, target, selector)
);

-- +goose Down
drop table call_functions;
