-- The schema. Addresses are 20 raw bytes (empty for none), hashes 32; texts that come from the
-- chain are bytea. Comments are in the database too: docs/reference/schema.md is made from them.

-- +goose Up
create extension if not exists pg_trgm;

-- The chain: what was read, and how far.

create table chains (
    chain_id        bigint      primary key check (chain_id > 0),
    name            text        not null,
    identity        bytea       not null check (length(identity) in (0, 20)),
    reputation      bytea       not null check (length(reputation) = length(identity)),
    validations     bytea[]     not null,
    gateways        bytea[]     not null default '{}',
    gateways_from   bigint[]    not null default '{}',
    treasuries      bytea[]     not null default '{}',
    treasuries_from bigint[]    not null default '{}',
    start_block     bigint      not null,
    imported        boolean     not null,
    cursor_block    bigint      not null,
    cursor_hash     bytea       not null,
    cursor_time     timestamptz,
    head_block      bigint      not null default 0,
    head_seen_at    timestamptz,
    safe_block      bigint      not null default 0,
    finalized_block bigint      not null default 0,
    reorgs          bigint      not null default 0,
    halted          boolean     not null default false,
    last_error      text        not null default '',
    writes          bigint      not null default 0,
    epoch_blocks    bigint      not null default 0 check (epoch_blocks >= 0),
    bloomless       boolean     not null default false,
    covered         int8multirange not null default '{}'
);
comment on table chains is 'The chains that are indexed, how far, and what their registries are.';
comment on column chains.identity is
    'Address of the Identity Registry; empty for a chain that is indexed for its treasuries alone.';
comment on column chains.reputation is 'Address of the Reputation Registry; empty as identity.';
comment on column chains.gateways is
    'Feedback gateways on the allow-list: their ratings belong to the payers of their tickets.';
comment on column chains.gateways_from is 'For each gateway a block at or before its deployment.';
comment on column chains.treasuries is
    'OpenFiTreasury contracts whose events are indexed. A process that sends transactions adds them.';
comment on column chains.treasuries_from is 'For each treasury the first block whose events are read.';
comment on column chains.validations is 'Addresses of the Validation Registries, none to several.';
comment on column chains.start_block is 'First block that is read: that of the registries'' deployment.';
comment on column chains.imported is
    'The events came from a file (repute import); nothing follows the chain.';
comment on column chains.cursor_block is 'Every block up to here is stored; start_block - 1 at first.';
comment on column chains.cursor_hash is 'Hash of cursor_block; empty before the first block.';
comment on column chains.cursor_time is 'Time of cursor_block; null when unknown.';
comment on column chains.head_block is 'Newest block that an endpoint reported.';
comment on column chains.safe_block is 'Newest block with the tag safe; 0 when unknown.';
comment on column chains.finalized_block is
    'Newest block that counts as final: by the tag, or by depth where the tag means nothing.';
comment on column chains.reorgs is 'Reorganizations followed so far.';
comment on column chains.halted is
    'Indexing stopped because a final block was replaced; an operator must look.';
comment on column chains.last_error is 'Why the last step failed; empty when it succeeded.';
comment on column chains.writes is
    'Raised with each write of the chain''s rows, so that a writer knows whether its copy of them is '
    'current.';
comment on column chains.epoch_blocks is 'Length in blocks of an epoch of scores; 0 while no engine has run.';
comment on column chains.bloomless is
    'The blooms of the chain''s headers lack logs of their blocks, so that no bloom excludes any.';
comment on column chains.covered is
    'Blocks whose events are stored. One range for a chain that is followed, several after imports.';

create table blocks (
    chain_id bigint,
    number   bigint,
    hash     bytea       not null,
    parent   bytea       not null,
    time     timestamptz,
    primary key (chain_id, number)
);
comment on table blocks is 'Blocks that hold events, and every block near the head.';
comment on column blocks.parent is 'Hash of the parent; empty when unknown.';
comment on column blocks.time is 'From the header; null when unknown, as for imported events.';

create table block_proofs (
    chain_id   bigint,
    from_block bigint,
    to_block   bigint         not null,
    parent     bytea          not null,
    hash       bytea          not null,
    unproven   int8multirange not null default '{}',
    reason     text           not null default '',
    loose      bigint         not null default 0,
    primary key (chain_id, from_block),
    check (to_block >= from_block)
);
comment on table block_proofs is
    'Final blocks that were compared with the chain. A row is one connected range, whose newest block '
    'follows by parents'' hashes from the newest final block.';
comment on column block_proofs.parent is 'Hash of the block before from_block.';
comment on column block_proofs.hash is 'Hash of to_block; empty when a rewind cut the range at an unproven block.';
comment on column block_proofs.unproven is 'Blocks in the range that could not be proven.';
comment on column block_proofs.reason is
    'Why the newest unproven block could not be proven; empty without one.';
comment on column block_proofs.loose is 'Newest block whose header no second host confirms; 0 without one.';

create table gaps (
    chain_id   bigint,
    kind       smallint check (kind between 1 and 20),
    subject    text,
    token_id   numeric(78, 0),
    client     bytea,
    from_block bigint        not null,
    to_block   bigint        not null,
    reason     text          not null,
    found_at   timestamptz   not null default now(),
    tries      integer       not null default 0,
    next_try   timestamptz   not null default now(),
    primary key (chain_id, kind, subject),
    check (to_block >= from_block)
);
comment on table gaps is 'Events that are known to be missing.';
comment on column gaps.kind is 'Kind of the missing event (repute.EventKind).';
comment on column gaps.subject is
    'Names the event within its kind: token/client/index, metadata key, request hash.';
comment on column gaps.token_id is 'The agent concerned; null when it is not one agent''s.';
comment on column gaps.client is 'The rater concerned; null when no feedback is.';
comment on column gaps.tries is 'Attempts to find it so far.';

create table pending (
    chain_id  bigint,
    block     bigint,
    log_index integer,
    token_id  numeric(78, 0),
    reason    text          not null check (reason in ('unknown_agent', 'index_gap', 'unknown_feedback', 'unknown_request', 'foreign_request', 'already_revoked', 'duplicate_request', 'request_mismatch', 'out_of_range', 'legacy_event', 'malformed_event')),
    primary key (chain_id, block, log_index)
);
create index pending_waiting on pending (chain_id, reason) where reason in ('unknown_agent', 'index_gap', 'unknown_feedback', 'unknown_request', 'legacy_event', 'malformed_event');
comment on table pending is
    'Stored events that could not be applied because an earlier one is missing or they cannot be read.';
comment on column pending.token_id is 'The agent concerned; null when the event cannot be read.';
comment on column pending.reason is 'Code of what is missing or wrong.';

create table endpoints (
    chain_id    bigint,
    name        text,
    owner       text,
    kind        text             not null check (kind in ('http', 'ws')),
    state       text             not null check (state in ('closed', 'open', 'half_open', 'excluded')),
    latency_ms  double precision not null,
    error_rate  double precision not null,
    requests    bigint           not null,
    failures    bigint           not null,
    rate_limit  double precision not null,
    concurrency integer          not null,
    head        bigint           not null,
    last_error  text             not null,
    last_ok_at  timestamptz,
    updated_at  timestamptz      not null,
    primary key (chain_id, name, owner)
);
comment on table endpoints is 'Health of the JSON-RPC endpoints, as each process that uses them sees it.';
comment on column endpoints.name is 'Host, never path, query or key.';
comment on column endpoints.owner is 'The process.';
comment on column endpoints.kind is 'Way to reach it: http or ws.';
comment on column endpoints.latency_ms is 'Moving average of answers, in milliseconds.';
comment on column endpoints.error_rate is 'Moving share of failed requests, 0 to 1.';
comment on column endpoints.rate_limit is 'Requests per second that are allowed; 0 for no limit.';
comment on column endpoints.concurrency is 'Requests that may run at once.';
comment on column endpoints.head is 'Newest block it reported; 0 when unknown.';
comment on column endpoints.last_error is 'Its last failure; empty without one.';

-- Events and histories.

create table events (
    chain_id  bigint,
    block     bigint,
    log_index integer,
    tx_index  integer       not null,
    kind      smallint      not null check (kind between 1 and 20),
    address   bytea         not null,
    tx_hash   bytea         not null,
    token_id  numeric(78, 0),
    topics    bytea         not null,
    data      bytea         not null,
    primary key (chain_id, block, log_index)
);
create index events_agent on events (chain_id, token_id, block, log_index)
    where token_id is not null;
create index events_upgrades on events (chain_id, block)
    where kind = 14;
comment on table events is
    'Layer 1: every event as it was received. All other tables of the index follow from this one.';
comment on column events.kind is 'Kind of event (repute.EventKind).';
comment on column events.address is 'The contract that emitted it.';
comment on column events.token_id is 'The agent concerned; null when none.';
comment on column events.topics is 'Topics, 32 bytes each, one after the other.';

create table tags (
    id    bigint generated always as identity primary key,
    hash  bytea  not null unique check (length(hash) = 32),
    value bytea  not null
);
comment on table tags is
    'Tags of feedback and validations, stored once each so that no key holds a string of foreign length.';
comment on column tags.hash is 'keccak256 of value.';

create table agent_states (
    chain_id   bigint,
    token_id   numeric(78, 0),
    from_block bigint,
    to_block   bigint,
    owner      bytea         not null,
    claimed    boolean       not null,
    wallet     bytea         not null,
    approved   bytea         not null,
    uri_id     bigint        not null,
    primary key (chain_id, token_id, from_block),
    check (to_block > from_block)
);
create index agent_states_owner on agent_states (chain_id, owner, token_id);
create index agent_states_wallet on agent_states (chain_id, wallet, token_id)
    where (wallet <> '\x') and (wallet <> owner);
comment on table agent_states is
    'Layer 2: what an agent was, by block. A row holds from from_block until before to_block.';
comment on column agent_states.to_block is 'First block in which it no longer holds; null while it does.';
comment on column agent_states.claimed is 'The owner is known from Registered alone: no Transfer was seen.';
comment on column agent_states.approved is 'Address that the ERC-721 approval names; empty for none.';

create table metadata (
    chain_id   bigint,
    token_id   numeric(78, 0),
    key_hash   bytea,
    from_block bigint,
    to_block   bigint,
    log_index  integer       not null,
    key        bytea         not null,
    value      bytea         not null,
    primary key (chain_id, token_id, key_hash, from_block),
    check (to_block > from_block)
);
create index metadata_block on metadata (chain_id, token_id, from_block, key_hash);
comment on table metadata is
    'Layer 2: on-chain metadata of agents, by block. A row holds from from_block until before to_block.';
comment on column metadata.key_hash is 'sha256 of key.';
comment on column metadata.to_block is 'First block in which it no longer holds; null while it does.';

