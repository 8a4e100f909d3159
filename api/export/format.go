package export

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"repute"
)

// Formats of exports.
const (
	NDJSON  = "ndjson"
	Parquet = "parquet"
)

// layout is the version of the columns and their encoding, which Parquet files name as their writer. Bytes depend on it
// and not on the build of the program.
const layout = "1"

// checkFormat returns repute.ErrInvalid for a format that is none. The empty one is NDJSON.
func checkFormat(name string) (string, error) {
	switch name {
	case "", NDJSON:
		return NDJSON, nil
	case Parquet:
		return Parquet, nil
	}
	return "", repute.Invalid("format", fmt.Sprintf("%.40q is no format", name), NDJSON+" or "+Parquet)
}

// mediaType returns the Content-Type of a format.
func mediaType(format string) string {
	if format == Parquet {
		return "application/vnd.apache.parquet"
	}
	return "application/x-ndjson"
}

// encoder writes the rows of one file.
type encoder[R any] interface {
	// Write adds rows; they are a row group of a Parquet file.
	Write(rows []R) error
	Close() error
}

// newEncoder returns an encoder of a format that checkFormat knows.
func newEncoder[R any](format string, w io.Writer) encoder[R] {
	if format == Parquet {
		return &parquetFile[R]{parquet.NewGenericWriter[R](w,
			parquet.Compression(&zstd.Codec{Level: zstd.SpeedFastest, Concurrency: 1}),
			parquet.CreatedBy("repute export", layout, ""), parquet.KeyValueMetadata("repute.layout", layout))}
	}
	lines := &jsonLines[R]{out: bufio.NewWriterSize(w, 64<<10)}
	lines.enc = json.NewEncoder(lines.out)
	lines.enc.SetEscapeHTML(false)
	return lines
}

// jsonLines writes one JSON object per line.
type jsonLines[R any] struct {
	out *bufio.Writer
	enc *json.Encoder
}

// Write implements encoder.
func (l *jsonLines[R]) Write(rows []R) error {
	for i := range rows {
		if err := l.enc.Encode(&rows[i]); err != nil {
			return err
		}
	}
	return nil
}

// Close implements encoder.
func (l *jsonLines[R]) Close() error { return l.out.Flush() }

// parquetFile writes a Parquet file.
type parquetFile[R any] struct{ out *parquet.GenericWriter[R] }

// Write implements encoder.
func (p *parquetFile[R]) Write(rows []R) error {
	if len(rows) == 0 {
		return nil
	}
	if _, err := p.out.Write(rows); err != nil {
		return err
	}
	return p.out.Flush()
}

// Close implements encoder.
func (p *parquetFile[R]) Close() error { return p.out.Close() }
