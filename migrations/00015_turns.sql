-- Turns of hosts by what is due there: the hosts of new agents do not wait behind those
-- of files, however many there are. What a host asked for, or its silence, outlasts wishes.
-- +goose Up
alter table hosts
    add column rank       smallint not null default 0, -- of the first document due, see uris.rank
    add column rest_until timestamptz;                 -- no turn before, whatever becomes due
update hosts h set rank = u.rank
from (select host, min(rank) as rank from uris where next_due is not null group by host) u where u.host = h.host;
drop index hosts_turn;
create index hosts_turn on hosts (rank, turn);

-- +goose Down
drop index hosts_turn;
alter table hosts drop column rank, drop column rest_until;
create index hosts_turn on hosts (turn);
