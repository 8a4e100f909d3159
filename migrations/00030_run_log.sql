-- Ends of runs, for the logs of agents.
-- +goose Up
create index run_events_finished on run_events (at, root_id, number) where kind = 'run.finished';
create index runs_agent on runs (slug);

-- +goose Down
drop index runs_agent, run_events_finished;
