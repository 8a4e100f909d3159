-- When an engine last looked for what changed, so that others see whether any does.
-- +goose Up
alter table trust_feed add column read_at timestamptz not null default now();

-- +goose Down
alter table trust_feed drop column read_at;
