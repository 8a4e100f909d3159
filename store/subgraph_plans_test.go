package store_test

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"repute/store/subgraphdb"
)

// TestSubgraphUsesIndexes explains pages of the large entities of the subgraph in the orders that SDKs send and in that
// of ids, and expects the index that has the order, and no table to be read as a whole.
func TestSubgraphUsesIndexes(t *testing.T) {
	t.Parallel()
	db, r := crowd(t)
	s := subgraphdb.Entities()
	for _, c := range []struct {
		entity, by string
		desc       bool
		field      string // that is compared with value by op
		op         subgraphdb.Op
		value      any
		index      string
	}{
		{"Agent", "id", false, "", "", nil, "agents_pkey"},
		{"Agent", "id", true, "", "", nil, "Backward using agents_pkey"},
		{"Agent", "id", false, "id", subgraphdb.Greater, "1:12", "agents_pkey"},
		{"Agent", "chainId", false, "", "", nil, "agents_pkey"},
		{"Agent", "createdAt", true, "", "", nil, "Backward using agents_registered"},
		{"Agent", "updatedAt", true, "totalFeedback", subgraphdb.Greater, "0", "Backward using agents_updated"},
		{"Agent", "lastActivity", true, "", "", nil, "Backward using agents_updated"},
		{"Agent", "lastActivity", false, "", "", nil, "using agents_registered"},
		{"AgentStats", "lastActivity", true, "", "", nil, "Backward using agents_updated"},
		{"Feedback", "id", false, "", "", nil, "feedback_pkey"},
		{"Feedback", "id", false, "id", subgraphdb.Greater, "1:12:", "feedback_pkey"},
		{"Feedback", "createdAt", true, "isRevoked", subgraphdb.Equal, false, "Backward using feedback_block"},
		{"Feedback", "createdAt", true, "agent", subgraphdb.In, "1:0", "Backward using feedback_newest"},
		{"Feedback", "id", false, "agent", subgraphdb.Equal, "1:0", "feedback_pkey"},
		{"FeedbackResponse", "id", false, "", "", nil, "responses_pkey"},
		{"FeedbackFile", "id", false, "", "", nil, "feedback_pkey"},
		{"FeedbackPoint", "id", true, "", "", nil, "Backward using feedback_block"},
		{"AgentRegistrationPoint", "timestamp", true, "", "", nil, "Backward using agents_registered"},
		{"AgentMetadata", "id", false, "", "", nil, "metadata_pkey"},
	} {
		e := s.Entity(c.entity)
		q := subgraphdb.Query{Entity: e, Columns: []*subgraphdb.Field{e.ID()}, First: 20, Skip: 20,
			Order: subgraphdb.Order{Field: e.Field(c.by), Desc: c.desc}}
		if c.field != "" {
			q.Where = subgraphdb.Filter{Field: e.Field(c.field), Op: c.op, Values: []any{c.value}}
		}
		r.take()
		err := subgraphdb.View(t.Context(), db, s, 1, func(ctx context.Context, snapshot *subgraphdb.Snapshot) error {
			r.take()
			_, err := snapshot.Read(ctx, q)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		name := c.entity + " by " + c.by + " " + c.field
		pages := 0
		for _, one := range r.take() {
			if !strings.Contains(one.sql, " as c0") {
				continue // it looks for a place
			}
			pages++
			plan := explain(t, db, "force_custom_plan", one)
			checkPlan(t, name, plan, one.sql)
			if !strings.Contains(plan, c.index) {
				t.Errorf("%s: no %s in\n%s\n%s", name, c.index, plan, one.sql)
			}
		}
		if pages != 1 {
			t.Errorf("%s: %d statements read a page", name, pages)
		}
	}
}

// TestSubgraphLooksUpFilesOnce: a page of agents with a file that is near the first row looks up each document once,
// for the columns and for the condition that there is one. Pages further on find their keys first.
func TestSubgraphLooksUpFilesOnce(t *testing.T) {
	t.Parallel()
	db, r := crowd(t)
	s := subgraphdb.Entities()
	agent := s.Entity("Agent")
	file := agent.Field("registrationFile")
	for skip, once := range map[int]bool{0: true, 100: true, 101: false} {
		q := subgraphdb.Query{Entity: agent, Columns: []*subgraphdb.Field{agent.ID(), file}, First: 50, Skip: skip,
			Where: subgraphdb.Filter{Field: file, Op: subgraphdb.Not, Values: []any{nil}},
			Order: subgraphdb.Order{Field: agent.Field("updatedAt"), Desc: true}}
		err := subgraphdb.View(t.Context(), db, s, 1, func(ctx context.Context, snapshot *subgraphdb.Snapshot) error {
			r.take()
			_, err := snapshot.Read(ctx, q)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		sql := r.take()[0].sql
		if n := strings.Count(sql, "from uris") + strings.Count(sql, "join uris"); (n == 1) != once {
			t.Errorf("behind %d rows documents are looked up %d times:\n%s", skip, n, sql)
		}
	}
}

// TestSubgraphSkips compares pages behind many rows with what Postgres says is there.
func TestSubgraphSkips(t *testing.T) {
	t.Parallel()
	db, _ := crowd(t)
	s := subgraphdb.Entities()
	agent := s.Entity("Agent")
	for _, skip := range []int{0, 50, 99, 100, 101, 9_999, 10_000, 10_001, 10_999, 11_000, 11_050, 12_003, 19_990,
		20_001, 50_000} {
		for by, column := range map[string]string{"updatedAt": "updated_block", "createdAt": "registered_block",
			"id": "1"} {
			for _, desc := range []bool{false, true} {
				direction := map[bool]string{false: "asc", true: "desc"}[desc]
				rows, err := db.Pool().Query(t.Context(),
					"select token_id::text from agents where chain_id = 1 order by "+column+"::bigint / 1 "+
						direction+", token_id::text collate \"C\" "+direction+" limit 50 offset $1", skip)
				if err != nil {
					t.Fatal(err)
				}
				want, err := pgx.CollectRows(rows, pgx.RowTo[string])
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				err = subgraphdb.View(t.Context(), db, s, 1,
					func(ctx context.Context, snapshot *subgraphdb.Snapshot) error {
						page, err := snapshot.Read(ctx,
							subgraphdb.Query{Entity: agent, Columns: []*subgraphdb.Field{agent.Field("agentId")},
								Order: subgraphdb.Order{Field: agent.Field(by), Desc: desc}, First: 50, Skip: skip})
						for _, r := range page {
							got = append(got, r.Cells[0].(string))
						}
						return err
					})
				if err != nil || !slices.Equal(got, want) {
					t.Errorf("%s %s behind %d: %v\n%v\n%v", by, direction, skip, err, got, want)
				}
			}
		}
	}
}

// TestSubgraphActivity: the order of agents by their last activity is the same whether it is computed for some or for
// all.
func TestSubgraphActivity(t *testing.T) {
	t.Parallel()
	db, _ := crowd(t)
	sqlExec(t, db,
		"update agents set updated_block = 30000 + token_id where token_id < 60") // which have feedback and validations
	s := subgraphdb.Entities()
	for _, entity := range []string{"Agent", "AgentStats"} {
		e := s.Entity(entity)
		for _, desc := range []bool{false, true} {
			page := func(skip, first int) (out []subgraphdb.Row) {
				err := subgraphdb.View(t.Context(), db, s, 1,
					func(ctx context.Context, snapshot *subgraphdb.Snapshot) (err error) {
						out, err = snapshot.Read(ctx,
							subgraphdb.Query{Entity: e, Columns: []*subgraphdb.Field{e.ID(), e.Field("lastActivity")},
								Order: subgraphdb.Order{Field: e.Field("lastActivity"), Desc: desc}, First: first,
								Skip: skip})
						return err
					})
				if err != nil {
					t.Fatal(err)
				}
				return out
			}
			if few, all := page(9_950, 100), page(10_000, 50); len(all) != 50 || !reflect.DeepEqual(few[50:], all) {
				t.Errorf("%s %t:\n%v\n%v", entity, desc, few, all)
			}
		}
	}
}
