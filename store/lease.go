package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"repute"
)

// Lease is the right of one process to write under a name. It ends when it expires, or when the
// database session of the process ends. Epoch rises with every Acquire, so that writes of a former
// holder are recognized and refused.
type Lease struct {
	Name, Owner string
	Epoch       int64
}

// leaseFree is true for a row l of leases that owner $2 may take: $2 holds it, it expired, or its
// holder's session ended. Postgres drops a session's locks with its connection, so a killed process
// is noticed within milliseconds.
const leaseFree = `(l.owner = $2 or l.expires_at <= clock_timestamp() or l.session <> 0 and not exists (
	select from pg_locks where locktype = 'advisory' and granted and objsubid = 1
	and database = (select oid from pg_database where datname = current_database())
	and classid::bigint = l.session >> 32 and objid::bigint = l.session & 4294967295))`

// Acquire takes or extends the lease for ttl, by the clock of the database. It returns
// repute.ErrHeld while another process holds it.
//
// Writes of a former holder are refused from then on. Its open transactions, which may belong to a
// frozen process, are ended first, so that they delay neither this call nor the chain.
func (db *DB) Acquire(ctx context.Context, name, owner string, ttl time.Duration) (Lease, error) {
	var former int64
	var free bool
	err := db.pool.QueryRow(ctx, "select l.epoch, "+leaseFree+" from leases l where name = $1", name,
		owner).Scan(&former, &free)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
	case err != nil:
		return Lease{}, Failed("acquire lease "+name, err)
	case !free:
		return Lease{}, repute.ErrHeld
	}
	db.endWriters(ctx, name, former)
	l := Lease{Name: name, Owner: owner}
	err = db.pool.QueryRow(ctx, `
		insert into leases as l (name, owner, epoch, expires_at, session)
		values ($1, $2, 1, clock_timestamp() + $3, $5)
		on conflict (name) do update
		set owner = excluded.owner, epoch = l.epoch + 1, expires_at = clock_timestamp() + $3, session = excluded.session
		where l.epoch = $4 and `+leaseFree+`
		returning epoch`, name, owner, ttl, former, db.session.key(ctx, db.pool)).Scan(&l.Epoch)
	if errors.Is(err, pgx.ErrNoRows) {
		return Lease{}, repute.ErrHeld
	}
	if err != nil {
		return Lease{}, Failed("acquire lease "+name, err)
	}
	return l, nil
}

// endWriters ends the sessions that hold a transaction under one epoch of a lease, and those that
// wait for such transactions. Without the privilege to end sessions, their timeouts do it.
func (db *DB) endWriters(ctx context.Context, name string, epoch int64) {
	_, _ = db.pool.Exec(ctx, `
		select pg_terminate_backend(pid) from pg_locks
		where locktype = 'advisory' and pid <> pg_backend_pid() and objsubid = 2
		and database = (select oid from pg_database where datname = current_database())
		and classid in ($1, $2) and objid = (hashtext($3 || ':' || $4::bigint)::bigint & 4294967295)::oid`,
		leaseLockClass, leasePrefetchClass, name, epoch)
}

// leaseLockClass and a hash of a lease's name and epoch form the advisory lock that each
// transaction under the lease holds, so that Acquire can find it. Because the epoch is part of it,
// a new holder never waits for the lock of a former one.
const leaseLockClass = 0x6c656173 // "leas"

// leasePrefetchClass replaces leaseLockClass for a transaction of a prefetched batch: it
// must not wait for the one before, nor that one's successors for it.
const leasePrefetchClass = 0x6c656168 // "leah"

// Renew extends the lease to ttl from now. repute.ErrFenced when another process took it; a lease
// that expired and that no process took is extended.
func (db *DB) Renew(ctx context.Context, l Lease, ttl time.Duration) error {
	tag, err := db.pool.Exec(ctx, `
		update leases set expires_at = clock_timestamp() + $4, session = $5
		where name = $1 and owner = $2 and epoch = $3`, l.Name, l.Owner, l.Epoch, ttl, db.session.key(ctx, db.pool))
	if err != nil {
		return Failed("renew lease "+l.Name, err)
	}
	if tag.RowsAffected() == 0 {
		return repute.ErrFenced
	}
	return nil
}

