// Package documents fetches the files that URIs on the chain name: registration files of agents, proofs
// of their domains, and the files of feedback, responses and validations.
//
// A Loop takes due URIs from the table uris, which is the queue (package store/docdb): a job has the claim of a host,
// fetches the due URIs of the host through package resolver, parses each document and saves bytes, problems and the
// parsed form. Maintenance passes run concurrently: they schedule new files, parse stored bytes again
// after the parser changed, and delete what exceeds the bounds of the store.
//
// Any number of processes may run a Loop on one database. The claim of a host gives its documents to one job at a time,
// so that a server gets at most HostParallel requests at once. Documents that URIs contain, and those of ipfs, have no
// such claim: every process works on them.
//
// Hosts are untrusted, and some are hostile. A host that does not answer twice is left until its backoff ends. Hosts of
// feedback files, of which anybody can make many, have places of their own, so that they delay no file of an agent. A
// job ends after a time, so that hosts with many documents do not delay others. A document that makes the parser or the
// database panic is stored as unreadable, and stops neither its job nor the documents that are saved with it.
//
// Saving is apart from fetching: the results of all jobs are stored in few transactions, while the next documents are
// fetched. At the end of Run, fetches get a moment to finish, and what was claimed and not fetched is due again.
package documents

import (
	"context"
	"log/slog"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"repute/resolver"
	"repute/store"
)

// Limits of concurrent requests to untrusted servers. Most of the time is spent waiting for answers: many hosts cost
// little, and a slow host should start early.
const (
	DefaultHosts = 256 // hosts, if Options do not say otherwise
	HostParallel = 2   // requests to one host
)

// Options tune a Loop. Zero values are replaced by the defaults named.
type Options struct {
	Sweep        time.Duration // between looks for due hosts, 500 ms
	Hosts        int           // hosts at the same time, DefaultHosts; a quarter as many more for hosts of other files
	Refetch      time.Duration // interval for documents that can change (https), 24 h
	RefetchFiles time.Duration // of the files of feedback, responses and validations, 7 d
	RefetchIdle  time.Duration // interval for documents that no agent shows at present, 30 d
	RetryMin     time.Duration // after a first failure that may pass, 1 min; doubles
	RetryMax     time.Duration // 24 h
	DeadAfter    int           // consecutive failures that make a document dead, 12
	RetryDead    time.Duration // of dead documents, 7 d
	Upkeep       time.Duration // interval of the maintenance passes, 1 s
	MaxBytes     int64         // size of the stored documents; 0 for no limit
	Metrics      *Metrics      // nil: not exposed
	Log          *slog.Logger  // nil: discarded
}

// withDefaults replaces zero values by the named defaults.
func (o Options) withDefaults() Options {
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&o.Sweep, 500 * time.Millisecond}, {&o.Refetch, 24 * time.Hour}, {&o.RefetchFiles, 7 * 24 * time.Hour},
		{&o.RefetchIdle, 30 * 24 * time.Hour}, {&o.RetryMin, time.Minute}, {&o.RetryMax, 24 * time.Hour},
		{&o.RetryDead, 7 * 24 * time.Hour}, {&o.Upkeep, time.Second},
	} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	if o.Hosts <= 0 {
		o.Hosts = DefaultHosts
	}
	if o.DeadAfter <= 0 {
		o.DeadAfter = 12
	}
	if o.Metrics == nil {
		o.Metrics = NewMetrics(prometheus.NewRegistry())
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// fetcher is the part of resolver.Client that Loop needs.
type fetcher interface {
	FetchIfChanged(ctx context.Context, uri string, known resolver.Validators) (resolver.Document, error)
}

// Loop fetches the documents behind due URIs. Any number of processes may run it on one database:
// the state is in tables uris and hosts, and the claim of a host gives it to one job at a time.
type Loop struct {
	db    *store.DB
	fetch fetcher
	opts  Options
	saver *saver
	// claimed are the places for hosts of agents and for those of other files, own those for ownHosts.
	claimed [2]*slots
	own     *slots
}

// New returns a loop.
func New(db *store.DB, fetch *resolver.Client, o Options) *Loop {
	l := &Loop{db: db, fetch: fetch, opts: o.withDefaults()}
	l.claimed, l.own = newSlots(l.opts.Hosts)
	l.saver = &saver{save: l.save, broken: l.broken}
	return l
}

// Classify is a store.Options.Classify: it returns the kind of a URI and the host whose queue it
// belongs to. A host of unreasonable length has no queue.
func Classify(uri string) (kind, host string) {
	ref := resolver.Classify(uri)
	if len(ref.Host) > 255 || !utf8.ValidString(ref.Host) || strings.ContainsRune(ref.Host, 0) {
		return string(resolver.KindUnsupported), ""
	}
	return string(ref.Kind), ref.Host
}
