package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"repute/internal/bench/harness"
)

// reading is what one DocumentsRun needs.
type reading struct {
	*documentsBench
	uris []string
	live int   // how many of them can be read
	farm *farm // that serves them; nil: they need no network
	cpus int   // of the product; 0: all
}

// run reads the documents into a fresh database in which they are due. The tables are analyzed before the product
// starts: a database in use has statistics, and autovacuum would make them at any time of the run.
func (x *reading) run(ctx context.Context) (r DocumentsRun, err error) {
	ctx, cancel := context.WithTimeout(ctx, documentsLimit)
	defer cancel()
	d, err := x.server.Fresh(ctx)
	if err != nil {
		return r, err
	}
	if err := makeDue(ctx, d.URL, x.uris); err != nil {
		return r, err
	}
	for _, sql := range []string{"analyze", "checkpoint"} {
		if _, err := d.Exec(ctx, sql); err != nil {
			return r, fmt.Errorf("%s: %w", sql, err)
		}
	}
	r.Documents, r.Dead, r.CPUs = x.live, len(x.uris)-x.live, x.cpus
	return r, x.read(ctx, d, &r)
}

// read runs the product until all documents are stored that can be read. Nothing but the role is configured, and that
// documents may come from this machine.
func (x *reading) read(ctx context.Context, d *harness.Database, r *DocumentsRun) (err error) {
	program := x.o.Program
	if x.cpus > 0 {
		program.Env = append(program.Env[:len(program.Env):len(program.Env)], "GOMAXPROCS="+strconv.Itoa(x.cpus))
	}
	p, err := d.Serve(ctx, program,
		fmt.Sprintf("database: %q\nroles: [documents]\nallow_hosts: [%q]\n", d.URL, farmAddress))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	if err := p.Await(ctx, 50*time.Millisecond, x.stored(d, p.Process, r)); err != nil {
		return err
	}
	end := time.Now()
	start, err := x.start(ctx, d)
	if err != nil {
		return err
	}
	r.Seconds = end.Sub(start).Seconds()
	r.PerSecond = float64(r.Documents) / r.Seconds
	if x.farm != nil {
		r.Ideal, r.AtOnce = x.farm.ideal().Seconds(), int(x.farm.most.Load())
	}
	if err := p.Count(ctx, &r.Usage); err != nil {
		return err
	}
	return p.End(&r.Usage)
}

// stored reports whether all documents are stored, and records the resident memory at a fifth and at the end. It is
// asked every 50 ms, so that both figures are of a moment shortly after.
func (x *reading) stored(d *harness.Database, p *harness.Process, r *DocumentsRun) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		n, err := harness.Value[int](ctx, d, "select count(*) from fetches where sha256 is not null")
		if err != nil {
			return false, err
		}
		if r.EarlyMB == 0 && n >= x.live/5 {
			r.EarlyMB = p.ResidentMB()
		}
		if n >= x.live {
			r.EndMB = p.ResidentMB()
		}
		return n >= x.live, nil
	}
}

// start is when the first document was asked for. It is not when the product started, which loads for a part of a
// second. For data: URIs it is when the first one was stored, since no host sees them.
func (x *reading) start(ctx context.Context, d *harness.Database) (time.Time, error) {
	if x.farm != nil {
		return x.farm.first()
	}
	return harness.Value[time.Time](ctx, d, "select min(fetched_at) from fetches where sha256 is not null")
}
