package synth

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"repute"
)

// Names of a history's files.
const (
	logsFile   = "logs.json"
	blocksFile = "blocks"
	metaFile   = "meta.json"
	stateFile  = "state"
)

// meta is what a history's directory says about it.
type meta struct {
	Spec      Spec
	Blocks    uint64 // from 0 to the head
	LastEvent uint64 // the newest block with logs
	Counts    map[string]int
	// Marks has one log of every kind somewhere in the middle: the one whose
	// ordinal is the highest power of two.
	Marks map[repute.EventKind]Position
	Tail  Position // the newest NewFeedback
}

// writer appends blocks to a history's files.
type writer struct {
	dir    string
	lines  *os.File
	index  *os.File
	lineTo *bufio.Writer
	rowTo  *bufio.Writer
	buf    []byte

	meta   meta
	enc    *encoder
	counts [repute.KindEIP712DomainChanged + 1]int
	parent common.Hash // of the next block
	offset uint64      // of the next line, in bytes
	txs    uint64      // written so far
}

// newWriter creates the files in a directory that is there. close MUST be called, also after an error of add.
func newWriter(dir string, spec Spec, e *encoder) (*writer, error) {
	w := &writer{dir: dir, meta: meta{Spec: spec, Counts: map[string]int{}, Marks: map[repute.EventKind]Position{}},
		enc: e}
	var err error
	if w.lines, err = os.Create(filepath.Join(dir, logsFile)); err != nil {
		return nil, fmt.Errorf("build history: %w", err)
	}
	if w.index, err = os.Create(filepath.Join(dir, blocksFile)); err != nil {
		w.close()
		return nil, fmt.Errorf("build history: %w", err)
	}
	w.lineTo, w.rowTo = bufio.NewWriterSize(w.lines, 1<<20), bufio.NewWriterSize(w.index, 1<<20)
	return w, nil
}

// close closes the files without flushing: a history is whole only after finish.
func (w *writer) close() {
	for _, f := range []*os.File{w.lines, w.index} {
		if f != nil {
			f.Close()
		}
	}
}

// add seals the next block and writes it.
func (w *writer) add(list []transaction) error {
	number := w.meta.Blocks
	b := seal(number, w.parent, w.meta.Spec.Seed, w.txs, list)
	b.offset = w.offset
	w.buf = w.buf[:0]
	for _, tx := range list {
		for _, l := range tx.logs {
			w.buf = appendLine(w.buf, l)
			w.note(l)
		}
	}
	if _, err := w.lineTo.Write(w.buf); err != nil {
		return fmt.Errorf("build history: %w", err)
	}
	w.offset += uint64(len(w.buf))
	w.txs += uint64(len(list))
	w.parent = b.hash
	if w.meta.Blocks++; b.logs > 0 {
		w.meta.LastEvent = number
	}
	w.buf = b.append(w.buf[:0])
	if _, err := w.rowTo.Write(w.buf); err != nil {
		return fmt.Errorf("build history: %w", err)
	}
	return nil
}

// note counts a log and marks it.
func (w *writer) note(l *types.Log) {
	kind := w.enc.kindOf(l.Topics[0])
	w.counts[kind]++
	at := Position{Block: l.BlockNumber, LogIndex: uint64(l.Index)}
	if n := w.counts[kind]; n&(n-1) == 0 {
		w.meta.Marks[kind] = at
	}
	if kind == repute.KindNewFeedback {
		w.meta.Tail = at
	}
}

// finish stores the final state, the index and at last the description: a
// directory that has one is whole.
func (w *writer) finish(s *state) error {
	if err := w.lineTo.Flush(); err != nil {
		return fmt.Errorf("build history: %w", err)
	}
	if err := w.rowTo.Flush(); err != nil {
		return fmt.Errorf("build history: %w", err)
	}
	s.sort()
	if err := s.saveTo(filepath.Join(w.dir, stateFile)); err != nil {
		return err
	}
	for kind, n := range w.counts {
		if n > 0 {
			w.meta.Counts[repute.EventKind(kind).String()] = n
		}
	}
	raw, err := json.MarshalIndent(w.meta, "", "  ")
	if err == nil {
		err = os.WriteFile(filepath.Join(w.dir, metaFile), raw, 0o644)
	}
	if err != nil {
		return fmt.Errorf("build history: %w", err)
	}
	return nil
}

// saveTo writes the tables in one file. A history whose file is cut short has no description and is not opened.
func (s *state) saveTo(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("build history: %w", err)
	}
	w := bufio.NewWriterSize(f, 1<<20)
	if err := errors.Join(s.save(w), w.Flush(), f.Close()); err != nil {
		return fmt.Errorf("build history: %w", err)
	}
	return nil
}