create table operators (
    chain_id   bigint,
    owner      bytea,
    operator   bytea,
    from_block bigint,
    to_block   bigint,
    primary key (chain_id, owner, operator, from_block),
    check (to_block > from_block)
);
create index operators_operator on operators (chain_id, operator, owner)
    where to_block is null;
comment on table operators is
    'Layer 2: spans of blocks in which operator may act for every agent of owner (ERC-721 '
    'ApprovalForAll).';
comment on column operators.to_block is 'First block in which it no longer holds; null while it does.';

create table feedback (
    chain_id      bigint,
    token_id      numeric(78, 0),
    client        bytea,
    idx           bigint        check (idx > 0),
    block         bigint        not null,
    log_index     integer       not null,
    value         numeric(39, 0) not null,
    decimals      smallint      not null check (decimals >= 0 and decimals <= 18),
    tag1          bigint        not null,
    tag2          bigint        not null,
    uri_id        bigint        not null,
    endpoint      bytea         not null,
    hash          bytea         not null,
    revoked_block bigint,
    revoked_log   integer,
    payer         bytea,
    primary key (chain_id, token_id, client, idx)
);
create index feedback_block on feedback (chain_id, block);
create index feedback_client on feedback (chain_id, client, token_id);
create index feedback_newest on feedback (chain_id, token_id, block, log_index);
create index feedback_revoked on feedback (chain_id, revoked_block)
    where revoked_block is not null;
create index feedback_revoked_agent on feedback (chain_id, token_id, revoked_block)
    where revoked_block is not null;
comment on table feedback is 'Layer 2: ratings, one row each, also revoked ones.';
comment on column feedback.idx is 'Number of the rating among those of the client for the agent, from 1.';
comment on column feedback.value is 'The rating, to be divided by 10 to the power of decimals.';
comment on column feedback.tag1 is 'Row in tags.';
comment on column feedback.tag2 is 'Row in tags.';
comment on column feedback.endpoint is 'Endpoint that was rated, as the rater wrote it.';
comment on column feedback.hash is 'feedbackHash; empty for zero.';
comment on column feedback.revoked_block is 'Block of the revocation; null when not revoked.';
comment on column feedback.revoked_log is 'Index of the revocation''s log; null when not revoked.';
comment on column feedback.payer is
    'Who a rating by a feedback gateway belongs to; empty when no ticket tells, null for ratings by others.';

create table responses (
    chain_id  bigint,
    token_id  numeric(78, 0),
    client    bytea,
    idx       bigint,
    block     bigint,
    log_index integer,
    responder bytea         not null,
    uri_id    bigint        not null,
    hash      bytea         not null,
    primary key (chain_id, token_id, client, idx, block, log_index)
);
comment on table responses is 'Layer 2: responses to ratings.';
comment on column responses.idx is 'Number of the rating among those of the client for the agent.';
comment on column responses.hash is 'responseHash; empty for zero.';

create table validation_requests (
    chain_id     bigint,
    contract     bytea,
    request_hash bytea,
    token_id     numeric(78, 0) not null,
    validator    bytea         not null,
    uri_id       bigint        not null,
    block        bigint        not null,
    log_index    integer       not null,
    primary key (chain_id, contract, request_hash)
);
create index validation_requests_agent on validation_requests (chain_id, token_id, block, log_index);
create index validation_requests_validator on validation_requests (chain_id, validator, block, log_index);
comment on table validation_requests is 'Layer 2: requests for a validation.';
comment on column validation_requests.contract is 'The Validation Registry that holds it.';

create table validation_responses (
    chain_id     bigint,
    contract     bytea,
    request_hash bytea,
    block        bigint,
    log_index    integer,
    response     smallint not null check (response >= 0 and response <= 100),
    uri_id       bigint   not null,
    hash         bytea    not null,
    tag          bigint   not null,
    primary key (chain_id, contract, request_hash, block, log_index)
);
comment on table validation_responses is 'Layer 2: answers of validators.';
comment on column validation_responses.response is '0 to 100.';
comment on column validation_responses.hash is 'responseHash; empty for zero.';
comment on column validation_responses.tag is 'Row in tags.';

create table agents (
    chain_id         bigint,
    token_id         numeric(78, 0),
    owner            bytea         not null,
    claimed          boolean       not null,
    wallet           bytea         not null,
    approved         bytea         not null,
    uri_id           bigint        not null,
    registered_block bigint        not null,
    registered_log   integer       not null,
    updated_block    bigint        not null,
    updated_log      integer       not null,
    feedback         bigint        not null default 0,
    revoked          bigint        not null default 0,
    clients          bigint        not null default 0,
    responses        bigint        not null default 0,
    validations      bigint        not null default 0,
    primary key (chain_id, token_id)
);
create index agents_approved on agents (chain_id, approved, token_id)
    where approved <> '\x';
create index agents_clients on agents (chain_id, clients, token_id);
create index agents_feedback on agents (chain_id, feedback, token_id);
create index agents_owner on agents (chain_id, owner, token_id);
create index agents_registered on agents (chain_id, registered_block);
create index agents_updated on agents (chain_id, updated_block, token_id);
create index agents_uri on agents (uri_id, chain_id, token_id);
create index agents_wallet on agents (chain_id, wallet, token_id)
    where wallet <> '\x';
comment on table agents is
    'Layer 3: agents as they are now; computed again from the histories after a rewind.';
comment on column agents.claimed is 'The owner is known from Registered alone: no Transfer was seen.';
comment on column agents.wallet is 'The agent''s wallet; empty when cleared.';
comment on column agents.approved is 'Address that the ERC-721 approval names; empty for none.';
comment on column agents.feedback is 'Ratings that are not revoked.';
comment on column agents.revoked is 'Revoked ratings.';
comment on column agents.clients is 'Clients with a rating that is not revoked.';
comment on column agents.validations is 'Answered validations in contracts on the allow-list.';

create table sums (
    chain_id bigint,
    token_id numeric(78, 0),
    client   bytea,
    tag1     bigint,
    tag2     bigint,
    decimals smallint,
    n        bigint        not null check (n > 0),
    sum      numeric       not null,
    primary key (chain_id, token_id, client, tag1, tag2, decimals)
);
create index sums_tags on sums (chain_id, tag1, client, tag2);
comment on table sums is
    'Layer 3: ratings that are not revoked added up per client, tags and decimals, so that getSummary '
    'reads no rows of feedback.';
comment on column sums.n is 'Number of ratings.';
comment on column sums.sum is 'Sum of their values, undivided.';

create table votes (
    chain_id bigint,
    token_id numeric(78, 0),
    tag1     bigint,
    client   bytea,
    idx      bigint        not null,
    value    numeric(39, 0) not null,
    decimals smallint      not null,
    primary key (chain_id, token_id, tag1, client)
);
comment on table votes is 'Layer 3: the latest rating of a client that is not revoked, per tag1.';

create table agent_sums (
    chain_id bigint,
    token_id numeric(78, 0),
    tag1     bigint,
    tag2     bigint,
    decimals smallint,
    n        bigint        not null check (n > 0),
    sum      numeric       not null,
    primary key (chain_id, token_id, tag1, tag2, decimals)
);
comment on table agent_sums is
    'Layer 3: the rows of sums added up over all clients, so that a summary of an agent with many ratings reads '
    'as many rows as that of one with few. The triggers of sums write it.';
comment on column agent_sums.n is 'Number of ratings.';
comment on column agent_sums.sum is 'Sum of their values, undivided.';

create table agent_votes (
    chain_id bigint,
    token_id numeric(78, 0),
    tag1     bigint,
    value    numeric(39, 0),
    decimals smallint,
    n        bigint        not null check (n > 0),
    primary key (chain_id, token_id, tag1, value, decimals)
);
comment on table agent_votes is
    'Layer 3: the rows of votes counted by their value, of which medians and means follow. The triggers of votes '
    'write it.';
comment on column agent_votes.n is 'Number of clients whose vote it is.';

-- Both functions add new rows before they take old ones out, so that no count is ever negative.

-- +goose StatementBegin
create function sums_changed() returns trigger language plpgsql as $$
begin
    if tg_op <> 'DELETE' then
        insert into agent_sums as a
        select chain_id, token_id, tag1, tag2, decimals, sum(n), sum(sum) from added group by 1, 2, 3, 4, 5 order by 1, 2
        on conflict (chain_id, token_id, tag1, tag2, decimals) do update set n = a.n + excluded.n, sum = a.sum + excluded.sum;
    end if;
    if tg_op <> 'INSERT' then
        with r as (
            select chain_id, token_id, tag1, tag2, decimals, sum(n) as n, sum(sum) as sum from removed group by 1, 2, 3, 4, 5
        ), gone as (
            delete from agent_sums a using r where (a.chain_id, a.token_id, a.tag1, a.tag2, a.decimals) =
                (r.chain_id, r.token_id, r.tag1, r.tag2, r.decimals) and a.n = r.n
        )
        update agent_sums a set n = a.n - r.n, sum = a.sum - r.sum from r
        where (a.chain_id, a.token_id, a.tag1, a.tag2, a.decimals) =
            (r.chain_id, r.token_id, r.tag1, r.tag2, r.decimals) and a.n <> r.n;
    end if;
    return null;
end $$;
-- +goose StatementEnd
-- +goose StatementBegin
create function votes_changed() returns trigger language plpgsql as $$
begin
    if tg_op <> 'DELETE' then
        insert into agent_votes as a
        select chain_id, token_id, tag1, value, decimals, count(*) from added group by 1, 2, 3, 4, 5 order by 1, 2
        on conflict (chain_id, token_id, tag1, value, decimals) do update set n = a.n + excluded.n;
    end if;
    if tg_op <> 'INSERT' then
        with r as (
            select chain_id, token_id, tag1, value, decimals, count(*) as n from removed group by 1, 2, 3, 4, 5
        ), gone as (
            delete from agent_votes a using r where (a.chain_id, a.token_id, a.tag1, a.value, a.decimals) =
                (r.chain_id, r.token_id, r.tag1, r.value, r.decimals) and a.n = r.n
        )
        update agent_votes a set n = a.n - r.n from r
        where (a.chain_id, a.token_id, a.tag1, a.value, a.decimals) =
            (r.chain_id, r.token_id, r.tag1, r.value, r.decimals) and a.n <> r.n;
    end if;
    return null;
end $$;
-- +goose StatementEnd
create trigger added after insert on sums referencing new table as added
    for each statement execute function sums_changed();
create trigger changed after update on sums referencing new table as added old table as removed
    for each statement execute function sums_changed();
create trigger removed after delete on sums referencing old table as removed
    for each statement execute function sums_changed();
create trigger added after insert on votes referencing new table as added
    for each statement execute function votes_changed();
