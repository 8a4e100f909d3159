package documents

import (
	"context"
	"repute"
	"time"

	"repute/manifest"
	"repute/store/docdb"
	"repute/store/docstats"
)

const (
	planMost    = 5000        // files planned by one statement
	restoreMost = 5000        // documents without bytes examined by one statement
	parseMost   = 50          // documents parsed again by one step
	passEvery   = time.Minute // between looks whether a pass over all is to begin
	countEvery  = 15 * time.Second
	tellMost    = 5000                   // agents updated by one step for a document that many agents share
	tellFor     = 200 * time.Millisecond // how long such steps follow each other
)

// maintain runs the maintenance passes until ctx ends: it schedules files that indexing found, parses
// stored bytes again with a newer parser, and removes what exceeds the bounds.
func (l *Loop) maintain(ctx context.Context) {
	jobs := []struct {
		name  string
		every time.Duration
		step  func(context.Context) (more bool, err error)
		next  time.Time
	}{
		{name: "plan", step: l.plan}, {name: "parse", step: l.parseAgain},
		{name: "tell", step: l.tell}, {name: "prune", step: l.prune},
		{name: "restore", every: passEvery, step: l.restore}, {name: "drop", every: passEvery, step: l.drop},
		{name: "count", every: countEvery, step: l.count},
	}
	for ctx.Err() == nil {
		busy := false
		for i := range jobs {
			j := &jobs[i]
			if time.Now().Before(j.next) {
				continue
			}
			more, err := j.step(ctx)
			if err != nil && ctx.Err() == nil {
				l.opts.Log.Warn("documents: upkeep failed", "step", j.name, "error", err)
			}
			if busy = busy || more; !more {
				j.next = time.Now().Add(j.every)
			}
		}
		if !busy {
			repute.Pause(ctx, l.opts.Upkeep)
		}
	}
}

// plan schedules files of feedback that are not scheduled yet, one batch at a time.
func (l *Loop) plan(ctx context.Context) (more bool, err error) {
	n, err := docdb.PlanFiles(ctx, l.db, planMost)
	return n == planMost, err
}

// parseAgain reads some of the documents that an older parser read last.
func (l *Loop) parseAgain(ctx context.Context) (more bool, err error) {
	old, err := docdb.ListUnparsed(ctx, l.db, manifest.Version, parseMost)
	if err != nil {
		return false, err
	}
	for _, u := range old {
		if err := docdb.SaveParsed(ctx, l.db, u, l.parseOld(u)); err != nil {
			return false, err
		}
	}
	return len(old) == parseMost, nil
}

// parseOld never panics: bytes that break the parser are marked as parsed, so that they do not
// delay the others.
func (l *Loop) parseOld(u docdb.Unparsed) (p docdb.Parsed) {
	defer func() {
		if broken := recover(); broken != nil {
			l.opts.Log.Error("documents: panic", "sha256", u.SHA256, "panic", broken)
			p = docdb.Parsed{ParserVersion: manifest.Version, FileOnly: true}
		}
	}()
	return parse(u.Body, u.Registration, u.Agents)
}

// tell updates the agents that share a changed document, and those that were stored while their documents were saved:
// one document at a time, of which there may be thousands.
func (l *Loop) tell(ctx context.Context) (more bool, err error) {
	for begun := time.Now(); ; {
		more, err = docdb.AddSharedChanges(ctx, l.db, tellMost)
		if err != nil || !more || time.Since(begun) > tellFor {
			return more, err
		}
	}
}

// restore schedules documents that an agent shows and whose bytes were dropped.
func (l *Loop) restore(ctx context.Context) (more bool, err error) {
	_, more, err = docdb.RestoreBodies(ctx, l.db, restoreMost)
	return more, err
}

// drop removes the bytes of documents beyond the size limit.
func (l *Loop) drop(ctx context.Context) (more bool, err error) {
	if l.opts.MaxBytes <= 0 {
		return false, nil
	}
	_, more, err = docdb.DropBodies(ctx, l.db, l.opts.MaxBytes)
	return more, err
}

// count publishes the state of the queue as metrics.
func (l *Loop) count(ctx context.Context) (more bool, err error) {
	queue, err := docstats.ReadQueue(ctx, l.db)
	if err == nil {
		l.opts.Metrics.queued(queue)
	}
	return false, err
}

// prune deletes old outcomes of documents that change with every fetch.
func (l *Loop) prune(ctx context.Context) (more bool, err error) {
	return docdb.PruneVersions(ctx, l.db)
}
