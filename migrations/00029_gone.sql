-- That a URI's host said there is no such file, whatever happened to it since: what it
-- took away does not come back with the next silence.
-- +goose Up
alter table uris add column gone boolean not null default false; -- not_found, and not read since
update uris u set gone = true
where reason = 'not_found' or reason <> '' and exists (
    select from fetches f where f.uri_id = u.id and f.reason = 'not_found' and f.fetched_at > coalesce(u.fetched_at, '-infinity'));

-- +goose Down
alter table uris drop column gone;
