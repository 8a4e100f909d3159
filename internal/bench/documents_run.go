package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// reading is what one DocumentsRun needs.
type reading struct {
	*documentsBench
	uris []string
	live int   // how many of them can be read
	farm *farm // that serves them; nil: they need no network
	cpus int   // of the product; 0: all
}

// run reads the documents into a fresh database in which they are due.
func (x *reading) run(ctx context.Context) (r DocumentsRun, err error) {
	ctx, cancel := context.WithTimeout(ctx, documentsLimit)
	defer cancel()
	d, err := x.server.fresh(ctx)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, d.drop(context.WithoutCancel(ctx))) }()
	if err := makeDue(ctx, d.url, x.uris); err != nil {
		return r, err
	}
	for _, sql := range []string{"analyze", "checkpoint"} {
		if _, err := d.Exec(ctx, sql); err != nil {
			return r, fmt.Errorf("%s: %w", sql, err)
		}
	}
	config, err := x.configure(d)
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(filepath.Dir(config))
	r.Documents, r.Dead, r.CPUs = x.live, len(x.uris)-x.live, x.cpus
	return r, x.read(ctx, d, config, &r)
}

// configure writes the product's configuration: nothing but the role is set, and that
// documents may come from this machine.
func (x *reading) configure(d *database) (path string, err error) {
	return writeConfig(fmt.Sprintf("database: %q\nroles: [documents]\nlog_level: error\nallow_hosts: [%q]\n", d.url,
		farmAddress))
}

// read runs the product until all documents are stored that can be read.
func (x *reading) read(ctx context.Context, d *database, config string, r *DocumentsRun) (err error) {
	program := x.o.Program
	if x.cpus > 0 {
		program.Env = append(program.Env[:len(program.Env):len(program.Env)], "GOMAXPROCS="+strconv.Itoa(x.cpus))
	}
	p, err := d.serve(ctx, program, config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	if err := p.await(ctx, 50*time.Millisecond, x.stored(d, p.process, r)); err != nil {
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
	if err := p.count(ctx, &r.Usage); err != nil {
		return err
	}
	return p.end(&r.Usage)
}

// stored reports whether all documents are stored, and records the resident memory at a fifth and at the end.
func (x *reading) stored(d *database, p *process, r *DocumentsRun) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		n, err := value[int](ctx, d, "select count(*) from fetches where sha256 is not null")
		if err != nil {
			return false, err
		}
		if r.EarlyMB == 0 && n >= x.live/5 {
			r.EarlyMB = p.residentMB()
		}
		if n >= x.live {
			r.EndMB = p.residentMB()
		}
		return n >= x.live, nil
	}
}

// start is when the first document was asked for.
func (x *reading) start(ctx context.Context, d *database) (time.Time, error) {
	if x.farm != nil {
		return x.farm.first()
	}
	return value[time.Time](ctx, d, "select min(fetched_at) from fetches where sha256 is not null")
}

// residentMB is the memory that the program holds now, 0 where the system has no such figure.
func (r *process) residentMB() float64 {
	value := field(filepath.Join("/proc", strconv.Itoa(r.cmd.Process.Pid), "status"), "VmRSS")
	kb, _ := strconv.ParseInt(strings.TrimSuffix(value, " kB"), 10, 64)
	return float64(kb) / 1024
}
