-- The decisions about all runs of a task are one chain of hashes.
-- +goose Up
-- Of root runs: how many decisions the chain has, the hash of the last one, and who signed
-- that. Decisions from before the chain have number 0.
alter table runs
    add decisions           bigint not null default 0,
    add decisions_head      bytea not null default decode(repeat('00', 32), 'hex'),
    add decisions_signer    bytea check (length(decisions_signer) = 20),     -- null: it is not signed
    add decisions_signature bytea check (length(decisions_signature) = 65);
alter table run_decisions
    add root_id  text not null default '',
    add number   bigint not null default 0,
    add phase    int not null default 0,
    add kind     text not null default '',
    add previous bytea not null default '',
    add hash     bytea not null default '';
update run_decisions d set root_id = r.root_id from runs r where r.id = d.run_id;
create unique index run_decisions_chain on run_decisions (root_id, number) where number > 0;

-- +goose Down
drop index run_decisions_chain;
alter table run_decisions drop root_id, drop number, drop phase, drop kind, drop previous, drop hash;
alter table runs drop decisions, drop decisions_head, drop decisions_signer, drop decisions_signature;
