-- What agents are searched by: one row per document that was parsed, so that chain
-- events cost nothing here. Agents are reached by the URIs whose newest bytes it is.
-- The trigram extension comes with Postgres (package postgresql-contrib); the owner of a
-- database may create it, and it stays when this is taken back: others may use it.
-- +goose Up
create extension if not exists pg_trgm;
create table searchable (
    sha256   bytea primary key references documents on delete cascade,
    form     smallint not null, -- of this row: rows of an older form are made anew
    version  integer not null,  -- of the parser
    errors   integer not null,  -- problems of severity error
    name     text not null,     -- this and all that follows in lower case and bounded
    words    text not null,     -- everything that is searched, for parts of words
    vector   tsvector not null, -- name A; services, skills, domains, trust, tags B; description C
    services text[] not null,
    skills   text[] not null,
    domains  text[] not null,
    trust    text[] not null,
    x402     boolean,
    active   boolean
);
create index searchable_vector on searchable using gin (vector);
create index searchable_words on searchable using gin (words gin_trgm_ops);
create index searchable_name on searchable using gin (name gin_trgm_ops);
create index searchable_lists on searchable using gin (services, skills, domains, trust);
create index uris_sha256 on uris (sha256) where sha256 is not null;

-- +goose Down
drop index uris_sha256;
drop table searchable;