// KeepRenewed renews the lease to ttl again and again until ctx ends. It returns nil then, and repute.ErrFenced when
// the lease is lost: another process took it, or it could not be renewed for as long as it lasts.
func (db *DB) KeepRenewed(ctx context.Context, l Lease, ttl time.Duration) error {
	renewed := time.Now()
	for {
		if repute.Pause(ctx, ttl/4); ctx.Err() != nil {
			return nil
		}
		err := db.tryRenew(ctx, l, ttl)
		switch {
		case err == nil:
			renewed = time.Now()
		case errors.Is(err, repute.ErrFenced), time.Since(renewed) > ttl:
			return fmt.Errorf("%w (%w)", repute.ErrFenced, err)
		}
	}
}

// tryRenew is Renew within a quarter of the lease's time, so that there is time for another try.
func (db *DB) tryRenew(ctx context.Context, l Lease, ttl time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, ttl/4)
	defer cancel()
	return db.Renew(ctx, l, ttl)
}

// Release gives the lease up. Releasing a lost one is no error.
func (db *DB) Release(ctx context.Context, l Lease) error {
	_, err := db.pool.Exec(ctx, `
		update leases set expires_at = clock_timestamp()
		where name = $1 and owner = $2 and epoch = $3`, l.Name, l.Owner, l.Epoch)
	return Failed("release lease "+l.Name, err)
}

// RevokeLease ends a lease when tx commits: writes under it are refused from then on, and its holder MUST acquire it
// again. A lease that nobody holds stays free. It waits for transactions that have checked the lease already, so that
// it MUST be called before tx locks a row that they write.
func RevokeLease(ctx context.Context, tx pgx.Tx, name string) error {
	_, err := tx.Exec(ctx, `
		with revoked as (
			update leases set epoch = epoch + 1, expires_at = clock_timestamp() where name = $1 returning epoch - 1 as was)
		select pg_advisory_xact_lock($2, hashtext($1 || ':' || was)) from revoked`, name, leaseLockClass)
	return Failed("revoke lease "+name, err)
}

// HoldLease takes the advisory lock by which Acquire finds this transaction, and returns
// repute.ErrFenced when the lease is lost. The zero lease is not checked.
func HoldLease(ctx context.Context, tx pgx.Tx, l Lease) error {
	return holdLeaseAs(ctx, tx, l, leaseLockClass, `
		select set_config('lock_timeout', '0', true), pg_advisory_xact_lock($1, hashtext($2 || ':' || $3::bigint))`)
}

// InLease runs f in a transaction under a lease, as InTx. It returns repute.ErrFenced when the lease is lost; the zero
// lease is not checked.
func (db *DB) InLease(ctx context.Context, l Lease, doing string, f func(pgx.Tx) error) error {
	return db.InTx(ctx, pgx.TxOptions{}, doing, func(tx pgx.Tx) error {
		if err := HoldLease(ctx, tx, l); err != nil {
			return err
		}
		return f(tx)
	})
}

// HoldLeasePrefetch is HoldLease for the transaction of a prefetched batch. Such transactions share
// the lock, because each stays open until the batches before it are committed.
func HoldLeasePrefetch(ctx context.Context, tx pgx.Tx, l Lease) error {
	return holdLeaseAs(ctx, tx, l, leasePrefetchClass, `
		select set_config('lock_timeout', '0', true), pg_advisory_xact_lock_shared($1, hashtext($2 || ':' || $3::bigint))`)
}

// holdLeaseAs takes the advisory lock of a class and checks the lease.
func holdLeaseAs(ctx context.Context, tx pgx.Tx, l Lease, class int32, lock string) error {
	if l == (Lease{}) {
		return nil
	}
	// The lock is only waited for behind transactions of this lease, however long they
	// take: the limit is for the locks that come after it.
	var b pgx.Batch
	b.Queue(lock, class, l.Name, l.Epoch)
	var mine bool
	b.Queue(`select set_config('lock_timeout', $4, true) <> '' and exists (select from leases
		where name = $1 and owner = $2 and epoch = $3 and expires_at > clock_timestamp())`,
		l.Name, l.Owner, l.Epoch, lockTimeout).QueryRow(func(row pgx.Row) error { return row.Scan(&mine) })
	err := tx.SendBatch(ctx, &b).Close()
	if err != nil {
		return Failed("check lease", err)
	}
	if !mine {
		return repute.ErrFenced
	}
	return nil
}