create trigger changed after update on votes referencing new table as added old table as removed
    for each statement execute function votes_changed();
create trigger removed after delete on votes referencing old table as removed
    for each statement execute function votes_changed();

create table hours (
    chain_id bigint,
    series   smallint       check (series between 1 and 3),
    token_id numeric(78, 0),
    hour     bigint,
    oldest   bigint         not null,
    began    bigint         not null,
    ended    bigint         not null,
    sum      numeric        not null,
    net      numeric        not null,
    primary key (chain_id, series, token_id, hour),
    check (began >= 0 and ended >= 0 and began + ended > 0)
);
create index hours_oldest on hours (chain_id, series, hour, oldest);
comment on table hours is
    'Layer 3: what happened in each hour, for each agent and for the whole chain. Series by hour or day add the hours up. '
    'An hour without events has no row.';
comment on column hours.series is
    '1: registrations, of the whole chain alone. 2: ratings. 3: validations of contracts on the allow-list.';
comment on column hours.token_id is '-1 for the whole chain.';
comment on column hours.hour is
    'By the time of the block, in hours since 1970; 0 where that time is unknown, as for imported events.';
comment on column hours.oldest is 'Its oldest event: number of the block times 1,000,000, plus index of the log.';
comment on column hours.began is 'Registrations, ratings, or requests of validations.';
comment on column hours.ended is 'Revocations of ratings, or answers to requests.';
comment on column hours.sum is 'Of the values of ratings, or of answers.';
comment on column hours.net is 'Of the values of ratings, less those of the ratings revoked in the hour.';

create table changes (
    seq        bigint        generated always as identity primary key,
    xid        xid8          not null default pg_current_xact_id(),
    chain_id   bigint        not null,
    kind       text          not null check (kind in ('agent.transferred', 'agent.registered', 'agent.uri', 'agent.wallet', 'agent.metadata', 'agent.approval', 'operator', 'feedback.given', 'feedback.revoked', 'response.appended', 'validation.requested', 'validation.responded', 'backfilled', 'rewound', 'retracted', 'repaired', 'document.updated', 'proof.updated', 'manifest.updated', 'payment.checked', 'score.changed')),
    block      bigint        not null,
    log_index  integer       not null,
    token_id   numeric(78, 0),
    data       jsonb         not null,
    retracts   bigint,
    created_at timestamptz   not null default now()
);
create index changes_block on changes (chain_id, block);
create index changes_order on changes (xid, seq);
comment on table changes is
    'The change feed: visible changes, written in the transaction that makes them. Readers order by '
    '(xid, seq), below the oldest open transaction.';
comment on column changes.xid is 'The transaction that wrote it.';
comment on column changes.kind is 'What changed.';
comment on column changes.token_id is 'The agent concerned; null when none.';
comment on column changes.retracts is
    'seq of the change that this one takes back after a reorganization; null for all others.';

-- Documents.

create table uris (
    id            bigint      generated always as identity primary key,
    hash          bytea       not null unique check (length(hash) = 32),
    uri           bytea       not null,
    kind          text        not null check (kind in ('empty', 'data', 'json', 'https', 'http', 'ipfs', 'unsupported')),
    host          text        not null,
    next_due      timestamptz,
    attempts      integer     not null default 0,
    fetched_at    timestamptz,
    source        text        not null default '' check (source in ('', 'data', 'inline', 'https', 'ipfs')),
    sha256        bytea,
    reason        text        not null default '' check (reason in ('', 'empty', 'unsupported_scheme', 'not_a_uri', 'bad_url', 'http_disabled', 'blocked_host', 'blocked_port', 'bad_data_uri', 'bad_base64', 'bad_cid', 'bad_gzip', 'unsupported_encoding', 'too_large', 'ratio', 'blocked_address', 'dns', 'network', 'timeout', 'too_slow', 'tls', 'redirects', 'not_found', 'http_status', 'no_gateway', 'gateway', 'cid_mismatch', 'bad_dag', 'directory', 'denied', 'internal')),
    detail        text        not null default '',
    etag          text        not null default '',
    last_modified text        not null default '',
    rank          smallint    not null default 3 check (rank between 0 and 3),
    failures      integer     not null default 0,
    dead          boolean     not null default false,
    tried_at      timestamptz,
    refresh_at    timestamptz,
    cid           bytea,
    served_by     text,
    gone          boolean     not null default false,
    overgrown     boolean     not null default false
);
create index uris_dead on uris (reason) where dead;
create index uris_due on uris (host, rank, next_due)
    where next_due is not null;
create index uris_overgrown on uris (id)
    where overgrown;
create index uris_sha256 on uris (sha256)
    where sha256 is not null;
create index uris_unplanned on uris (id)
    where (rank = 3) and (next_due is null) and (tried_at is null) and (kind <> 'empty');
comment on table uris is 'URIs that the chain named, and the state of fetching each.';
comment on column uris.hash is 'sha256 of uri.';
comment on column uris.kind is 'Form of the URI: data, json, https, http, ipfs, empty or unsupported.';
comment on column uris.host is 'Queue it waits in; empty for what needs no network.';
comment on column uris.next_due is 'When it is fetched next; null when nothing is planned.';
comment on column uris.attempts is 'Fetches so far.';
comment on column uris.source is 'Where the newest bytes came from.';
comment on column uris.sha256 is 'The newest bytes; null when none were ever read.';
comment on column uris.reason is 'Code of the last failure; empty after a success.';
comment on column uris.detail is 'Text of the last failure.';
comment on column uris.rank is
    'Order of the queue: 0 an agent''s file that was never read, 1 an agent''s file, 2 the proof of a '
    'domain, 3 a file of feedback, of a response or of a validation. The lowest use counts.';
comment on column uris.failures is 'Failures in a row.';
comment on column uris.dead is 'It failed permanently or too often, and is not retried.';
comment on column uris.tried_at is 'Last fetch, also a failed one.';
comment on column uris.refresh_at is 'When a refresh was last requested.';
comment on column uris.cid is 'Multihash of an ipfs document''s CID, once read.';
comment on column uris.served_by is
    'Host that answered in the end over HTTP(S), in canonical form; null for none, or when not known.';
comment on column uris.gone is 'The host answered that there is no such file, and it was not read since.';
comment on column uris.overgrown is 'It has more fetches than are kept.';

create table hosts (
    host       text        primary key,
    due_at     timestamptz not null,
    failures   integer     not null default 0,
    rank       smallint    not null default 0 check (rank between 0 and 3),
    rest_until timestamptz,
    claimed_until timestamptz,
    arrived    boolean     not null default false
);
create index hosts_due on hosts (rank, due_at);
comment on table hosts is
    'The queue of documents by host: one row per host with planned documents.';
comment on column hosts.due_at is
    'When the host may be claimed next: not after the earliest next_due of its URIs, except until a backoff ends.';
comment on column hosts.claimed_until is
    'End of the claim of the worker that fetches from the host; null when none does.';
comment on column hosts.arrived is
    'A document became due during the present claim, so that a backoff ends with rest_until.';
comment on column hosts.failures is 'Claims in a row in which it did not answer.';
comment on column hosts.rank is 'Rank of its first document due, as in uris.';
comment on column hosts.rest_until is 'End of its backoff, which new documents cannot shorten; null without one.';

create table fetches (
    uri_id     bigint      references uris on delete cascade,
    fetched_at timestamptz,
    sha256     bytea,
    source     text        not null check (source in ('', 'data', 'inline', 'https', 'ipfs')),
    reason     text        not null check (reason in ('', 'empty', 'unsupported_scheme', 'not_a_uri', 'bad_url', 'http_disabled', 'blocked_host', 'blocked_port', 'bad_data_uri', 'bad_base64', 'bad_cid', 'bad_gzip', 'unsupported_encoding', 'too_large', 'ratio', 'blocked_address', 'dns', 'network', 'timeout', 'too_slow', 'tls', 'redirects', 'not_found', 'http_status', 'no_gateway', 'gateway', 'cid_mismatch', 'bad_dag', 'directory', 'denied', 'internal')),
    primary key (uri_id, fetched_at)
);
create index fetches_sha256 on fetches (sha256)
    where sha256 is not null;
comment on table fetches is 'Fetches of a URI, the newest few.';
comment on column fetches.sha256 is 'The bytes that were read; null after a failure.';
comment on column fetches.source is 'Where the bytes were read; empty after a failure.';
comment on column fetches.reason is 'Code of the failure; empty after a success.';

create table documents (
    sha256     bytea       primary key check (length(sha256) = 32),
    body       bytea,
    media_type text        not null,
    first_seen timestamptz not null,
    size       integer     not null default 0,
    keccak     bytea,
    parsed     integer     not null default 0,
    roots      bytea[]     not null default '{}'
);
create index documents_dropped on documents (sha256)
    where body is null;
create index documents_kept on documents (first_seen) include (size)
    where body is not null;
create index documents_roots on documents using gin (roots);
create index documents_unparsed on documents (parsed)
    where body is not null;
comment on table documents is 'Bytes that were fetched, by their sha256.';
comment on column documents.body is 'The bytes; null once dropped.';
comment on column documents.size is 'Length of the bytes, kept when they are dropped.';
comment on column documents.keccak is 'keccak256 of the bytes; null until computed.';
comment on column documents.parsed is 'Version of the parser that read them last; 0 for never.';
comment on column documents.roots is
    'Multihashes of ipfs files that are these bytes, besides their own sha256. They outlive the blocks, so '
    'that what is denied by its CID stays denied.';

create table parses (
    sha256         bytea   references documents on delete cascade,
    kind           text    check (kind in ('registration', 'feedback', 'card')),
    parser_version integer,
    content        jsonb   not null,
    problems       jsonb   not null,
    errors         integer not null,
    primary key (sha256, kind, parser_version)
);
create index parses_scaled on parses (sha256)
    where kind = 'feedback' and jsonb_typeof(content->'Scale') = 'object';
comment on table parses is
    'What the bytes are as a registration file, as a file of feedback, or as an agent card.';
comment on column parses.content is 'What was read of the file; null in JSON where nothing could be.';
comment on column parses.errors is 'Number of problems of severity error.';

create table links (
    sha256   bytea         references documents on delete cascade,
    chain_id bigint,
    registry bytea         check (length(registry) = 20),
    token_id numeric(78, 0),
    primary key (sha256, chain_id, registry, token_id)
);
create index links_agent on links (chain_id, token_id, registry);
comment on table links is 'Agents that a registration file claims to be the file of.';

create table domains (
    sha256 bytea  references documents on delete cascade,
    domain text,
    uri_id bigint references uris on delete cascade,
    primary key (sha256, domain)
);
create index domains_domain on domains (domain);
create index domains_uri on domains (uri_id);
comment on table domains is 'Domains of a registration file''s endpoints.';
comment on column domains.uri_id is
    'The URI whose file proves the domain; null where only the domain itself serves the file.';

