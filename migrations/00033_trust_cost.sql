-- The list of validation contracts as an input of runs, and headers of blocks that end
-- epochs, to whose time scores are aged.
-- +goose Up
alter table trust_runs add column validations bytea not null default ''; -- sha256; empty for runs from before
alter table chains add column epoch_blocks bigint not null default 0 check (epoch_blocks >= 0); -- length of an epoch, 0: no engine has run

-- +goose Down
alter table trust_runs drop column validations;
alter table chains drop column epoch_blocks;
