-- Payments that files of feedback claim, and what the chains say of them.
-- +goose Up

-- What files claim, by the URI they are served at. Columns of what a file does not say, or
-- not in a readable way, are null.
create table payment_files (
    uri_id    bigint primary key references uris on delete cascade,
    chain_id  bigint,         -- of the agent that the file names
    token_id  numeric(78, 0),
    client    bytea,
    payer     bytea,
    payee     bytea,
    pay_chain bigint,
    tx        bytea,
    unseen    boolean not null default true -- not brought together with ratings yet
);
create index payment_files_unseen on payment_files (uri_id) where unseen;

-- How far a chain's ratings were brought together with files that came before them.
create table payment_scans (
    chain_id  bigint primary key,
    block     bigint not null,
    log_index integer not null,
    begun     timestamptz not null default now() -- of the round
);

-- One row per rating whose file claims a payment.
create table payments (
    chain_id  bigint not null,
    token_id  numeric(78, 0) not null,
    client    bytea not null,
    idx       bigint not null,
    -- What is claimed.
    payer     bytea,
    payee     bytea,
    pay_chain bigint,
    tx        bytea,
    -- What became of it.
    state     text not null check (state in ('pending', 'verified', 'refused', 'unavailable')),
    reason    text not null default '',
    attempts  integer not null default 0,
    next_due  timestamptz,
    checked   timestamptz,
    -- Of verified ones: the transfer, and what of it counts in millionths of a US dollar.
    pay_block bigint,
    pay_log   bigint,
    pay_time  timestamptz,
    token     bytea,
    symbol    text,
    decimals  smallint,
    amount    numeric(78, 0),
    paid      bigint,
    -- Which ratings claim a transfer first: those given earlier.
    given     timestamptz,
    block     bigint,
    log_index integer,
    primary key (chain_id, token_id, client, idx),
    check (state <> 'verified' or (pay_log is not null and paid > 0 and given is not null))
);
create index payments_due on payments (pay_chain, next_due) where next_due is not null;
create unique index payments_once on payments (pay_chain, tx, pay_log) where state = 'verified';
create index payments_payer on payments (pay_chain, payer, pay_time) where state = 'verified';
create index payments_payee on payments (pay_chain, payee, pay_time) where state = 'verified';

-- Files read so far are read again for what they claim.
update documents set parsed = 0
where sha256 in (select sha256 from file_parses where kind = 'feedback' and jsonb_typeof(content -> 'Payment') = 'object');

-- +goose Down
drop table payments, payment_scans, payment_files;