create table denied (
    kind    text        check (kind in ('sha256', 'cid', 'host', 'agent')),
    value   text,
    reason  text        not null,
    created timestamptz not null default now(),
    primary key (kind, value)
);
comment on table denied is 'The deny-list: what is not fetched, shown or served.';
comment on column denied.value is
    'Lower-case hex of the hash or of the CID''s multihash, a host, or chain:token.';

create table ipfs_blocks (
    multihash bytea   primary key,
    data      bytea   not null,
    node      boolean not null default false
);
comment on table ipfs_blocks is
    'Blocks that prove ipfs documents and are not whole documents themselves: directories, and parts of '
    'larger files.';
comment on column ipfs_blocks.node is
    'It was decoded as a node of a document''s tree; only such blocks are decoded again.';

create table document_blocks (
    sha256    bytea references documents on delete cascade,
    multihash bytea references ipfs_blocks,
    primary key (sha256, multihash)
);
create index document_blocks_multihash on document_blocks (multihash);
comment on table document_blocks is 'Documents that a block proves. A block that proves none is deleted.';

create table manifests (
    domain        text        primary key check (length(domain) between 1 and 253),
    listed        boolean     not null default false,
    state         text        not null default 'pending' check (state in ('pending', 'ok', 'invalid', 'other', 'missing', 'refused', 'denied', 'failed')),
    due_at        timestamptz not null default now(),
    claimed_until timestamptz,
    failures      integer     not null default 0,
    checked_at    timestamptz,
    fetched_at    timestamptz,
    verified_at   timestamptz,
    reason        text        not null default '' check (reason in ('', 'empty', 'unsupported_scheme', 'not_a_uri', 'bad_url', 'http_disabled', 'blocked_host', 'blocked_port', 'bad_data_uri', 'bad_base64', 'bad_cid', 'bad_gzip', 'unsupported_encoding', 'too_large', 'ratio', 'blocked_address', 'dns', 'network', 'timeout', 'too_slow', 'tls', 'redirects', 'not_found', 'http_status', 'no_gateway', 'gateway', 'cid_mismatch', 'bad_dag', 'directory', 'denied', 'internal', 'robots')),
    detail        text        not null default '',
    url           text        not null default '',
    etag          text        not null default '',
    last_modified text        not null default '',
    body          bytea,
    sha256        bytea       check (length(sha256) = 32),
    parser        integer     not null default 0,
    format        text        not null default '' check (format in ('', 'agent-json', 'a2a-card', 'agent-web-protocol', 'agent-identity-kit', 'agent-manifest-specification', 'acp-registry', 'agent-router', 'agent-json-facts', 'unknown')),
    title         text        not null default '',
    payout        bytea       check (length(payout) = 20),
    declared      smallint    not null default 0 check (declared between 0 and 4),
    verified      smallint    not null default 0 check (verified between 0 and 4),
    verdict       jsonb       not null default '{}',
    errors        integer     not null default 0,
    warnings      integer     not null default 0,
    robots        text[]      not null default '{}',
    robots_until  timestamptz,
    latencies     integer[]   not null default '{}' check (cardinality(latencies) <= 200),
    watched_at    timestamptz,
    down_ms       bigint      not null default 0 check (down_ms >= 0),
    probed        boolean     not null default false,
    probe_failed_at timestamptz,
    intents_xid   xid8        not null default pg_current_xact_id(),
    check ((body is null) = (sha256 is null))
);
create index manifests_due on manifests (due_at);
create index manifests_intents_xid on manifests (intents_xid);
create index manifests_verified on manifests (verified desc, domain)
    where state = 'ok';
create index manifests_payout on manifests (payout)
    where payout is not null;
comment on table manifests is
    'What domains publish as agent.json, and the state of fetching it. Its links to agents are computed when they are '
    'read, because owners, wallets and registration files change.';
comment on column manifests.domain is 'The host in lower case, in ASCII as DNS has it, without a port.';
comment on column manifests.listed is 'An operator imported it; false for a domain that an agent''s file names.';
comment on column manifests.state is
    'pending: never asked; ok; invalid: a manifest with errors; other: another format; missing: the domain says that '
    'there is none; refused: robots.txt forbids to ask; denied: the deny-list does; failed: never read, or not read for '
    'a week.';
comment on column manifests.due_at is 'When it is asked next, unless its host rests until later (hosts.rest_until).';
comment on column manifests.claimed_until is 'End of the claim of the worker that asks; null when none does.';
comment on column manifests.failures is 'Checks in a row without an answer.';
comment on column manifests.checked_at is 'Last check, also a failed one.';
comment on column manifests.fetched_at is 'When the domain last served body, or said that it still does.';
comment on column manifests.verified_at is 'When verdict was last made from all documents that it needs.';
comment on column manifests.reason is 'Code of the last check''s failure, as in uris, or robots; empty after a success.';
comment on column manifests.detail is 'Text of the last failure.';
comment on column manifests.url is 'Of the two places the one that served body.';
comment on column manifests.body is 'The bytes; null when there are none.';
comment on column manifests.parser is 'Version of the parser that read body.';
comment on column manifests.format is 'What body is; empty without one.';
comment on column manifests.title is 'The display name.';
comment on column manifests.payout is 'The payout address; null where it is none of an EVM chain.';
comment on column manifests.latencies is
    'Microseconds that the host took to answer the last requests for the manifest, or the last probes, the newest last; '
    'empty unless the manifest has a commitment that can be measured.';
comment on column manifests.watched_at is
    'Since when latencies and down_ms are measured; null where no commitment can be.';
comment on column manifests.down_ms is
    'The time between checks in a row at which the host, or the probed endpoint, did not answer, since watched_at.';
comment on column manifests.probed is
    'An operator lets checks ask an endpoint of the manifest for its header; commitments are compared with that.';
comment on column manifests.probe_failed_at is 'The last probe, where it failed; null after an answer.';
comment on column manifests.declared is 'The tier that it claims: 0 none, 1, 2, 3, 4 for 3+.';
comment on column manifests.verified is 'The tier that is proven: 0 none, 1, 2, 3, 4 for 3+.';
comment on column manifests.verdict is 'What is proven of identity and signatures, and why the rest is not.';
comment on column manifests.errors is 'Number of problems of severity error.';
comment on column manifests.warnings is 'Number of problems of severity warning.';
comment on column manifests.robots is 'Paths that robots.txt forbids.';
comment on column manifests.robots_until is 'When robots.txt is read again; null when it was never read.';
comment on column manifests.intents_xid is
    'Transaction that last wrote or removed its intents, for readers that keep an index of them.';

create table manifest_intents (
    domain      text     references manifests on delete cascade,
    name        text,
    position    integer  not null,
    description text     not null,
    method      text     not null,
    url         text     not null,
    parameters  text[]   not null,
    price       numeric,
    protocols   text[]   not null,
    networks    text[]   not null,
    terms       jsonb    not null,
    words       text     not null,
    vector      tsvector not null,
    embedding   bytea,
    model       text     not null default '',
    primary key (domain, name)
);
create index manifest_intents_vector on manifest_intents using gin (vector);
create index manifest_intents_words on manifest_intents using gin (words gin_trgm_ops);
create index manifest_intents_price on manifest_intents (domain, price) where price is not null;
comment on table manifest_intents is 'The intents of manifests whose state is ok.';
comment on column manifest_intents.position is 'Place in the manifest, from 0.';
comment on column manifest_intents.url is 'The address to call; empty where the manifest gives none of its own origin.';
comment on column manifest_intents.price is
    'The lowest price of one unit in USD or a coin of one USD; null where only the service''s answer tells.';
comment on column manifest_intents.protocols is 'Payment protocols.';
comment on column manifest_intents.networks is 'Networks of the ways to pay and of the price.';
comment on column manifest_intents.terms is 'How it is paid, all overrides resolved.';
comment on column manifest_intents.words is 'All that is searched, for similar spellings.';
comment on column manifest_intents.vector is 'Name with weight A, description B, parameters C.';
comment on column manifest_intents.embedding is 'The meaning as a vector of a model; null until computed.';
comment on column manifest_intents.model is 'The model that made embedding; empty for none.';

create table searchable (
    sha256   bytea    primary key references documents on delete cascade,
    form     smallint not null,
    version  integer  not null,
    errors   integer  not null,
    name     text     not null,
    words    text     not null,
    vector   tsvector not null,
    services text[]   not null,
    skills   text[]   not null,
    domains  text[]   not null,
    trust    text[]   not null,
    x402     boolean,
    active   boolean,
    title    text     not null default '',
    places   text[]   not null default '{}',
    alike    bigint
);
create index searchable_lists on searchable using gin (services, skills, domains, trust);
create index searchable_name on searchable using gin (name gin_trgm_ops);
create index searchable_places on searchable using gin (places);
create index searchable_title on searchable (title)
    where title <> '';
create index searchable_vector on searchable using gin (vector);
create index searchable_words on searchable using gin (words gin_trgm_ops);
comment on table searchable is
    'What agents are searched by: one row per parsed document, reached through the URIs whose newest '
    'bytes it is.';
comment on column searchable.form is 'Version of this row''s layout; rows of an older one are made anew.';
comment on column searchable.version is 'Version of the parser.';
comment on column searchable.errors is 'Number of problems of severity error.';
comment on column searchable.name is 'In lower case and bounded, as all texts here.';
comment on column searchable.words is 'All that is searched, for parts of words.';
comment on column searchable.vector is
    'Name with weight A; services, skills, domains, trust models and tags B; description C.';
comment on column searchable.x402 is 'Whether it declares x402 support; null when it does not say.';
comment on column searchable.active is 'Whether it declares itself active; null when it does not say.';
comment on column searchable.title is 'The name in words, spelt as the index of words does.';
comment on column searchable.places is 'Endpoints without scheme, their hosts and domains, and addresses.';
comment on column searchable.alike is
    'Equal for near-identical documents; null when there is nothing to compare.';

-- Trust.

