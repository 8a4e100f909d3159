-- The list of validation contracts as an input of runs, and headers of blocks that end
-- epochs, to whose time scores are aged. What tells two newest scores apart, so that those
-- that did not change need not be written at each epoch.
-- +goose Up
alter table trust_runs add column validations bytea not null default ''; -- sha256; empty for runs from before
alter table chains add column epoch_blocks bigint not null default 0 check (epoch_blocks >= 0); -- length of an epoch, 0: no engine has run
alter table trust_scores add column facts bytea not null default ''; -- as of trust_finals; empty for scores from before

-- +goose Down
alter table trust_runs drop column validations;
alter table trust_scores drop column facts;
alter table chains drop column epoch_blocks;
