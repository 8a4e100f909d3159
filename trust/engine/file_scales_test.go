package engine_test

import (
	"errors"
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/manifest"
	"repute/store"
	"repute/store/docdb"
	"repute/store/query"
	"repute/store/rootdb"
	"repute/trust"
	"repute/trust/explain"
	"repute/trust/rating"
	"repute/trust/replay"
)

// readFile stores the file behind a URI as the fetcher reads it.
func readFile(t *testing.T, db *store.DB, uri, body string) {
	t.Helper()
	var id int64
	ok(t, db.Pool().QueryRow(t.Context(), "select id from uris where uri = $1", []byte(uri)).Scan(&id))
	file, _ := manifest.ParseFeedback([]byte(body))
	ok(t, docdb.SaveDocuments(t.Context(), db, docdb.FetchResult{URIID: id, FetchedAt: time.Now(), Source: "data",
		Body: []byte(body), MediaType: "application/json", ParserVersion: manifest.Version, FileOnly: true,
		Files: []docdb.FileParse{{Kind: repute.FeedbackDocument, Feedback: &file}}}))
}

// A single rating of five stars counts once its file says that it is of five. Files that contradict the chain, and
// files that their host can change, tell nothing.
func TestFilesOfRatingsStateScales(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		uri, body string
		counts    bool
	}{
		"states it":               {"data:application/json,a", `{"value": 5, "maxValue": 5, "tag1": "starred"}`, true},
		"contradicts the value":   {"data:application/json,a", `{"value": 4, "maxValue": 5}`, false},
		"contradicts the tag":     {"data:application/json,a", `{"value": 5, "maxValue": 5, "tag1": "quality"}`, false},
		"value beyond the scale":  {"data:application/json,a", `{"value": 5, "maxValue": 4}`, false},
		"contradicts itself":      {"data:application/json,a", `{"value": 5, "maxValue": 5, "scale": 100}`, false},
		"of a host, without hash": {"https://a.example/1", `{"value": 5, "maxValue": 5}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLedger(13)
			db, _ := l.fresh(t)
			s := l.state()
			l.mine(s, s.mint(person(9))...)
			e := s.rate(0, person(0), 0).(repute.NewFeedback)
			e.Value, e.Decimals, e.URI = big.NewInt(5), 0, c.uri
			l.mine(s, e)
			l.pad(20)
			l.store(t, db, 20)
			readFile(t, db, c.uri, c.body)
			start(t, db)
			run := settle(t, db, 9, 20)
			r, err := explain.NewReader(db, explain.Options{})
			ok(t, err)
			a, err := r.Explain(t.Context(), repute.AgentID{ChainID: 9, TokenID: token(0)},
				repute.At{Finality: repute.Finalized}, nil)
			ok(t, err)
			if left := a.ByReason[rating.ReasonScale]; (left == 0) != c.counts || (a.Score.Mean > 0) != c.counts {
				t.Errorf("%d left out, mean %v", left, a.Score.Mean)
			}
			if (run.FileScales != common.Hash{}) != c.counts {
				t.Errorf("run names %s", run.FileScales)
			}
			for _, s := range []repute.Score{newest(t, db, 0), final(t, db, 0)} {
				if s.FileScales != run.FileScales {
					t.Errorf("a score of the run, final %v, names %s", s.Final, s.FileScales)
				}
				pin := query.ScorePin{Agent: s.Agent, Block: s.Block.Number, Params: s.Params, Tags: s.Tags,
					Roots: s.Roots,
					Links: s.Links, Sources: s.Sources, Credentials: s.Credentials, Evidence: s.Evidence,
					Outcome: replay.HashInput(s.Result), VerifiedTo: s.VerifiedTo, FileScales: s.FileScales}
				if _, err := query.PinnedScore(t.Context(), db, pin); s.Final && err != nil {
					t.Errorf("pinned: %v", err)
				}
				pin.FileScales = common.Hash{1}
				if _, err := query.PinnedScore(t.Context(), db, pin); !errors.Is(err, repute.ErrNotFound) {
					t.Errorf("pinned with other scales: %v", err)
				}
			}
			// what is read later changes nothing of the run
			_, err = db.Pool().Exec(t.Context(), "delete from parses")
			ok(t, err)
			again, err := explain.NewReader(db, explain.Options{})
			ok(t, err)
			_, err = again.Replay(t.Context(), a.Score.Agent, 20)
			ok(t, err)
		})
	}
}

// A reviewed writer makes an agent thin, by a rule of its own for a tag that nobody else knows.
func TestReviewedWriterMakesAnAgentThin(t *testing.T) {
	t.Parallel()
	l := newLedger(14)
	db, _ := l.fresh(t)
	s := l.state()
	l.mine(s, s.mint(person(9))...)
	e := s.rate(0, person(20), 0).(repute.NewFeedback)
	e.Value, e.Decimals, e.Tag1 = big.NewInt(1), 0, "grade"
	l.mine(s, e)
	l.pad(20)
	l.store(t, db, 20)
	ok(t, rootdb.AddRoots(t.Context(), db, 9, repute.DefaultRoots, []repute.TrustRoot{{Address: person(20),
		Class: repute.ReviewedWriter, Weight: repute.MaxWriterWeight, Reason: "a test", Rules: `[{"tags":["grade"],
		"channel":"quality","unit":"grade","better":"lower","range":[1,6],"weight":1,"curve":[[1,1],[6,-1]],"reason":"r"}]`}},
		false))
	start(t, db)
	settle(t, db, 9, 20)
	got := newest(t, db, 0)
	if got.Status != trust.Thin || got.Mean <= 0 || got.Mean > 10_000 {
		t.Errorf("%+v", got)
	}
	r, err := explain.NewReader(db, explain.Options{})
	ok(t, err)
	_, err = r.Replay(t.Context(), got.Agent, 20)
	ok(t, err)
}
