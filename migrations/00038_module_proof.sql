-- How it was shown that the program of an agent speaks for the agent's identity.
-- +goose Up
alter table modules
    add proof_kind   text not null default '', -- domain, signature, key; empty: it was not
    add proof_host   text not null default '',
    add proof_signer bytea check (length(proof_signer) = 20),
    add proof_at     timestamptz;

-- +goose Down
alter table modules drop proof_kind, drop proof_host, drop proof_signer, drop proof_at;
