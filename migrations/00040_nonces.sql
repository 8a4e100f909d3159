-- The nonce of a transaction that failed may be taken again: another one that had used it may
-- have left the chain.
-- +goose Up
alter table intents drop constraint intents_chain_id_sender_nonce_key;
create unique index intents_nonce on intents (chain_id, sender, nonce) where state <> 'failed';
create index intents_account on intents (chain_id, sender, nonce);

-- +goose Down
-- Of the failed ones that share their nonce none is needed any more.
delete from intents f where state = 'failed' and exists (
    select from intents o where o.chain_id = f.chain_id and o.sender = f.sender and o.nonce = f.nonce and o.id <> f.id and (o.state <> 'failed' or o.id > f.id));
drop index intents_nonce, intents_account;
alter table intents add unique (chain_id, sender, nonce);
