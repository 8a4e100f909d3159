-- Which blocks were read as nodes of a document's tree. Only those are decoded again:
-- the parts of a file are bytes that strangers chose, whatever CID asks for them.
-- +goose Up
alter table ipfs_blocks add column node boolean not null default true; -- nobody noted it of the blocks before
alter table ipfs_blocks alter column node set default false;

-- +goose Down
alter table ipfs_blocks drop column node;
