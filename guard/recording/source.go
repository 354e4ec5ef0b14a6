package recording

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"authguard/guard"
)

// A source is one file, read line by line.
type source struct {
	name string
	file *os.File
	in   *bufio.Reader
	line int
	torn bool // its last line is half a line

	next line // the one that comes next
}

// maxLine bounds a line, in bytes.
const maxLine = 1 << 20

func openSource(name string) (*source, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	return &source{name: name, file: f, in: bufio.NewReaderSize(f, 64<<10)}, nil
}

// advance reads the next line that is not empty; io.EOF if there is none. A last
// line without its end was being written when the process died, or is now.
func (s *source) advance() error {
	for {
		text, err := s.readLine()
		if err != nil && (!errors.Is(err, io.EOF) || len(text) == 0) {
			return err
		}
		if text = bytes.TrimSpace(text); len(text) == 0 {
			continue
		}
		s.next = line{}
		e := json.Unmarshal(text, &s.next)
		switch {
		case e != nil && err != nil:
			s.torn = true
			return io.EOF
		case e != nil:
			return s.errorf("%w", e)
		case s.next.At.IsZero():
			return s.errorf("no record: at is missing")
		case s.next.Is == "":
			return s.errorf("no record: is is missing")
		}
		return nil
	}
}

// readLine is a line with its end; io.EOF comes with the last if that has none.
func (s *source) readLine() ([]byte, error) {
	s.line++
	var text []byte
	for {
		piece, err := s.in.ReadSlice('\n')
		if text == nil && err == nil {
			return piece, nil
		}
		if text = append(text, piece...); len(text) > maxLine {
			return nil, s.errorf("a line of more than %d bytes", maxLine)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return text, err
		}
	}
}

func (s *source) errorf(format string, args ...any) error {
	return fmt.Errorf("%s:%d: "+format, append([]any{s.name, s.line}, args...)...)
}

// sources are a heap by the instant of what comes next.
type sources []*source

func (h sources) Len() int { return len(h) }
func (h sources) Less(i, j int) bool {
	// By name at the same instant, so that the order of arguments makes no difference.
	return cmp.Or(h[i].next.At.Compare(h[j].next.At), cmp.Compare(h[i].name, h[j].name)) < 0
}
func (h sources) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *sources) Push(x any)   { *h = append(*h, x.(*source)) }
func (h *sources) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}

// An Attempt is what was asked, and how it ended. The record of an unlock is
// alone.
type Attempt struct {
	guard.Record
	Ended   guard.RecordKind // "" if the recording does not say
	EndedAt time.Time
	Place   string // file and line

	read int // its place in what was read
}
