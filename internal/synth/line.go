package synth

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
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

// parseLine reads a line back. Speed is the point: only what appendLine wrote is
// understood.
func parseLine(line []byte) (*types.Log, error) {
	p := lineParser{rest: line}
	l := &types.Log{Topics: make([]common.Hash, 0, 4)}
	p.bytes(lineHead, l.Address[:])
	for sep := lineTopics; bytes.HasPrefix(p.rest, []byte(sep)); sep = `","0x` {
		l.Topics = append(l.Topics, common.Hash{})
		p.bytes(sep, l.Topics[len(l.Topics)-1][:])
	}
	l.Data = p.data(`"],"data":"0x`)
	l.BlockNumber = p.number(`","blockNumber":"0x`)
	p.bytes(lineTx, l.TxHash[:])
	l.TxIndex = uint(p.number(`","transactionIndex":"0x`))
	p.bytes(`","blockHash":"0x`, l.BlockHash[:])
	l.BlockTimestamp = p.number(`","blockTimestamp":"0x`)
	l.Index = uint(p.number(`","logIndex":"0x`))
	if p.err != nil {
		return nil, fmt.Errorf("stored log: %w", p.err)
	}
	return l, nil
}

// lineTransaction reads the hash of the transaction that emitted a line's log.
func lineTransaction(line []byte) (hash common.Hash, err error) {
	p := lineParser{rest: line[max(0, bytes.Index(line, []byte(lineTx))):]}
	p.bytes(lineTx, hash[:])
	if p.err != nil {
		return hash, fmt.Errorf("stored log: %w", p.err)
	}
	return hash, nil
}

// lineParser eats a line from the left and keeps the first error.
type lineParser struct {
	rest []byte
	err  error
}

func (p *lineParser) skip(prefix string) {
	rest, ok := bytes.CutPrefix(p.rest, []byte(prefix))
	if !ok && p.err == nil {
		p.err = fmt.Errorf("%q is missing", prefix)
	}
	p.rest = rest
}

// bytes reads as many as fit into b.
func (p *lineParser) bytes(prefix string, b []byte) {
	p.skip(prefix)
	if p.err != nil {
		return
	}
	if len(p.rest) < 2*len(b) {
		p.err = io.ErrUnexpectedEOF
		return
	}
	if _, err := hex.Decode(b, p.rest[:2*len(b)]); err != nil {
		p.err = err
	}
	p.rest = p.rest[2*len(b):]
}

// quoted gives everything up to the closing quote.
func (p *lineParser) quoted(prefix string) []byte {
	p.skip(prefix)
	n := bytes.IndexByte(p.rest, '"')
	if n < 0 || p.err != nil {
		return nil
	}
	digits := p.rest[:n]
	p.rest = p.rest[n:]
	return digits
}

func (p *lineParser) data(prefix string) []byte {
	digits := p.quoted(prefix)
	b := make([]byte, len(digits)/2)
	if _, err := hex.Decode(b, digits); err != nil && p.err == nil {
		p.err = err
	}
	return b
}

func (p *lineParser) number(prefix string) uint64 {
	n, err := strconv.ParseUint(string(p.quoted(prefix)), 16, 64)
	if err != nil && p.err == nil {
		p.err = err
	}
	return n
}

// cutLine splits off the first line, with its end.
func cutLine(b []byte) (line, rest []byte) {
	n := bytes.IndexByte(b, '\n') + 1
	if n == 0 {
		return b, nil
	}
	return b[:n], b[n:]
}