create table trust_runs (
    chain_id      bigint,
    run           bigint        check (run > 0),
    epoch         bigint        not null,
    boundary      bigint        not null,
    block         bigint        not null,
    block_hash    bytea         not null,
    block_time    timestamptz,
    scorer        text          not null,
    params        bytea         not null,
    tags          bytea         not null,
    roots         bytea         not null,
    links         bytea         not null,
    weights       bytea         not null,
    identities    bigint        not null,
    edges         bigint        not null,
    started_at    timestamptz   not null default now(),
    closed_at     timestamptz,
    repaired      bigint        not null default 0,
    unjudged_low  integer,
    unjudged_high integer,
    unjudged      text,
    validations   bytea         not null default '\x',
    sources       bytea         not null default '\x',
    credentials   bytea         not null default '\x',
    file_scales   bytea         not null default '\x',
    gateways      bytea         not null default '\x',
    readings      text          not null default '',
    verified_to   bigint        not null default 0,
    scored_to     numeric(78, 0),
    passes        bigint        not null default 0,
    coverage      jsonb         not null default '{}',
    rated         bigint,
    thin          bigint,
    primary key (chain_id, run)
);
comment on table trust_runs is
    'Walks over a chain''s graph of trust: one for each epoch, one more where roots, links or parameters '
    'changed within it.';
comment on column trust_runs.coverage is 'How many ratings, raters and agents count, and why others do not.';
comment on column trust_runs.rated is 'Agents with the status rated when the run was closed.';
comment on column trust_runs.thin is 'Agents with the status thin when the run was closed.';
comment on column trust_runs.run is '1, 2, … per chain.';
comment on column trust_runs.boundary is 'Last block of the epoch.';
comment on column trust_runs.block is 'Newest block with an event, up to boundary.';
comment on column trust_runs.block_hash is 'Empty when there is no such block.';
comment on column trust_runs.scorer is 'Version of the engine.';
comment on column trust_runs.params is 'sha256 of the parameters, kept in trust_inputs.';
comment on column trust_runs.tags is 'sha256 of the list of tags, kept in trust_inputs.';
comment on column trust_runs.roots is 'sha256 of the roots, kept in trust_inputs.';
comment on column trust_runs.links is 'sha256 of the links, kept in trust_inputs.';
comment on column trust_runs.weights is 'sha256 of graph and weights.';
comment on column trust_runs.closed_at is 'When every agent had its final score; null until then.';
comment on column trust_runs.repaired is
    'The mark of events found late that the run followed; 0 for none.';
comment on column trust_runs.unjudged_low is
    'Low end of the score of an agent that nobody judged, in thousandths of a point.';
comment on column trust_runs.unjudged_high is
    'High end of the score of an agent that nobody judged, in thousandths of a point.';
comment on column trust_runs.unjudged is 'The result of an agent that nobody judged, as canonical JSON.';
comment on column trust_runs.validations is
    'sha256 of the list of validation contracts, kept in trust_inputs.';
comment on column trust_runs.sources is
    'sha256 of the policy of sources, kept in trust_inputs; empty where no source was asked.';
comment on column trust_runs.credentials is 'sha256 of what sources say of raters, kept in trust_inputs.';
comment on column trust_runs.file_scales is
    'sha256 of the scales that files of feedback name, kept in trust_inputs; empty where none does.';
comment on column trust_runs.gateways is
    'sha256 of the list of feedback gateways, kept in trust_inputs; empty when no gateway was listed.';
comment on column trust_runs.readings is
    'How the reading of each source went, as canonical JSON; empty where none was asked.';
comment on column trust_runs.verified_to is
    'Block up to which every block from the start on was proven when the run began; 0 for none.';
comment on column trust_runs.scored_to is
    'The pass over all agents has scored them up to this one; -1 for none, null for all.';
comment on column trust_runs.passes is 'How often a pass over all agents was begun.';

create table trust_scores (
    chain_id   bigint,
    token_id   numeric(78, 0),
    run        bigint        not null,
    block      bigint        not null,
    block_hash bytea         not null,
    block_time timestamptz,
    evidence   bytea         not null,
    status     text          not null check (status in ('rated', 'thin', 'unrated')),
    score      integer       not null,
    low        integer       not null,
    high       integer       not null,
    mean       integer       not null,
    confidence integer       not null,
    tier       smallint      not null,
    result     bytea         not null,
    facts      bytea         not null default '\x',
    touched    bigint        not null default 0,
    primary key (chain_id, token_id)
);
create index trust_scores_block on trust_scores (chain_id, block);
create index trust_scores_touched on trust_scores (chain_id, touched)
    where touched > 0;
create index trust_scores_evidence on trust_scores (evidence);
create index trust_scores_order on trust_scores (chain_id, score, token_id, tier, status);
comment on table trust_scores is 'The newest score of every agent that has or had ratings.';
comment on column trust_scores.block is 'Block of the newest event that it follows from, or of the run.';
comment on column trust_scores.block_hash is
    'Empty where a reorganization removed the block: nobody sees the score until it is computed again.';
comment on column trust_scores.evidence is 'sha256 of the manifest of evidence.';
comment on column trust_scores.status is 'rated: there is enough to give a score; thin: little; unrated: next to nothing, and the score is 0.';
comment on column trust_scores.score is 'Thousandths of a point.';
comment on column trust_scores.low is 'Thousandths of a point.';
comment on column trust_scores.high is 'Thousandths of a point.';
comment on column trust_scores.mean is 'Thousandths of a point.';
comment on column trust_scores.confidence is 'Millionths.';
comment on column trust_scores.tier is '0 to 4: what the agent may be trusted with.';
comment on column trust_scores.result is 'The result with its reasons, encoded.';
comment on column trust_scores.facts is 'Digest of what does not change by age alone.';
comment on column trust_scores.touched is
    'The newest run in which a score of the agent was stored otherwise than by the pass over all agents; 0 for none.';

create table trust_finals (
    chain_id   bigint,
    token_id   numeric(78, 0),
    run        bigint,
    evidence   bytea         not null,
    status     text          not null check (status in ('rated', 'thin', 'unrated')),
    score      integer       not null,
    low        integer       not null,
    high       integer       not null,
    mean       integer       not null,
    confidence integer       not null,
    tier       smallint      not null,
    facts      bytea         not null,
    result     bytea         not null,
    guarded    boolean       not null default false,
    primary key (chain_id, token_id, run)
);
create index trust_finals_evidence on trust_finals (evidence);
create index trust_finals_run on trust_finals (chain_id, run);
comment on table trust_finals is
    'Final scores: a row for each run that changed one. Columns as in trust_scores.';
comment on column trust_finals.facts is 'Digest of what does not change by age alone.';
comment on column trust_finals.guarded is 'It is limited by a penalty of a related agent.';

create table trust_stale (
    chain_id bigint,
    token_id numeric(78, 0),
    cause    smallint      not null check (cause in (0, 1)),
    final    boolean       not null,
    since    timestamptz   not null default now(),
    mark     bigint        generated always as identity,
    claimed  timestamptz   not null default '-infinity',
    primary key (chain_id, token_id)
);
create index trust_stale_final on trust_stale (chain_id) where final;
create index trust_stale_cause on trust_stale (chain_id, cause, since);
comment on table trust_stale is 'Agents whose scores must be computed again.';
comment on column trust_stale.cause is '0: an event; 1: a run began.';
comment on column trust_stale.final is 'Whether the final score must be computed too.';
comment on column trust_stale.mark is 'Another number each time the agent is marked.';
comment on column trust_stale.claimed is 'End of the claim of the process that computes it.';

create table trust_marks (
    id         bigint        generated always as identity,
    chain_id   bigint,
    token_id   numeric(78, 0),
    owner      bytea,
    from_block bigint,
    to_block   bigint,
    late       boolean       not null default false,
    every      boolean       not null default false,
    primary key (chain_id, id),
    check (num_nonnulls(token_id, owner, from_block) + (late or every)::integer = 1),
    check ((from_block is null) = (to_block is null))
);
comment on table trust_marks is
    'Changes that scores follow from, as their writers recorded them. The trust engine takes them away and marks '
    'the agents concerned in trust_stale. A row is for one agent, for the agents of one owner, for those that '
    'events of a range of blocks name, or for all.';
comment on column trust_marks.owner is 'An address for whose agents others may act from now on, or no longer.';
comment on column trust_marks.late is 'Events were found late: final scores must be computed by another run.';
comment on column trust_marks.every is 'Any agent may have changed.';

create table trust_roots (
    chain_id   bigint,
    set_name   text,
    address    bytea,
    weight     bigint      not null check (weight > 0),
    class      text        not null default '' check (class in ('', 'B')),
    rules      text        not null default '',
    reason     text        not null,
    expires_at timestamptz,
    created_at timestamptz not null default now(),
    primary key (chain_id, set_name, address)
);
comment on table trust_roots is 'Addresses that are trusted by configuration, in named sets.';
comment on column trust_roots.set_name is '"default" is the one that stored scores use.';
comment on column trust_roots.weight is 'Millionths.';
comment on column trust_roots.class is
    'Empty for a root that passes trust on; B for a reviewed writer, which has bounded weight and vouches for nobody.';
comment on column trust_roots.rules is
    'Rules for the tags of its own ratings, as a JSON list; empty for none.';
comment on column trust_roots.expires_at is 'Compared with times of blocks; null for never.';

create table trust_links (
    chain_id   bigint,
    a          bytea,
    b          bytea,
    reason     text        not null,
    source     text        not null,
    created_at timestamptz not null default now(),
    primary key (chain_id, a, b),
    check (a < b)
);
comment on table trust_links is 'Pairs of addresses that are known to be one identity.';
comment on column trust_links.source is 'Where it can be checked.';

create table trust_inputs (
    hash    bytea       primary key,
    body    bytea       not null,
    kept_at timestamptz not null default now()
);
comment on table trust_inputs is
    'Inputs of scores as they were when they were used, so that scores can be computed again.';
comment on column trust_inputs.hash is 'sha256 of body.';
comment on column trust_inputs.kept_at is 'When it was last used.';

create table trust_penalties (
    chain_id bigint,
    final    boolean,
    token_id numeric(78, 0),
    identity bytea,
    owner    bytea         not null,
    score    integer       not null,
    high     integer       not null,
    tier     smallint      not null,
    run      bigint        not null,
    known    bytea         not null default '\x',
    domains  text[]        not null default '{}',
    primary key (chain_id, final, token_id, identity)
);
create index trust_penalties_domains on trust_penalties (chain_id, final, identity)
    where domains <> '{}';
create index trust_penalties_identity on trust_penalties (chain_id, final, identity, score, token_id);
comment on table trust_penalties is
    'Penalties: identities that owned an agent when it was found to be bad, which limits their other agents.';
comment on column trust_penalties.final is 'As of the newest run''s block; otherwise as of the newest score.';
comment on column trust_penalties.token_id is 'The bad agent.';
comment on column trust_penalties.identity is 'Name of an identity of the run''s graph.';
comment on column trust_penalties.owner is 'The address of the identity that owned the agent.';
comment on column trust_penalties.score is
    'Score of the bad agent from ratings of that time, in thousandths of a point.';
comment on column trust_penalties.high is 'Thousandths of a point.';
comment on column trust_penalties.known is 'sha256 of the identity''s members and the parameters.';
comment on column trust_penalties.domains is
    'The penalty limits only agents that one of these domains proves; empty for all agents of the identity.';

