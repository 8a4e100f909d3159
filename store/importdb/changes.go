package importdb

import (
	"context"

	"repute"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/changedata"
	"repute/store/eventdb"
)

// finish writes the changes for readers of the feed and counts the result.
func (m *merge) finish(ctx context.Context, reason string) (ImportResult, error) {
	if err := eventdb.StoreChanges(ctx, m.tx, m.chain.ID, m.changes(reason)); err != nil {
		return ImportResult{}, err
	}
	m.result.Applied, m.result.Waiting = map[string]int{}, map[string]int{}
	for i := range m.fresh {
		l := &m.fresh[i].Log
		if name := m.fresh[i].Event.Kind().String(); m.waits[chaindb.PointOf(l)] {
			m.result.Waiting[name]++
		} else {
			m.result.Applied[name]++
		}
	}
	err := m.tx.QueryRow(ctx, `
		select (select count(*) from agents where chain_id = $1), (select count(*) from pending where chain_id = $1)`,
		m.chain.ID).Scan(&m.result.Agents, &m.result.Pending)
	return m.result, store.Failed("count", err)
}

// changes returns a change for each rebuilt agent, and one without an agent when late events belong
// to none. Events of treasuries change nothing that readers of the feed see. An import above everything stored is one
// backfill.
func (m *merge) changes(reason string) []eventdb.ChangeRow {
	if len(m.fresh) == 0 {
		return nil
	}
	from, to := m.fresh[0].Log.BlockNumber, m.fresh[len(m.fresh)-1].Log.BlockNumber
	if !m.late && reason == "import" {
		return []eventdb.ChangeRow{eventdb.Backfilled(from, to)}
	}
	agents := make(map[repute.TokenID]bool, len(m.agents))
	for _, id := range m.agents {
		agents[id] = true
	}
	at := chaindb.Point{Block: max(to, m.chain.Cursor.Number)}
	data := changedata.Marshal(eventdb.RepairedData{Reason: reason})
	var rows []eventdb.ChangeRow
	for i := range m.fresh {
		if id, ok := repute.AgentOf(m.fresh[i].Event); ok {
			agents[id] = true
		} else if _, private := m.fresh[i].Event.(repute.TreasuryEvent); !private && len(rows) == 0 {
			rows = append(rows, eventdb.ChangeRow{Kind: changedata.KindRepaired, At: at, Data: data})
		}
	}
	for _, id := range sortedTokens(agents) {
		rows = append(rows, eventdb.ChangeRow{Kind: changedata.KindRepaired, At: at, ID: &id, Data: data})
	}
	return rows
}
