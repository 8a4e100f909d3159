package cli

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"repute"
)

// WriteFile calls write with a file that gets its name only when it is complete. A device or a pipe is written directly
// and never replaced. The temporary file is in the same directory, because a rename works within one file system only,
// and begins with a dot. A link is followed first: the rename would replace the link and not the file that it leads to.
// A crash leaves the old file, and perhaps the temporary one.
func (p *Program) WriteFile(name string, write func(io.Writer) error) (err error) {
	if name == "-" {
		return write(p.Stdout)
	}
	if at, err := filepath.EvalSymlinks(name); err == nil {
		name = at
	}
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return writeInto(name, write)
	}
	dir := filepath.Dir(name)
	file, err := os.CreateTemp(dir, "."+filepath.Base(name)+".*")
	if err != nil {
		if failed := (*fs.PathError)(nil); errors.As(err, &failed) {
			err = fmt.Errorf("%s: %w", dir, failed.Err) // without the name of the temporary file
		}
		return repute.Invalid("output", err.Error(), "a file in a directory that can be written")
	}
	defer func() {
		if err != nil {
			_ = file.Close() // fails where it is closed already
			err = errors.Join(renamed(err, file.Name(), name), os.Remove(file.Name()))
		}
	}()
	if err := file.Chmod(0o644); err != nil {
		return err
	}
	if err := compressed(name, file, write); err != nil {
		return err
	}
	if err := errors.Join(file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), name)
}

// renamed returns an error of the temporary file with the name that the user gave. Users did not give the name of the
// temporary file, and cannot find it afterwards.
func renamed(err error, temporary, name string) error {
	var failed *fs.PathError
	var moved *os.LinkError
	switch {
	case errors.As(err, &failed) && failed.Path == temporary:
		return fmt.Errorf("%s %s: %w", failed.Op, name, failed.Err)
	case errors.As(err, &moved) && moved.Old == temporary:
		return fmt.Errorf("write %s: %w", name, moved.Err)
	}
	return err
}

// writeInto writes to an existing device or pipe.
func writeInto(name string, write func(io.Writer) error) error {
	file, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return repute.Invalid("output", err.Error(), "a file in a directory that can be written")
	}
	return errors.Join(compressed(name, file, write), file.Close())
}

// compressed compresses with gzip if the name ends in .gz.
func compressed(name string, w io.Writer, write func(io.Writer) error) error {
	if !strings.HasSuffix(name, ".gz") {
		return write(w)
	}
	zip := gzip.NewWriter(w)
	if err := write(zip); err != nil {
		return err
	}
	return zip.Close()
}

// OpenInput opens a file, or standard input for "-". repute.ErrInvalid if it cannot be read. The caller closes it;
// standard input stays open.
func (p *Program) OpenInput(name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(p.Stdin), nil
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, repute.Invalid("file", err.Error(), "give a readable file, or - for standard input")
	}
	return file, nil
}

// ReadInput reads the file that a flag or an argument names, or standard input for "-". repute.ErrInvalid of field if
// it cannot be read, or has more than most bytes: what was cut would be signed, sent or paid for as if it were whole.
func (p *Program) ReadInput(field, name string, most int64) ([]byte, error) {
	in, err := p.OpenInput(name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	b, err := io.ReadAll(io.LimitReader(in, most+1))
	switch {
	case err != nil:
		return nil, repute.Invalid(field, err.Error(), "a readable file")
	case int64(len(b)) > most:
		return nil, repute.Invalid(field, fmt.Sprintf("has more than %d bytes", most), "a shorter one")
	}
	return b, nil
}

// WriteNew writes a file that does not exist yet. repute.ErrInvalid if it does. O_EXCL makes the test and the creation
// one step. A failure to write leaves a part of the file.
func WriteNew(name string, b []byte, mode os.FileMode) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return repute.Invalid("file", err.Error(), "give a name that no file has")
	}
	if _, err := file.Write(b); err != nil {
		return fmt.Errorf("write %s: %w", name, errors.Join(err, file.Close()))
	}
	return file.Close()
}

// Unclosed returns a writer whose Close does nothing, for streams that outlive their use.
func Unclosed(w io.Writer) io.WriteCloser { return unclosed{w} }

// unclosed hides the Close of a writer.
type unclosed struct{ io.Writer }

// Close implements io.Closer.
func (unclosed) Close() error { return nil }

// Decompressed reads r, through gzip where it begins like that. The name of a file is not looked at. A file that begins
// like gzip and is none is an error here; one that is damaged further on is an error of the reader.
func Decompressed(r io.Reader) (*bufio.Reader, error) {
	in := bufio.NewReaderSize(r, 1<<16)
	if head, _ := in.Peek(2); !bytes.Equal(head, []byte{0x1f, 0x8b}) {
		return in, nil
	}
	zip, err := gzip.NewReader(in)
	if err != nil {
		return nil, err
	}
	return bufio.NewReaderSize(zip, 1<<16), nil
}
