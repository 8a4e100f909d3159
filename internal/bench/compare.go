package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"repute/internal/bench/harness"
	"repute/internal/synth"
	"repute/store"
	"repute/store/importdb"
)

// compareDump compares the canonical dump of an index with the one that the
// history's generator makes of its own state. It returns the first difference,
// "" when there is none.
func compareDump(ctx context.Context, d *harness.Database, h *synth.History) (string, error) {
	db, err := store.Open(ctx, d.URL, store.Options{})
	if err != nil {
		return "", err
	}
	defer db.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	got := stream(func(w io.Writer) error { return importdb.Dump(ctx, db, w, synth.Chain().ID) })
	defer got.Close()
	want := stream(h.WriteDump)
	defer want.Close()
	return firstDifference(got, want)
}

// stream returns a reader of what write writes. Closing it ends the writing, whose next Write then fails. An error of
// write is that of the last Read.
func stream(write func(io.Writer) error) io.ReadCloser {
	r, w := io.Pipe()
	go func() { w.CloseWithError(write(w)) }()
	return r
}

// firstDifference compares line by line and keeps neither side, because dumps of large histories do not fit memory. A
// line that is longer than the buffer, such as a large document, is compared in pieces and counts as several.
func firstDifference(got, want io.Reader) (string, error) {
	a, b := bufio.NewReaderSize(got, 1<<20), bufio.NewReaderSize(want, 1<<20)
	for line := 1; ; line++ {
		x, errX := a.ReadSlice('\n')
		y, errY := b.ReadSlice('\n')
		if err := errors.Join(notEnd(errX), notEnd(errY)); err != nil {
			return "", fmt.Errorf("compare dumps: %w", err)
		}
		if !bytes.Equal(x, y) {
			const most = 300
			return fmt.Sprintf("line %d: the index has %.*s, the history %.*s", line, most, x, most, y), nil
		}
		if errors.Is(errX, io.EOF) && errors.Is(errY, io.EOF) {
			return "", nil
		}
	}
}

// notEnd passes over the end and lines longer than the buffer, which come in
// pieces of equal length.
func notEnd(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, bufio.ErrBufferFull) {
		return nil
	}
	return err
}
