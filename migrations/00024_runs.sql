-- Tasks, the runs that do them, and everything a run leaves behind.
-- +goose Up
-- What agents say is json, not jsonb: that refuses what no text of Postgres can hold.

create table modules (
    slug     text primary key,
    url      text not null, -- empty: part of the binary
    chain_id bigint,        -- of its onchain identity; null: it has none
    registry bytea,
    token_id numeric(78),
    dry_run  boolean not null, -- it has one
    manifest json not null,
    added_at timestamptz not null default now()
);

create table tasks (
    id          text primary key,
    goal        text not null,
    input       json not null,
    coordinator text not null,
    terms       json not null,
    key         text unique, -- null: none was given
    asked_by    text not null,
    status      text not null,
    created_at  timestamptz not null default now(),
    updated_at  timestamptz not null default now()
);
create index tasks_newest on tasks (created_at desc, id);

create table runs (
    id          text primary key,
    task_id     text not null references tasks on delete cascade,
    root_id     text not null references runs on delete cascade,
    parent_id   text references runs on delete cascade,
    parent_step text not null default '',
    slug        text not null,
    goal        text not null,
    input       json not null,
    status      text not null default 'pending',
    awaiting    text not null default '',
    attempt     int not null default 1,
    phase       int not null default 0,
    -- Whoever works on a root run holds it until the time below, and is told from earlier
    -- holders by the fence.
    fence       bigint not null default 0,
    held_until  timestamptz not null default '-infinity',
    lost_after  timestamptz not null default 'infinity', -- then it needs another job
    cancel      text not null default '',
    max_steps      int not null,
    max_tool_calls int not null,
    max_writes     int not null,
    max_runtime_ms bigint not null,
    max_gas        numeric(78), -- null: no limit
    steps       int not null default 0,
    tool_calls  int not null default 0,
    writes      int not null default 0,
    runtime_ms  bigint not null default 0,
    gas         numeric(78) not null default 0,
    events      bigint not null default 0, -- of a root run: the number of the last one
    reasons     json not null default '[]',
    error       text not null default '',
    created_at  timestamptz not null default now(),
    started_at  timestamptz,
    ended_at    timestamptz,
    unique (parent_id, parent_step)
);
create index runs_task on runs (task_id);
create index runs_lost on runs (lost_after) where lost_after < 'infinity';

create table run_phases (
    run_id     text not null references runs on delete cascade,
    attempt    int not null,
    phase      int not null,
    status     text not null,
    result     json not null,
    error      text not null,
    started_at timestamptz not null,
    ended_at   timestamptz not null,
    primary key (run_id, attempt, phase)
);

-- One row per step of a plan that has begun. A step that is done is not done again.
create table run_steps (
    run_id     text not null references runs on delete cascade,
    step_id    text not null,
    status     text not null, -- running, completed or failed
    result     json not null default 'null',
    error      text not null default '',
    started_at timestamptz not null default now(),
    ended_at   timestamptz,
    primary key (run_id, step_id)
);

-- Calls that the runtime made for an agent: the receipts.
create table run_calls (
    id         bigint generated always as identity primary key,
    run_id     text not null references runs on delete cascade,
    step_id    text not null,
    key        text not null,
    kind       text not null,
    ref        text not null,
    summary    text not null,
    chain_id   bigint not null,
    domain     text not null,
    done       boolean not null,
    error      text not null default '',
    request    json not null,
    result     json not null default 'null',
    started_at timestamptz not null default now(),
    ended_at   timestamptz
);
create index run_calls_run on run_calls (run_id, id);
create unique index run_calls_key on run_calls (run_id, step_id, key) where key <> '';

create table run_events (
    root_id text not null references runs on delete cascade,
    number  bigint not null,
    run_id  text not null,
    kind    text not null,
    data    json not null,
    at      timestamptz not null default now(),
    primary key (root_id, number)
);

-- What policies decided, and who approved what they left to a person.
create table run_decisions (
    id      bigint generated always as identity primary key,
    run_id  text not null references runs on delete cascade,
    attempt int not null,
    subject text not null, -- trust, policy, or the key of a call
    effect  text not null,
    reasons json not null,
    policy  bytea not null, -- sha256 of its bytes
    input   json not null,
    at      timestamptz not null default now()
);
create index run_decisions_run on run_decisions (run_id, id);

create table run_approvals (
    run_id   text not null references runs on delete cascade,
    attempt  int not null,
    subject  text not null,
    approved boolean not null,
    by       text not null,
    reason   text not null,
    at       timestamptz not null default now(),
    primary key (run_id, attempt, subject)
);

-- +goose Down
drop table run_approvals, run_decisions, run_events, run_calls, run_steps, run_phases, runs, tasks, modules;
