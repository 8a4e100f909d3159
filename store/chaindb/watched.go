package chaindb

import (
	"github.com/ethereum/go-ethereum/common"

	"repute"
)

// watchedColumns returns contracts as parameters for two columns of chains: their addresses and their first blocks.
func watchedColumns(list []repute.WatchedContract) (addresses [][]byte, from []int64) {
	addresses, from = [][]byte{}, []int64{}
	for _, w := range list {
		addresses, from = append(addresses, w.Address.Bytes()), append(from, int64(w.From))
	}
	return addresses, from
}

// scanWatched returns the contracts of such columns.
func scanWatched(addresses [][]byte, from []int64) (list []repute.WatchedContract) {
	for i, a := range addresses {
		list = append(list, repute.WatchedContract{Address: common.BytesToAddress(a), From: uint64(from[i])})
	}
	return list
}

// historyGaps returns the gaps in the events of contracts for blocks that were indexed without them. kind is that of
// the events that are missing.
func historyGaps(kind repute.EventKind, contracts []repute.WatchedContract, blocks repute.BlockRange,
	reason string) (gaps []Gap) {
	for _, w := range contracts {
		since := repute.BlockRange{From: max(blocks.From, w.From), To: blocks.To}
		if since.From <= since.To {
			gaps = append(gaps, Gap{Subject: HistorySubject + w.Address.Hex(),
				Gap: repute.Gap{Kind: kind, Blocks: since, Reason: reason}})
		}
	}
	return gaps
}