create table trust_related (
    id       bigint        generated always as identity primary key,
    chain_id bigint        not null,
    final    boolean       not null,
    members  bytea[]       not null,
    updated  bigint        not null,
    except_agent numeric(78, 0),
    after    numeric(78, 0) not null default '-1'::integer
);
create index trust_related_chain on trust_related (chain_id, id);
comment on table trust_related is
    'Identities with changed penalties, whose agents are being marked for scoring.';
comment on column trust_related.members is 'Addresses of the identity.';
comment on column trust_related.updated is
    'Only agents with events after this block are marked; -1 for all.';
comment on column trust_related.except_agent is 'The agent that the penalty comes from; null for several.';
comment on column trust_related.after is 'Agents up to this one are marked.';

-- Payments.

create table payment_files (
    uri_id    bigint        primary key references uris on delete cascade,
    chain_id  bigint,
    token_id  numeric(78, 0),
    client    bytea,
    payer     bytea,
    payee     bytea,
    pay_chain bigint,
    tx        bytea,
    unseen    boolean       not null default true
);
create index payment_files_unseen on payment_files (uri_id) where unseen;
comment on table payment_files is
    'Payments that files of feedback claim, by URI. Null where the file does not say or cannot be read.';
comment on column payment_files.chain_id is 'Of the agent that the file names.';
comment on column payment_files.unseen is 'Not matched with ratings yet.';

create table payments (
    chain_id  bigint,
    token_id  numeric(78, 0),
    client    bytea,
    idx       bigint,
    payer     bytea,
    payee     bytea,
    pay_chain bigint,
    tx        bytea,
    state     text          not null check (state in ('pending', 'verified', 'refused', 'unavailable')),
    reason    text          not null default '' check (reason in ('', 'malformed', 'not-the-client', 'self', 'not-the-payee', 'no-transfer', 'unlisted-token', 'used', 'circular', 'dust', 'no-transaction', 'reverted', 'after-the-claim', 'chain-not-followed', 'not-found', 'not-final', 'no-answer')),
    attempts  integer       not null default 0,
    next_due  timestamptz,
    checked   timestamptz,
    pay_block bigint,
    pay_log   bigint,
    pay_time  timestamptz,
    token     bytea,
    symbol    text,
    decimals  smallint,
    amount    numeric(78, 0),
    paid      bigint,
    given     timestamptz,
    block     bigint,
    log_index integer,
    primary key (chain_id, token_id, client, idx),
    check (state <> 'verified' or pay_log is not null and paid > 0 and given is not null)
);
create index payments_due on payments (pay_chain, next_due)
    where next_due is not null;
create unique index payments_once on payments (pay_chain, tx, pay_log)
    where state = 'verified';
create index payments_payee on payments (pay_chain, payee, pay_time)
    where state = 'verified';
create index payments_payer on payments (pay_chain, payer, pay_time)
    where state = 'verified';
create index payments_client on payments (pay_chain, client, next_due)
    where next_due is not null;
comment on table payments is 'Ratings whose file claims a payment, and the result of looking it up.';
comment on column payments.pay_chain is 'Chain of the payment.';
comment on column payments.reason is 'Code of why it is not verified; empty when it is.';
comment on column payments.pay_block is 'Block of the verified transfer. This and the following columns are null before.';
comment on column payments.paid is 'Amount that counts, in millionths of a US dollar.';
comment on column payments.given is
    'When the rating was given: of several that claim one transfer the first counts.';

create table payment_ledger (
    chain_id bigint,
    token_id numeric(78, 0),
    id       bigint        generated always as identity,
    client   bytea         not null,
    idx      bigint        not null,
    paid     bigint        not null,
    primary key (chain_id, token_id, id)
);
comment on table payment_ledger is
    'A row for each change of the amount that counts for a rating, so that earlier scores can be computed '
    'again.';
comment on column payment_ledger.id is 'Rows of one agent are committed in this order.';
comment on column payment_ledger.paid is 'Millionths of a US dollar that count from now on.';

-- Tasks and runs.

create table modules (
    slug         text          primary key,
    url          text          not null,
    chain_id     bigint,
    registry     bytea,
    token_id     numeric(78, 0),
    dry_run      boolean       not null,
    manifest     json          not null,
    added_at     timestamptz   not null default now(),
    proof_kind   text          not null default '' check (proof_kind in ('', 'domain', 'signature', 'key')),
    proof_host   text          not null default '',
    proof_signer bytea         check (length(proof_signer) = 20),
    proof_at     timestamptz
);
create index modules_agent on modules (chain_id, token_id);
comment on table modules is 'Agents that do tasks: part of the binary, or HTTP servers.';
comment on column modules.url is 'Empty for those that are part of the binary.';
comment on column modules.chain_id is 'Of its on-chain identity; null without one.';
comment on column modules.dry_run is 'It can do a dry run.';
comment on column modules.manifest is 'json, not jsonb, which refuses some texts that agents may send.';
comment on column modules.proof_kind is
    'How the program proved its on-chain identity: domain, signature or key; empty when it did not.';

create table tasks (
    id          text        primary key,
    goal        text        not null,
    input       json        not null,
    coordinator text        not null,
    terms       json        not null,
    key         text        unique,
    asked_by    text        not null,
    status      text        not null check (status in ('pending', 'assigned', 'running', 'completed', 'failed', 'cancelled', 'rejected')),
    created_at  timestamptz not null default now(),
    updated_at  timestamptz not null default now()
);
create index tasks_newest on tasks (created_at desc, id);
comment on table tasks is 'Tasks as they were given.';
comment on column tasks.coordinator is 'Slug of the agent that does it.';
comment on column tasks.terms is 'Budgets, thresholds of trust and other conditions.';
comment on column tasks.key is 'Idempotency key; null when none was given.';

create table runs (
    id                  text          primary key,
    task_id             text          not null references tasks on delete cascade,
    root_id             text          not null references runs on delete cascade,
    parent_id           text          references runs on delete cascade,
    parent_step         text          not null default '',
    slug                text          not null,
    goal                text          not null,
    input               json          not null,
    status              text          not null default 'pending' check (status in ('pending', 'planning', 'running', 'completed', 'failed', 'cancelled')),
    awaiting            text          not null default '' check (awaiting in ('', 'awaiting_approval')),
    attempt             integer       not null default 1,
    phase               integer       not null default 0 check (phase between 0 and 9),
    fence               bigint        not null default 0,
    held_until          timestamptz   not null default '-infinity',
    lost_after          timestamptz   not null default 'infinity',
    cancel              text          not null default '',
    max_steps           integer       not null,
    max_tool_calls      integer       not null,
    max_writes          integer       not null,
    max_runtime_ms      bigint        not null,
    max_gas             numeric(78, 0),
    max_tokens          bigint,
    max_cost            bigint,
    steps               integer       not null default 0,
    tool_calls          integer       not null default 0,
    writes              integer       not null default 0,
    runtime_ms          bigint        not null default 0,
    gas                 numeric(78, 0) not null default 0,
    tokens              bigint        not null default 0,
    cost                bigint        not null default 0,
    events              bigint        not null default 0,
    reasons             json          not null default '[]',
    error               text          not null default '',
    created_at          timestamptz   not null default now(),
    started_at          timestamptz,
    ended_at            timestamptz,
    counted_from        timestamptz,
    decisions           bigint        not null default 0,
    decisions_head      bytea         not null default decode(repeat('00', 32), 'hex'),
    decisions_signer    bytea         check (length(decisions_signer) = 20),
    decisions_signature bytea         check (length(decisions_signature) = 65),
    unique (parent_id, parent_step)
);
create index runs_agent on runs (slug, created_at desc, id desc);
create index runs_newest on runs (created_at desc, id desc);
create index runs_status on runs (status, created_at desc, id desc);
create index runs_awaiting on runs (created_at desc, id desc)
    where awaiting <> '';
create index runs_lost on runs (lost_after)
    where lost_after < 'infinity'::timestamptz;
create index runs_task on runs (task_id);
comment on table runs is
    'Attempts of agents to do tasks. A run that another one started has parent_id; the first of a task is '
    'its own root.';
comment on column runs.slug is 'The agent.';
comment on column runs.awaiting is 'What it waits for; empty when it does not.';
comment on column runs.phase is '1 to 9, 0 before the first.';
comment on column runs.fence is
    'Raised by each claim of a root run; writes of workers with an earlier one are refused.';
comment on column runs.held_until is 'End of the claim of the worker that has the root run.';
comment on column runs.lost_after is 'When the run is queued again, because its worker or job is lost; infinity when it needs none.';
comment on column runs.cancel is 'Why it is canceled; empty when it is not.';
comment on column runs.max_gas is 'Null for no limit.';
comment on column runs.max_tokens is 'Tokens that models may read and write; null for no limit.';
comment on column runs.max_cost is 'What models may cost, in millionths of a dollar; null for no limit.';
comment on column runs.cost is 'What models cost, in millionths of a dollar; running calls with what they can cost.';
comment on column runs.events is 'Of a root run: number of its last event.';
comment on column runs.reasons is 'Why it was refused.';
comment on column runs.counted_from is
    'Of a root run: its time of work is counted from here, moved by its pauses; null before the first claim.';
comment on column runs.decisions is 'Of a root run: number of decisions in its chain.';
comment on column runs.decisions_head is 'Of a root run: hash of the last decision.';
comment on column runs.decisions_signer is 'Who signed decisions_head; null when nobody did.';

create table run_phases (
    run_id     text        references runs on delete cascade,
    attempt    integer,
    phase      integer     check (phase between 1 and 9),
    status     text        not null check (status in ('ok', 'failed', 'rejected', 'waiting')),
    result     json        not null,
    error      text        not null,
    started_at timestamptz not null,
    ended_at   timestamptz not null,
    primary key (run_id, attempt, phase)
);
comment on table run_phases is 'Outcome of each phase, per attempt.';

create table run_steps (
    run_id     text        references runs on delete cascade,
    step_id    text,
    status     text        not null check (status in ('running', 'completed', 'failed')),
    result     json        not null default 'null',
    error      text        not null default '',
    started_at timestamptz not null default now(),
    ended_at   timestamptz,
    primary key (run_id, step_id)
);
comment on table run_steps is 'Steps of a plan that have begun. A completed step is not repeated.';

