-- +goose Up

-- session is the key of an advisory lock that the holder's process holds for as long as it is
-- connected; 0 where none vouches for it, as behind a connection pooler. A lease whose session
-- has ended is free at once.
alter table leases add session bigint not null default 0;

-- +goose Down

alter table leases drop session;
