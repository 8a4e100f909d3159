package synth

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
)

// table is a file of rows of one fixed size. Rows are structs of numbers; what
// is not exported in them is not stored.
type table[T any] struct {
	file *os.File
	size int
	rows int
}

// saveTable writes rows as a table's file.
func saveTable[T any](dir, name string, rows []T) error {
	f, err := os.Create(filepath.Join(dir, name))
	if err != nil {
		return fmt.Errorf("save %s: %w", name, err)
	}
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	var buf []byte
	for i := range rows {
		if buf, err = binary.Append(buf[:0], binary.LittleEndian, &rows[i]); err != nil {
			return fmt.Errorf("save %s: %w", name, err)
		}
		if _, err := w.Write(buf); err != nil {
			return fmt.Errorf("save %s: %w", name, err)
		}
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("save %s: %w", name, err)
	}
	return f.Close()
}

// openTable opens what saveTable wrote.
func openTable[T any](dir, name string) (*table[T], error) {
	f, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		return nil, fmt.Errorf("open history: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("open history: %w", err)
	}
	size := binary.Size(new(T))
	return &table[T]{file: f, size: size, rows: int(info.Size()) / size}, nil
}

// Close closes the file.
func (t *table[T]) Close() error { return t.file.Close() }

// at reads row i.
func (t *table[T]) at(i int) (row T, err error) {
	buf := make([]byte, t.size)
	if _, err := t.file.ReadAt(buf, int64(i)*int64(t.size)); err != nil {
		return row, fmt.Errorf("row %d of %s: %w", i, t.file.Name(), err)
	}
	_, err = binary.Decode(buf, binary.LittleEndian, &row)
	return row, err
}

// find gives the first row that is not before what is sought.
func (t *table[T]) find(before func(*T) bool) (int, error) {
	low, high := 0, t.rows
	for low < high {
		mid := (low + high) / 2
		row, err := t.at(mid)
		if err != nil {
			return 0, err
		}
		if before(&row) {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low, nil
}

// all reads every row in order.
func (t *table[T]) all() iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		r := bufio.NewReaderSize(io.NewSectionReader(t.file, 0, int64(t.rows)*int64(t.size)), 1<<18)
		buf := make([]byte, t.size)
		for range t.rows {
			row := new(T)
			_, err := io.ReadFull(r, buf)
			if err == nil {
				_, err = binary.Decode(buf, binary.LittleEndian, row)
			}
			if !yield(row, err) || err != nil {
				return
			}
		}
	}
}