create table run_calls (
    id         bigint      generated always as identity primary key,
    run_id     text        not null references runs on delete cascade,
    step_id    text        not null,
    key        text        not null,
    kind       text        not null check (kind in ('tool', 'model', 'http', 'chain_read', 'transaction', 'payment', 'sub_run', 'dry_run', 'verification', 'refused')),
    ref        text        not null,
    summary    text        not null,
    chain_id   bigint      not null,
    domain     text        not null,
    done       boolean     not null,
    error      text        not null default '',
    request    json        not null,
    result     json        not null default 'null',
    uncertain  boolean     not null default false,
    started_at timestamptz not null default now(),
    ended_at   timestamptz
);
create unique index run_calls_key on run_calls (run_id, step_id, key)
    where key <> '';
create index run_calls_open on run_calls (id)
    where (kind = 'transaction') and (NOT done);
create index run_calls_run on run_calls (run_id, id);
comment on table run_calls is 'Calls that the runtime made for an agent: the receipts.';
comment on column run_calls.key is 'Idempotency key of the call; empty without one.';
comment on column run_calls.ref is 'What was called.';
comment on column run_calls.done is 'Whether its outcome is stored.';
comment on column run_calls.uncertain is 'Whether the call had an effect, or may have had one, that a repetition would have again: a retry of the task keeps the call, and none makes another plan.';

create table run_events (
    root_id text        references runs on delete cascade,
    number  bigint,
    run_id  text        not null,
    kind    text        not null check (kind in ('task.added', 'phase.finished', 'phase.delayed', 'approval.requested', 'approval.given', 'step.started', 'step.finished', 'call', 'model.text', 'cancel.requested', 'run.retried', 'run.finished')),
    data    json        not null,
    at      timestamptz not null default now(),
    primary key (root_id, number)
);
create index run_events_finished on run_events (at, root_id, number)
    where kind = 'run.finished';
comment on table run_events is 'What happened in a root run and those beneath it, numbered.';

create table run_decisions (
    id       bigint      generated always as identity primary key,
    run_id   text        not null references runs on delete cascade,
    attempt  integer     not null,
    subject  text        not null,
    effect   text        not null check (effect in ('allow', 'require_approval', 'deny')),
    reasons  json        not null,
    policy   bytea       not null,
    input    json        not null,
    at       timestamptz not null default now(),
    root_id  text        not null,
    number   bigint      not null,
    phase    integer     not null check (phase between 0 and 9),
    kind     text        not null check (kind in ('trust', 'policy', 'call', 'value', 'standing', 'refused', 'approval')),
    previous bytea       not null,
    hash     bytea       not null,
    pins     bytea[]     not null default '{}'
);
create unique index run_decisions_chain on run_decisions (root_id, number);
create index run_decisions_policy on run_decisions (policy);
create index run_decisions_pins on run_decisions using gin (pins);
create index run_decisions_run on run_decisions (run_id, id);
comment on table run_decisions is 'Decisions about runs, as one chain of hashes per root run.';
comment on column run_decisions.subject is 'trust, policy, or the key of a call.';
comment on column run_decisions.policy is 'sha256 of the policy''s bytes.';
comment on column run_decisions.number is 'From 1, within the root run.';
comment on column run_decisions.previous is 'Hash of the decision before; zeros for the first.';
comment on column run_decisions.hash is 'Hash of this decision and the one before.';
comment on column run_decisions.pins is
    'sha256 of policies and manifests of evidence in trust_inputs that its input names: without them it '
    'could not be checked again, so they are not pruned.';

create table run_approvals (
    run_id   text        references runs on delete cascade,
    attempt  integer,
    subject  text,
    approved boolean     not null,
    by       text        not null,
    reason   text        not null,
    at       timestamptz not null default now(),
    primary key (run_id, attempt, subject)
);
comment on table run_approvals is 'Answers of people to decisions that a policy left to them.';

-- Wallets and treasuries.

create table intents (
    id         text          primary key,
    run_id     text          not null,
    task_id    text          not null,
    agent      text          not null,
    chain_id   bigint        not null,
    sender     bytea         not null,
    nonce      bigint        not null,
    target     bytea         not null,
    value      numeric(78, 0) not null,
    data       bytea         not null,
    max_fee    numeric(78, 0),
    state      text          not null default 'signed' check (state in ('signed', 'broadcast', 'mined', 'confirmed', 'reverted', 'failed')),
    reason     text          not null default '',
    hash       bytea,
    block      bigint,
    block_hash bytea,
    gas_used   bigint,
    fee        numeric(78, 0),
    logs       json,
    created_at timestamptz   not null default now(),
    updated_at timestamptz   not null default now()
);
create index intents_account on intents (chain_id, sender, nonce);
create index intents_confirmed on intents (chain_id, target, block)
    where state = 'confirmed';
create unique index intents_nonce on intents (chain_id, sender, nonce)
    where state <> 'failed';
create index intents_open on intents (chain_id, id) where state not in ('confirmed', 'reverted', 'failed');
create index intents_settled on intents (chain_id, block)
    where state in ('confirmed', 'reverted');
create index intents_run on intents (run_id);
comment on table intents is
    'Transactions to be sent. A row never changes its nonce, and stays when its run is deleted.';
comment on column intents.agent is 'Slug.';
comment on column intents.max_fee is 'Wei for gas in all; null for no limit.';
comment on column intents.reason is 'Why it is in this state.';
comment on column intents.hash is 'Of the form that was mined; null until then, as the following columns.';

create table intent_attempts (
    intent_id text          references intents on delete cascade,
    number    integer,
    hash      bytea         not null unique,
    raw       bytea         not null,
    gas       bigint        not null,
    fee_cap   numeric(78, 0) not null,
    tip_cap   numeric(78, 0) not null,
    at        timestamptz   not null default clock_timestamp(),
    primary key (intent_id, number)
);
comment on table intent_attempts is
    'Signed forms of a transaction: the last is the one to send, the earlier ones may still be mined.';

create table acts (
    id           text        primary key,
    key          text        unique,
    kind         text        not null check (kind in ('policy', 'call', 'transfer', 'identity', 'wallet', 'feedback', 'purchase')),
    asked_by     text        not null,
    chain_id     bigint      not null,
    agent        text        not null,
    request      json        not null,
    decision     json        not null,
    transactions json        not null,
    result       json        not null default 'null',
    functions    jsonb       not null default '[]',
    refused      text        not null default '',
    error        text        not null default '',
    created_at   timestamptz not null default now(),
    ended_at     timestamptz
);
create index acts_functions on acts using gin (functions jsonb_path_ops);
create index acts_newest on acts (created_at desc, id);
create unique index acts_one_identity on acts (chain_id, agent)
    where (kind = 'identity') and (ended_at is null);
create index acts_open on acts (created_at)
    where ended_at is null;
create index acts_task on acts ((request->>'task'))
    where kind = 'purchase';
comment on table acts is
    'Operator actions, outside any run. Their transactions are intents with the ids ID/1, ID/2 …; those of kind '
    'purchase pay for answers by x402, also in runs, and have none.';
comment on column acts.key is 'Idempotency key of the request; null without one.';
comment on column acts.agent is 'Slug; empty for none.';
comment on column acts.transactions is 'As they were simulated.';
comment on column acts.functions is
    'Texts of the functions that it put on a treasury''s allow-list, as {target, selector, text}: the chain '
    'knows selectors alone.';
comment on column acts.refused is 'Why nothing was sent; empty when it was.';
comment on column acts.error is 'Why it ended early; empty when it did not.';
comment on column acts.ended_at is 'Null while one of its transactions is not final.';

create table treasury_events (
    chain_id  bigint,
    block     bigint,
    log_index integer,
    address   bytea   not null check (length(address) = 20),
    tx_hash   bytea   not null,
    kind      text    not null check (kind in ('CallAllowed', 'Deposited', 'ERC20Transferred', 'NativeExecuted', 'OwnershipTransferStarted', 'OwnershipTransferred', 'Paused', 'PolicySet', 'RelayerApproved', 'TokenPolicySet', 'Unpaused', 'Withdrawn', 'Unreadable')),
    agent_key bytea,
    run_key   bytea,
    task_key  bytea,
    fields    json    not null,
    primary key (chain_id, block, log_index),
    foreign key (chain_id, block, log_index) references events on delete cascade
);
create index treasury_events_agent on treasury_events (chain_id, address, agent_key, block);
create index treasury_events_run on treasury_events (run_key)
    where run_key is not null;
create index treasury_events_tx on treasury_events (tx_hash);
comment on table treasury_events is
    'Layer 2: events of treasuries, decoded. A row goes with its row in events, as when blocks are replaced.';
comment on column treasury_events.address is 'The treasury.';
comment on column treasury_events.kind is 'Name of the event; Unreadable for a log that does not decode.';
comment on column treasury_events.agent_key is 'keccak256 of the slug; null for no agent.';
comment on column treasury_events.run_key is 'keccak256 of the run''s id; null for no run.';
comment on column treasury_events.task_key is 'keccak256 of the task''s id; null for no task.';
comment on column treasury_events.fields is 'Arguments by name, as texts and booleans.';

-- Agents that are run here.

create table agent_payments (
    id         text        primary key,
    agent      text        not null,
    capability text        not null,
    task_hash  bytea       not null,
    payload    bytea       not null,
    payment_id text,
    payer      bytea       not null,
    settlement text        not null check (settlement in ('none', 'x402')),
    request_id text        not null,
    state      text        not null default 'claimed'
        check (state in ('claimed', 'running', 'ran', 'done', 'failed', 'interrupted')),
    terms      json,
    pending    boolean     not null default false,
    settled    json,
    output     json,
    answer     json,
    refund     text        not null default 'none' check (refund in ('none', 'due', 'paid')),
    refund_tx  bytea,
    owner      text        not null,
    expires_at timestamptz not null,
    created_at timestamptz not null default now()
);
create unique index agent_payments_identifier on agent_payments (agent, payer, payment_id)
    where payment_id is not null;
create index agent_payments_created on agent_payments (created_at);
create index agent_payments_payload on agent_payments (agent, payload);
create index agent_payments_request on agent_payments (agent, request_id);
create index agent_payments_refund on agent_payments (agent, created_at) where refund = 'due';
comment on table agent_payments is
    'Payments that agents accepted, each claimed before its work: a payment is worked for once, by one process.';
comment on column agent_payments.id is 'Names the authorization that the payer signed; the chain takes it once.';
comment on column agent_payments.agent is 'Full id of the agent that is paid.';
comment on column agent_payments.payload is 'sha256 of the payment as it was sent: others know its id from the chain.';
comment on column agent_payments.payment_id is 'The client''s name of the payment; null for none.';
comment on column agent_payments.settlement is 'x402: money moves. none: a promise.';
comment on column agent_payments.request_id is 'Id of the first request; handlers get the same one again.';
comment on column agent_payments.state is
    'claimed: nothing was run. running: the handler was called and did not return yet. ran: output is stored. '
    'done: answer is stored. failed: the handler failed. interrupted: the process ended while the handler ran.';
