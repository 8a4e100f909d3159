-- The list of validation contracts as an input of runs, and headers of blocks that end
-- epochs, to whose time scores are aged. What tells two newest scores apart, so that those
-- that did not change need not be written at each epoch. How far a run's agents were marked.
-- And a version of all roots and links, so that nobody reads them to see that they are the same.
-- +goose Up
alter table trust_runs add column validations bytea not null default ''; -- sha256; empty for runs from before
alter table chains add column epoch_blocks bigint not null default 0 check (epoch_blocks >= 0); -- length of an epoch, 0: no engine has run
alter table trust_scores add column facts bytea not null default ''; -- as of trust_finals; empty for scores from before
alter table trust_runs add column marked numeric(78, 0); -- agents up to this one were marked, -1: none; null: all

create table trust_lists (
    version bigint not null -- another one after each change of trust_roots or trust_links
);
insert into trust_lists values (0);
-- +goose StatementBegin
create function trust_lists_changed() returns trigger language plpgsql as $$
begin
    update trust_lists set version = version + 1;
    return null;
end $$;
-- +goose StatementEnd
create trigger changed after insert or update or delete or truncate on trust_roots execute function trust_lists_changed();
create trigger changed after insert or update or delete or truncate on trust_links execute function trust_lists_changed();

-- +goose Down
drop trigger changed on trust_links;
drop trigger changed on trust_roots;
drop function trust_lists_changed;
drop table trust_lists;
alter table trust_runs drop column marked;
alter table trust_runs drop column validations;
alter table trust_scores drop column facts;
alter table chains drop column epoch_blocks;
