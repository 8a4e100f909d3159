package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"repute"
)

// Lease is the right to write under a name until it expires. Epoch rises with
// every Acquire, so that a former holder can be told apart.
type Lease struct {
	Name, Owner string
	Epoch       int64
}

// Acquire takes the lease for ttl, also from the same owner. repute.ErrHeld
// while somebody else holds it. The clock is the database's.
//
// Whoever still writes under an earlier epoch is fenced from now on; its open
// transaction, which may belong to a frozen process, is ended at once so that it
// cannot hold the chain back.
func (db *DB) Acquire(ctx context.Context, name, owner string, ttl time.Duration) (Lease, error) {
	l := Lease{Name: name, Owner: owner}
	err := db.pool.QueryRow(ctx, `
		insert into leases as l (name, owner, epoch, expires_at)
		values ($1, $2, 1, clock_timestamp() + $3)
		on conflict (name) do update
		set owner = excluded.owner, epoch = l.epoch + 1, expires_at = clock_timestamp() + $3
		where l.owner = excluded.owner or l.expires_at <= clock_timestamp()
		returning epoch`, name, owner, ttl).Scan(&l.Epoch)
	if errors.Is(err, pgx.ErrNoRows) {
		return Lease{}, repute.ErrHeld
	}
	if err != nil {
		return Lease{}, failed("acquire lease "+name, err)
	}
	// Without the right to end sessions the idle-in-transaction timeout does it.
	_, _ = db.pool.Exec(ctx, `
		select pg_terminate_backend(pid) from pg_locks
		where locktype = 'advisory' and granted and pid <> pg_backend_pid()
		and database = (select oid from pg_database where datname = current_database())
		and classid in ($1, $2) and objid = (hashtext($3)::bigint & 4294967295)::oid and objsubid = 2`,
		leaseLockClass, leaseAheadClass, name)
	return l, nil
}

// leaseLockClass and hashtext(name) form the advisory lock that a transaction
// under a lease holds, so that Acquire can find it.
const leaseLockClass = 0x6c656173 // "leas"

// leaseAheadClass is in its place for a transaction that is ahead of its turn: it
// must not wait for the one before, nor that one's successors for it.
const leaseAheadClass = 0x6c656168 // "leah"

// Renew extends the lease to ttl from now. repute.ErrFenced when it is no longer
// ours; an expired lease that nobody took is still ours.
func (db *DB) Renew(ctx context.Context, l Lease, ttl time.Duration) error {
	tag, err := db.pool.Exec(ctx, `
		update leases set expires_at = clock_timestamp() + $4
		where name = $1 and owner = $2 and epoch = $3`, l.Name, l.Owner, l.Epoch, ttl)
	if err != nil {
		return failed("renew lease "+l.Name, err)
	}
	if tag.RowsAffected() == 0 {
		return repute.ErrFenced
	}
	return nil
}

// Release gives the lease up. Releasing one that is lost is no error.
func (db *DB) Release(ctx context.Context, l Lease) error {
	_, err := db.pool.Exec(ctx, `
		update leases set expires_at = clock_timestamp()
		where name = $1 and owner = $2 and epoch = $3`, l.Name, l.Owner, l.Epoch)
	return failed("release lease "+l.Name, err)
}

// holdLease makes the transaction findable for Acquire and checks that the lease
// is still ours. The zero lease is not checked.
func holdLease(ctx context.Context, tx pgx.Tx, l Lease) error {
	return holdLeaseAs(ctx, tx, l, leaseLockClass)
}

func holdLeaseAs(ctx context.Context, tx pgx.Tx, l Lease, class int32) error {
	if l == (Lease{}) {
		return nil
	}
	var mine bool
	err := tx.QueryRow(ctx, `
		select exists (select from leases where name = $2 and owner = $3 and epoch = $4 and expires_at > clock_timestamp())
		from (select pg_advisory_xact_lock($1, hashtext($2))) l`,
		class, l.Name, l.Owner, l.Epoch).Scan(&mine)
	if err != nil {
		return failed("check lease", err)
	}
	if !mine {
		return repute.ErrFenced
	}
	return nil
}
