-- Whom else a rater rated: one probe per rater, however much it wrote.
-- +goose Up
create index feedback_client on feedback (chain_id, client, token_id);

-- +goose Down
drop index feedback_client;
