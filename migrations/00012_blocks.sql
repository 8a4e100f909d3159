-- Blocks that prove ipfs documents and are not whole documents themselves: directories
-- on the way, and the parts of larger files. Their bytes were verified before they came
-- here, so a gateway can serve them by their multihash, whichever CID names it.
-- +goose Up
create table ipfs_blocks (
    multihash bytea primary key,
    data      bytea not null
);

-- Which documents a block proves: without any it is not kept.
create table document_blocks (
    sha256    bytea not null references documents on delete cascade,
    multihash bytea not null references ipfs_blocks,
    primary key (sha256, multihash)
);
create index document_blocks_multihash on document_blocks (multihash);

-- +goose Down
drop table document_blocks;
drop table ipfs_blocks;
