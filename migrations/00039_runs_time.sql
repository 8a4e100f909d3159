-- Time that a run was worked on counts also where the worker did not live to record the phase.
-- +goose Up
-- Of a root run: when it would have been taken for the first time, had it been worked on
-- without a break until now. Whoever holds the run brings runtime_ms up to date from it.
alter table runs add counted_from timestamptz; -- null: nobody took it yet

-- +goose Down
alter table runs drop counted_from;
