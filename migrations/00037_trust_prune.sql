-- Claims of payments by turns of clients; what was found to be paid, in the order in which it
-- was found; and what tells which inputs of scores nothing follows from any more.
-- +goose Up
create index payments_turn on payments (pay_chain, client, next_due) where next_due is not null;

-- One row each time another amount counts for a rating: what counted at any time can be
-- found again.
create table payment_ledger (
    chain_id bigint not null,
    token_id numeric(78, 0) not null,
    id       bigint generated always as identity, -- of an agent's rows a later one commits later
    client   bytea not null,
    idx      bigint not null,
    paid     bigint not null, -- millionths of a US dollar that count from now on
    primary key (chain_id, token_id, id)
);
insert into payment_ledger (chain_id, token_id, client, idx, paid)
select chain_id, token_id, client, idx, paid from payments where state = 'verified' order by checked, chain_id, token_id, client, idx;

-- What the verdicts of runs are made again from: sha256 of policies and of manifests of evidence.
create table run_pins (
    hash   bytea not null,
    run_id text not null references runs on delete cascade,
    primary key (hash, run_id)
);
create index run_pins_run on run_pins (run_id);
insert into run_pins
select decode(m[1], 'hex'), run_id from run_phases cross join lateral regexp_matches(result::text, '"(?:evidence|policy)": ?"(?:0x)?([0-9a-f]{64})"', 'g') m
on conflict do nothing;
create index run_decisions_policy on run_decisions (policy);

alter table trust_inputs rename column created_at to kept_at; -- when somebody kept it last
create index trust_scores_evidence on trust_scores (evidence);
create index trust_finals_evidence on trust_finals (evidence);
alter table trust_feed add column pruned bigint not null default 0; -- final scores that a later one of this run or before replaced may be gone

-- +goose Down
alter table trust_feed drop column pruned;
drop index trust_finals_evidence, trust_scores_evidence;
alter table trust_inputs rename column kept_at to created_at;
drop index run_decisions_policy;
drop table run_pins, payment_ledger;
drop index payments_turn;
