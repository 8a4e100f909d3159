-- Files of feedback, responses and validations are documents too; bytes can be denied
-- or dropped; what a file claims can be looked up from the other side.
-- +goose Up
alter table uris
    -- Whose document it is, which is the order of the queue: 0 an agent's that was never
    -- read, 1 an agent's, 2 a domain's proof, 3 a file of feedback, of a response or of a
    -- validation. The most important use counts, and is never undone.
    add column rank       smallint not null default 3,
    add column failures   integer not null default 0,   -- in a row
    add column dead       boolean not null default false, -- failed for good, or too often
    add column tried_at   timestamptz,                  -- last fetch, also a failed one
    add column refresh_at timestamptz,                  -- when somebody last asked for a fetch out of turn
    add column cid        bytea;                        -- multihash of an ipfs document's CID, once read
update uris set rank = case when fetched_at is null and reason = '' then 0 else 1 end, tried_at = fetched_at
where next_due is not null or fetched_at is not null or reason <> '';
drop index uris_due;
create index uris_due on uris (host, rank, next_due) where next_due is not null;
create index uris_unplanned on uris (id) where rank = 3 and next_due is null and tried_at is null and kind <> 'empty';
create index uris_dead on uris (reason) where dead;

-- Turns in a row in which the host did not answer.
alter table hosts add column failures integer not null default 0;

alter table documents
    alter column body drop not null, -- null: dropped, the rest is kept
    add column size   integer not null default 0,
    add column keccak bytea,         -- null: not computed yet, see parsed
    add column parsed integer not null default 0; -- by which version of the parser; 0: never
update documents set size = octet_length(body);
create index documents_unparsed on documents (parsed) where body is not null;
create index documents_dropped on documents (sha256) where body is null;
create index documents_kept on documents (first_seen) include (size) where body is not null;

-- What bytes are as a file of feedback or a card; parses has what they are as a registration.
create table file_parses (
    sha256         bytea not null references documents on delete cascade,
    kind           text not null, -- feedback, card
    parser_version integer not null,
    content        jsonb not null,
    problems       jsonb not null,
    errors         integer not null, -- problems of severity error
    primary key (sha256, kind, parser_version)
);

-- The agents a registration file claims to be the file of.
create table links (
    sha256   bytea not null references documents on delete cascade,
    chain_id bigint not null,
    registry bytea not null check (length(registry) = 20),
    token_id numeric(78, 0) not null,
    primary key (sha256, chain_id, registry, token_id)
);
create index links_agent on links (chain_id, token_id, registry);

-- The domains of a registration file's endpoints, with the URI that proves each; null
-- where only the domain itself serves the file.
create table domains (
    sha256 bytea not null references documents on delete cascade,
    domain text not null,
    uri_id bigint references uris on delete cascade,
    primary key (sha256, domain)
);
create index domains_uri on domains (uri_id);

-- What the operator does not fetch, show or serve.
create table denied (
    kind    text not null check (kind in ('sha256', 'cid', 'host', 'agent')),
    value   text not null, -- lower-case hex of the hash or the CID's multihash, host, chain:token
    reason  text not null,
    created timestamptz not null default now(),
    primary key (kind, value)
);

-- +goose Down
drop table denied, domains, links, file_parses;
update uris set sha256 = null, next_due = null, fetched_at = null, source = '', etag = '', last_modified = ''
where sha256 in (select sha256 from documents where body is null);
delete from documents where body is null;
drop index documents_kept, documents_dropped, documents_unparsed;
alter table documents alter column body set not null, drop column size, drop column keccak, drop column parsed;
drop index uris_dead, uris_unplanned, uris_due;
-- Only the URIs of agents are documents to read.
update uris set next_due = null, attempts = 0, fetched_at = null, source = '', sha256 = null,
    reason = '', detail = '', etag = '', last_modified = ''
where rank > 1;
update uris set next_due = now(), attempts = 0
where rank <= 1 and uri <> '' and next_due is null and fetched_at is null and reason = '';
alter table uris drop column rank, drop column failures, drop column dead, drop column tried_at,
    drop column refresh_at, drop column cid;
create index uris_due on uris (host, next_due) where next_due is not null;
alter table hosts drop column failures;
delete from hosts;
insert into hosts select host, min(next_due) from uris where next_due is not null group by host;
