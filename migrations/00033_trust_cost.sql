-- The list of validation contracts as an input of runs.
-- +goose Up
alter table trust_runs add column validations bytea not null default ''; -- sha256; empty for runs from before

-- +goose Down
alter table trust_runs drop column validations;
