-- What becomes of an agent's guilt reaches the others of the party in parts. How far a run's
-- agents were marked, and a version of all roots and links, so that nobody reads them to see
-- that they are the same: some databases have these from an earlier form of migration 33.
-- +goose Up
create table trust_follow (
    id       bigint generated always as identity primary key,
    chain_id bigint not null,
    final    boolean not null,
    members  bytea[] not null,                   -- addresses of the party whose guilt is another now
    updated  bigint not null,                    -- agents to which nothing happened after this block are as they were
    but_not  numeric(78, 0),                     -- the agent it is guilty of, null for several
    after    numeric(78, 0) not null default -1  -- agents up to this one were made stale
);
create index trust_follow_chain on trust_follow (chain_id, id);
alter table trust_guilt add column known bytea not null default ''; -- sha256 of the party's members and the parameters

alter table trust_runs add column if not exists marked numeric(78, 0); -- agents up to this one were marked, -1: none; null: all
create table if not exists trust_lists (
    version bigint not null -- another one after each change of trust_roots or trust_links
);
insert into trust_lists select 0 where not exists (select from trust_lists);
-- +goose StatementBegin
create or replace function trust_lists_changed() returns trigger language plpgsql as $$
begin
    update trust_lists set version = version + 1;
    return null;
end $$;
-- +goose StatementEnd
create or replace trigger changed after insert or update or delete or truncate on trust_roots execute function trust_lists_changed();
create or replace trigger changed after insert or update or delete or truncate on trust_links execute function trust_lists_changed();

-- +goose Down
drop trigger changed on trust_links;
drop trigger changed on trust_roots;
drop function trust_lists_changed;
drop table trust_lists;
alter table trust_runs drop column marked;
alter table trust_guilt drop column known;
drop table trust_follow;
