-- What a proof of a domain and a denial rest on besides the URI: which host answered in
-- the end, and which CIDs name a file whole, whatever path leads to it.
-- +goose Up
alter table uris add column served_by text; -- host, canonical, of the last answer over http(s); null: none, or not known

-- The roots of ipfs files, where these are not their bytes' own sha256. They outlive the
-- blocks: what is denied by its CID stays so when it comes from elsewhere.
create table document_roots (
    sha256    bytea not null references documents on delete cascade,
    multihash bytea not null,
    primary key (sha256, multihash)
);
create index document_roots_multihash on document_roots (multihash);
create index fetches_sha256 on fetches (sha256) where sha256 is not null;

-- One queue per host, however it was written. This is not taken back.
update uris set host = regexp_replace(regexp_replace(host, case kind when 'https' then ':443$' else ':80$' end, ''), '\.+(:[0-9]+)?$', '\1')
where kind in ('https', 'http') and host ~ '(\.|:443|:80)(:[0-9]+)?$';
-- What came over ipfs is read once more where its root is not known.
update uris u set next_due = now()
where kind = 'ipfs' and source = 'ipfs' and sha256 is not null and next_due is null
    and (cid is null or exists (select from document_blocks b where b.sha256 = u.sha256));
insert into hosts (host, turn)
select host, min(next_due) from uris where next_due is not null and kind in ('https', 'http', 'ipfs') group by host order by host
on conflict (host) do update set turn = excluded.turn where hosts.turn > excluded.turn;

-- +goose Down
drop index fetches_sha256;
drop table document_roots;
alter table uris drop column served_by;
