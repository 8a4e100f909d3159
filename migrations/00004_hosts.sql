-- Whose turn it is: one row per host with planned documents. turn is never later than
-- both the earliest next_due of its uris and the end of the host's last job, so that the
-- host waiting longest comes first however many URIs the others have.
-- +goose Up
create table hosts (
    host text primary key,
    turn timestamptz not null
);
create index hosts_turn on hosts (turn);

-- Only the URIs of agents are documents to read: the others were never asked for.
update uris set next_due = null, attempts = 0, fetched_at = null, source = '', sha256 = null,
    reason = '', detail = '', etag = '', last_modified = ''
where (next_due is not null or fetched_at is not null or reason <> '')
    and not exists (select from agent_states s where s.uri_id = uris.id)
    and not exists (select from agents a where a.uri_id = uris.id);
insert into hosts select host, min(next_due) from uris where next_due is not null group by host;

-- +goose Down
drop table hosts;
update uris set next_due = now() where uri <> '' and next_due is null and fetched_at is null and reason = '';
