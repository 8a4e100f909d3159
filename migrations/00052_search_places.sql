-- What else agents are searched by: a name as a whole, the places of their services, and
-- what near-identical documents share. Rows of the form before are made anew by Migrate.
-- +goose Up
alter table searchable
    add column title  text   not null default '',   -- the name in words, spelt as the index of words does
    add column places text[] not null default '{}', -- endpoints without scheme, their hosts and domains, addresses
    add column alike  bigint;                       -- equal for near-identical documents, null when there is nothing to compare
create index searchable_title on searchable (title) where title <> '';
create index searchable_places on searchable using gin (places);

-- +goose Down
drop index searchable_places, searchable_title;
alter table searchable drop column title, drop column places, drop column alike;
