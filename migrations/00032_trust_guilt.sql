-- Who had an agent when it was found to be surely bad: new agents of the same party are
-- limited by that, whoever has the bad one since.
-- +goose Up
create table trust_guilt (
    chain_id bigint not null,
    final    boolean not null, -- as of the block of the newest run, or of the newest score
    token_id numeric(78, 0) not null, -- the bad agent
    party    bytea not null,   -- the name of an identity of the run's graph
    holder   bytea not null,   -- the address of it that had the agent
    score    integer not null, -- from what was said meanwhile
    high     integer not null,
    tier     smallint not null,
    run      bigint not null,
    primary key (chain_id, final, token_id, party)
);
create index trust_guilt_party on trust_guilt (chain_id, final, party, score, token_id);

-- Whoever ever had an agent: those of a party must be found when it becomes guilty.
create index agent_states_owner on agent_states (chain_id, owner, token_id);
create index agent_states_wallet on agent_states (chain_id, wallet, token_id) where wallet <> '' and wallet <> owner;

alter table trust_finals add column guarded boolean not null default false;
alter table trust_scores
    drop column own_score,
    drop column own_high,
    drop column final_own_score,
    drop column final_own_high,
    drop column owner,
    drop column wallet;

-- +goose Down
alter table trust_scores
    add column own_score integer not null default 0,
    add column own_high integer not null default 0,
    add column final_own_score integer,
    add column final_own_high integer,
    add column owner bytea not null default '',
    add column wallet bytea not null default '';
create index trust_scores_bad_owner on trust_scores (chain_id, owner) where own_high < 0;
create index trust_scores_bad_wallet on trust_scores (chain_id, wallet) where own_high < 0 and wallet <> '';
create index trust_scores_final_owner on trust_scores (chain_id, owner) where final_own_high < 0;
create index trust_scores_final_wallet on trust_scores (chain_id, wallet) where final_own_high < 0 and wallet <> '';
alter table trust_finals drop column guarded;
drop index agent_states_wallet, agent_states_owner;
drop table trust_guilt;