comment on column agent_payments.terms is
    'What is paid for: the price, token and payee of the claim, whatever is configured since.';
comment on column agent_payments.pending is
    'A settlement was asked for whose end is not known: only the chain can say that none was made.';
comment on column agent_payments.settled is 'The settlement; null while its end is not known.';
comment on column agent_payments.answer is 'What is answered, also to repetitions; null until the end.';
comment on column agent_payments.refund is
    'due: the payment was charged, the call failed, and the policy says that it is owed back. paid: refund_tx paid it.';
comment on column agent_payments.owner is
    'Request that works on it until expires_at; empty where it stopped with all that it knew stored.';

create table agent_memory (
    agent      text        not null,
    session    text        not null,
    label      text        not null,
    value      text        not null,
    changed_at timestamptz not null default now(),
    primary key (agent, session, label)
);
create index agent_memory_words on agent_memory using gin (to_tsvector('simple', label || ' ' || value));
comment on table agent_memory is 'What agents of the Open Agent Format remember: one text for each block.';
comment on column agent_memory.session is 'Conversations that share the memory.';

create table agent_receipts (
    at               timestamptz not null default now(),
    number           bigint      generated always as identity,
    kind             text        not null check (kind in ('execution', 'decision', 'payment', 'event')),
    agent            text        not null,
    request_id       text        not null default '',
    capability       text        not null default '',
    client           bytea       not null default '',
    task_hash        bytea       not null default '',
    result_hash      bytea       not null default '',
    outcome          text        not null,
    settlement       text        not null default 'none' check (settlement in ('none', 'x402')),
    amount           numeric     not null default 0 check (amount >= 0),
    decimals         smallint    not null default 0,
    currency         text        not null default '',
    tx_hash          bytea       not null default '',
    client_signature bytea       not null default '',
    agent_signature  bytea       not null default '',
    detail           json        not null default '{}',
    primary key (at, number)
) partition by range (at);
create index agent_receipts_paid on agent_receipts (agent, at, number)
    where kind = 'execution' and amount > 0;
create index agent_receipts_request on agent_receipts (request_id);
create index agent_receipts_free on agent_receipts (agent, (detail->>'client'), capability, at)
    where kind = 'decision' and outcome = 'free';
create index agent_receipts_tasks on agent_receipts (agent, (detail->>'task'))
    where detail->>'task' is not null;
create index agent_receipts_validations on agent_receipts (agent, (detail->>'validation'))
    where detail->>'validation' is not null;
create index agent_receipts_asked on agent_receipts (agent, outcome, (detail->>'asked'))
    where detail->>'asked' is not null;
create index agent_receipts_events on agent_receipts (agent, outcome, tx_hash, at, number)
    where kind = 'event';
comment on table agent_receipts is
    'What agents did: append-only, in one partition a month (agent_receipts_YEAR_MONTH), which are dropped after '
    'the retention time.';
comment on column agent_receipts.kind is
    'execution: a capability was run. decision: of the policy. payment: a payment was verified or settled. event: '
    'start, stop, heartbeat, changes of mode, events of the chain and how far they were followed.';
comment on column agent_receipts.outcome is
    'Status of an execution, effect of a decision, state of a payment, name of an event.';
comment on column agent_receipts.settlement is 'x402: money moved, which tx_hash shows. none: free, or a promise.';
comment on column agent_receipts.amount is 'In the currency''s smallest unit.';

-- +goose StatementBegin
create function agent_receipts_unchanged() returns trigger language plpgsql as $$
begin
    raise exception 'agent_receipts is append-only';
end $$;
-- +goose StatementEnd
create trigger unchanged before update or delete on agent_receipts for each row execute function agent_receipts_unchanged();

-- Webhooks.

create table webhooks (
    id            text        primary key,
    url           text        not null,
    filter        jsonb       not null,
    position      text        not null,
    version       bigint      not null default 1,
    secret        bytea       not null check (length(secret) >= 24),
    former_secret bytea,
    former_until  timestamptz,
    created_at    timestamptz not null default now(),
    added_by      text        not null,
    delivered     bigint      not null default 0,
    delivered_at  timestamptz,
    attempts      integer     not null default 0,
    failing_since timestamptz,
    next_at       timestamptz,
    last_status   integer     not null default 0,
    last_error    text        not null default '',
    disabled      text        not null default '',
    disabled_at   timestamptz,
    check ((former_secret is null) = (former_until is null)),
    check ((disabled = '') = (disabled_at is null))
);
comment on table webhooks is 'Addresses that changes of the feed are sent to, one after the other.';
comment on column webhooks.filter is 'Which changes are sent.';
comment on column webhooks.position is
    'Cursor of the change up to which everything was delivered or not selected; empty: before the oldest one.';
comment on column webhooks.version is
    'Raised when the operator changes the webhook: the process that delivers it begins anew.';
comment on column webhooks.secret is 'Signs messages. Whoever reads it can send messages that pass as ours.';
comment on column webhooks.former_secret is 'Signs messages too, until former_until.';
comment on column webhooks.added_by is 'Name of the token.';
comment on column webhooks.delivered is 'Messages that the receiver accepted.';
comment on column webhooks.attempts is 'Failures in a row of the message that is next.';
comment on column webhooks.failing_since is 'The first of them.';
comment on column webhooks.next_at is 'When that message is sent again.';
comment on column webhooks.last_status is 'Status of the answer to the last failure; 0 without an answer.';
comment on column webhooks.disabled is 'Why nothing is sent; empty while messages are sent.';

-- Callers.

create table api_keys (
    name       text        primary key check (name ~ '^[a-z0-9][a-z0-9._-]{0,39}$'),
    hash       bytea       not null unique check (length(hash) = 32),
    scopes     text[]      not null check (scopes <> '{}' and scopes <@ array['read', 'export']),
    rate       integer     not null check (rate between 1 and 100000),
    expires_at timestamptz,
    created_at timestamptz not null default now(),
    revoked_at timestamptz,
    last_used  date
);
comment on table api_keys is 'Keys that give callers of the API a limit of their own.';
comment on column api_keys.hash is 'sha256 of the key, whose text is stored nowhere.';
comment on column api_keys.scopes is 'read: all routes but exports; export: those of exports.';
comment on column api_keys.rate is 'Requests per second.';
comment on column api_keys.expires_at is 'When it stops working; null for never.';
comment on column api_keys.revoked_at is 'When an operator revoked it; null while it works.';
comment on column api_keys.last_used is 'Day of its last use, in UTC; null before the first.';

-- The database itself.

create table leases (
    name       text        primary key,
    owner      text        not null,
    epoch      bigint      not null,
    expires_at timestamptz not null,
    session    bigint      not null default 0
);
comment on table leases is 'Which process does a job that only one may do.';
comment on column leases.epoch is 'Raised with each new holder; writes of earlier holders are refused.';
comment on column leases.session is
    'Key of the advisory lock that the holder keeps while it is connected; 0 behind a connection pooler. '
    'A lease whose session ended is free at once.';

create table cursors (
    job      text,
    chain_id bigint      default 0,
    part     bigint      default 0,
    block    bigint      not null default 0,
    position bigint      not null default 0,
    state    jsonb       not null default '{}',
    due      timestamptz,
    begun    timestamptz,
    primary key (job, chain_id, part)
);
create index cursors_due on cursors (job, due)
    where due is not null;
comment on table cursors is
    'How far jobs are that go through many rows or blocks, a part at a time, so that any process goes on '
    'after a restart.';
comment on column cursors.job is
    '"verified": the states of all agents were compared at block, per kind of event. "compared NAME": a '
    'comparison of a chain with its node. "requested block": a block to be compared again. "payments": '
    'ratings matched with files that claim payments. "shared document": changes of a document that many '
    'agents share, or whose agents may be stored at the same time. "roots and links": position is raised by each change of trust_roots or trust_links. '
    '"cluster": position identifies the Postgres cluster that wrote the rows, because transaction ids mean '
    'nothing in another one. "late logs": position is the mark of events found late that no run has followed, 0 for '
    'none. "marks": begun is when an engine last looked for marks. "documents": begun is when a process last looked for '
    'documents to fetch. "pruned finals": final scores that were replaced '
    'in the run of this position or before may be gone. "rated agents", "thin agents": position is how many agents '
    'have a score with that status now. Others: maintenance passes. "agent log ID": for how many days an '
    'agent keeps its log, in position.';
comment on column cursors.chain_id is '0 where the job is not one chain''s.';
comment on column cursors.part is
    'Kind of event (repute.EventKind) of "verified", number of the "requested block", row in uris of '
    '"shared document"; 0 for others.';
comment on column cursors.block is
    'Block that was reached; of a comparison the lowest block that a part of it was compared at.';
comment on column cursors.position is
    'Where to go on: a log index within the block, a token id, or a block. Of a "requested block": how often '
    'no endpoint answered.';
comment on column cursors.state is 'What else the job needs to go on.';
comment on column cursors.due is 'When to go on; null where nothing is planned.';
comment on column cursors.begun is 'When the present round began; null where that does not matter.';

-- +goose StatementBegin
create function trust_lists_changed() returns trigger language plpgsql as $$
begin
    update cursors set position = position + 1 where job = 'roots and links';
    return null;
end $$;
-- +goose StatementEnd
insert into cursors (job) values ('roots and links');
create trigger changed after insert or update or delete or truncate on trust_roots execute function trust_lists_changed();
create trigger changed after insert or update or delete or truncate on trust_links execute function trust_lists_changed();

-- +goose StatementBegin
create function trust_marks_added() returns trigger language plpgsql as $$
begin
    perform pg_notify('trust_marks', chain_id::text) from (select distinct chain_id from added) a;
    return null;
end $$;
-- +goose StatementEnd
create trigger added after insert on trust_marks referencing new table as added
    for each statement execute function trust_marks_added();

-- +goose Down
drop table cursors, leases, webhooks, api_keys, agent_memory, agent_receipts, agent_payments, treasury_events, acts, intent_attempts,
    intents, run_approvals, run_decisions, run_events, run_calls, run_steps, run_phases, runs,
    tasks, modules, payment_ledger, payments, payment_files, trust_related, trust_penalties,
    trust_inputs, trust_links, trust_roots, trust_marks, trust_stale, trust_finals, trust_scores,
    trust_runs, searchable, manifest_intents, manifests, document_blocks, ipfs_blocks, denied, domains, links, parses, documents,
    fetches, hosts, uris, changes, agent_votes, agent_sums, votes, sums, agents, validation_responses, validation_requests,
    responses, feedback, hours, operators, metadata, agent_states, tags, events, endpoints, pending, gaps,
    block_proofs, blocks, chains;
drop function trust_lists_changed, trust_marks_added, agent_receipts_unchanged, sums_changed, votes_changed;
