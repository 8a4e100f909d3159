package resolver

import (
	"bufio"
	"compress/gzip"
	"errors"
	"io"
)

const (
	// maxRatio exceeds the ratio of documents (about 10) and is below that of gzip bombs (about
	// 1,000).
	maxRatio = 100
	// ratioFloor exempts small documents, whose repetition is harmless.
	ratioFloor = 64 << 10
)

// isGzip reports whether bytes begin as gzip does.
func isGzip(b []byte) bool { return len(b) > 2 && b[0] == 0x1f && b[1] == 0x8b }

// countingReader counts the bytes that the decompressor read, and keeps the error of its source,
// which distinguishes a broken connection from broken data.
type countingReader struct {
	*bufio.Reader
	n   int64
	err error
}

// Read counts bytes read in bulk.
func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
	c.note(err)
	return n, err
}

// ReadByte counts single bytes, which the decompressor mostly reads.
func (c *countingReader) ReadByte() (byte, error) {
	b, err := c.Reader.ReadByte()
	if err == nil {
		c.n++
	}
	c.note(err)
	return b, err
}

// note remembers an error of the connection.
func (c *countingReader) note(err error) {
	if err != nil && !errors.Is(err, io.EOF) {
		c.err = err
	}
}

// failure returns why compressed bytes could not be read: the connection's error, or invalid gzip.
func (c *countingReader) failure(err error) error {
	if c.err != nil {
		return c.err
	}
	return final(ReasonBadGzip, "%w", err)
}

// inflate reads at most limit decompressed bytes and stops early at gzip bombs.
func inflate(r io.Reader, limit int64) ([]byte, error) {
	in := &countingReader{Reader: bufio.NewReader(r)}
	zr, err := gzip.NewReader(in)
	if err != nil {
		return nil, in.failure(err)
	}
	var out []byte
	for int64(len(out)) <= limit {
		chunk := make([]byte, 16<<10)
		n, err := zr.Read(chunk)
		out = append(out, chunk[:n]...)
		if len(out) > ratioFloor && int64(len(out)) > maxRatio*in.n {
			return nil, final(ReasonRatio, "%d bytes out of %d", len(out), in.n)
		}
		if errors.Is(err, io.EOF) {
			return bounded(out, limit)
		}
		if err != nil {
			return nil, in.failure(err)
		}
	}
	return bounded(out, limit)
}

// bounded refuses more bytes than a limit.
func bounded(b []byte, limit int64) ([]byte, error) {
	if int64(len(b)) > limit {
		return nil, final(ReasonTooLarge, "more than %d bytes", limit)
	}
	return b, nil
}
