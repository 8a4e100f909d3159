package socket

import (
	"bytes"
	"encoding/binary"
	"net"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// sunk is a connection that keeps what is written to it.
type sunk struct {
	net.Conn
	got bytes.Buffer
}

func (s *sunk) Write(p []byte) (int, error) { return s.got.Write(p) }
func (s *sunk) Close() error                { return nil }

// SetWriteDeadline does nothing.
func (s *sunk) SetWriteDeadline(time.Time) error { return nil }

// frame is a frame of a server.
func frame(payload int) []byte {
	f := []byte{0x81}
	switch {
	case payload < 126:
		f = append(f, byte(payload))
	case payload < 1<<16:
		f = binary.BigEndian.AppendUint16(append(f, 126), uint16(payload))
	default:
		f = binary.BigEndian.AppendUint64(append(f, 127), uint64(payload))
	}
	return append(f, bytes.Repeat([]byte{'x'}, payload)...)
}

// The close frame follows a complete frame and is the last bytes of the connection, for every division of frames into
// writes.
func TestCloseFrameIsBetweenFrames(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var stream []byte
		ends := map[int]bool{0: true}
		for range rapid.IntRange(1, 5).Draw(t, "frames") {
			stream = append(stream, frame(rapid.SampledFrom([]int{0, 1, 125, 126, 4000, 70_000}).Draw(t, "size"))...)
			ends[len(stream)] = true
		}
		conn := &sunk{}
		s := New(func() {})
		s.Conn = conn
		if _, err := s.Write([]byte("HTTP/1.1 101 Switching Protocols\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		conn.got.Reset()
		closeAt := rapid.IntRange(0, 8).Draw(t, "close before write")
		for n, rest := 0, stream; len(rest) > 0; n++ {
			if n == closeAt {
				s.End(Slow, "slow")
			}
			size := rapid.IntRange(1, len(rest)).Draw(t, "write")
			if _, err := s.Write(rest[:size]); err != nil {
				break
			}
			rest = rest[size:]
		}
		got := conn.got.Bytes()
		at := bytes.Index(got, []byte("\x88\x06\x0f\xa8slow"))
		if at < 0 {
			if !bytes.Equal(got, stream) {
				t.Fatalf("%d bytes of %d, and no close frame", len(got), len(stream))
			}
			return
		}
		if !bytes.Equal(got[:at], stream[:at]) || at+8 != len(got) || !ends[at] {
			t.Fatalf("the close frame is at %d of %d, frames end at %v", at, len(got), ends)
		}
	})
}
