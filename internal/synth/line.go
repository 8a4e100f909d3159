package synth

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// A line is one log as JSON, always with the same members in the same order,
// ending in a comma and a line break, so that a run of lines is the inside of an
// array.
const (
	lineEnd    = ",\n"
	lineHead   = `{"address":"0x`
	lineTopics = `","topics":["0x`
	lineTx     = `","transactionHash":"0x`
)

// appendLine writes a log whose position is filled in.
func appendLine(b []byte, l *types.Log) []byte {
	b = append(b, lineHead...)
	b = hex.AppendEncode(b, l.Address[:])
	for i := range l.Topics {
		if i == 0 {
			b = append(b, lineTopics...)
		} else {
			b = append(b, `","0x`...)
		}
		b = hex.AppendEncode(b, l.Topics[i][:])
	}
	b = append(b, `"],"data":"0x`...)
	b = hex.AppendEncode(b, l.Data)
	b = append(b, `","blockNumber":"0x`...)
	b = strconv.AppendUint(b, l.BlockNumber, 16)
	b = append(b, lineTx...)
	b = hex.AppendEncode(b, l.TxHash[:])
	b = append(b, `","transactionIndex":"0x`...)
	b = strconv.AppendUint(b, uint64(l.TxIndex), 16)
	b = append(b, `","blockHash":"0x`...)
	b = hex.AppendEncode(b, l.BlockHash[:])
	b = append(b, `","blockTimestamp":"0x`...)
	b = strconv.AppendUint(b, l.BlockTimestamp, 16)
	b = append(b, `","logIndex":"0x`...)
	b = strconv.AppendUint(b, uint64(l.Index), 16)
	return append(b, `","removed":false}`+lineEnd...)
}

// parseLines reads whole lines back.
func parseLines(lines []byte) (logs []*types.Log, err error) {
	logs = []*types.Log{}
	list := slices.Concat([]byte("["), bytes.TrimSuffix(lines, []byte(lineEnd)), []byte("]"))
	if err := json.Unmarshal(list, &logs); err != nil {
		return nil, fmt.Errorf("stored logs: %w", err)
	}
	return logs, nil
}

// lineTransaction reads the hash of the transaction that emitted a line's log.
func lineTransaction(line []byte) (hash common.Hash, err error) {
	_, rest, ok := bytes.Cut(line, []byte(lineTx))
	if !ok || len(rest) < 2*len(hash) {
		return hash, fmt.Errorf("stored log: %w", io.ErrUnexpectedEOF)
	}
	_, err = hex.Decode(hash[:], rest[:2*len(hash)])
	return hash, err
}

// cutLine splits off the first line, with its end.
func cutLine(b []byte) (line, rest []byte) {
	n := bytes.IndexByte(b, '\n') + 1
	if n == 0 {
		return b, nil
	}
	return b[:n], b[n:]
}
