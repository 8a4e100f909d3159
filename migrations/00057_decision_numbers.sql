-- Each decision is a link of its task's chain. Those from before the chain, with number 0,
-- cannot be checked and are removed.
-- +goose Up
delete from run_decisions where number = 0;
drop index run_decisions_chain;
create unique index run_decisions_chain on run_decisions (root_id, number);
alter table run_decisions
    alter root_id drop default,
    alter number drop default,
    alter phase drop default,
    alter kind drop default,
    alter previous drop default,
    alter hash drop default;

-- +goose Down
alter table run_decisions
    alter root_id set default '',
    alter number set default 0,
    alter phase set default 0,
    alter kind set default '',
    alter previous set default '',
    alter hash set default '';
drop index run_decisions_chain;
create unique index run_decisions_chain on run_decisions (root_id, number) where number > 0;
