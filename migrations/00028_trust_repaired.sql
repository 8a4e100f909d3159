-- That a log was found late: weights of raters that were found without it are no longer
-- those of the chain, nor can the scores by them be computed again.
-- +goose Up
alter table trust_feed add column repaired bigint not null default 0; -- the change that says so, 0 once a run has followed
alter table trust_runs add column repaired bigint not null default 0; -- the one that the run followed

-- +goose Down
alter table trust_runs drop column repaired;
alter table trust_feed drop column repaired;
