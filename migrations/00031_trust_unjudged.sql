-- What an agent has that nobody judged, by the parameters of a run.
-- +goose Up
alter table trust_runs
    add column unjudged_low integer,
    add column unjudged_high integer,
    add column unjudged text; -- canonical JSON; null for runs before this column

-- +goose Down
alter table trust_runs
    drop column unjudged_low,
    drop column unjudged_high,
    drop column unjudged;
