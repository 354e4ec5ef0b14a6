package recording

import (
	"cmp"
	"container/heap"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"authguard/guard"
)

// patience is for how long, by the clock of the recording, an attempt is held back
// until its end is known and until all that came before it, from other processes
// too, was read. A pass that takes longer can give nothing back (guard.Pass).
const patience = 30 * time.Second

// A Reader reads recordings of any size, of several processes together, in the
// order of what happened. Fields and kinds of lines that it does not know it leaves out.
// It is for one goroutine.
type Reader struct {
	Missing  uint64 // records that were dropped when they were written
	Torn     int    // files that end in half a line
	Late     int    // attempts that stood more than half a minute behind later ones, and are told then
	Strange  int    // lines of unknown kinds
	Homeless int    // ends of attempts whose begin is not there

	open  sources
	all   []*source
	held  held
	byID  map[uint64]*Attempt
	lines int       // read
	last  time.Time // of what was read
	told  time.Time // of what was given out
}

// OpenReader opens files and folders, of whose files it takes those that a [Recorder] writes.
func OpenReader(names ...string) (*Reader, error) {
	r := &Reader{byID: make(map[uint64]*Attempt)}
	for _, name := range names {
		if err := r.add(name); err != nil {
			r.Close()
			return nil, err
		}
	}
	return r, nil
}

// add opens a file, or those of a folder.
func (r *Reader) add(name string) error {
	files, err := filesIn(name)
	if err != nil {
		return err
	}
	for _, file := range files {
		s, err := openSource(file)
		if err != nil {
			return err
		}
		r.all = append(r.all, s)
		if err := r.advance(s); err != nil {
			return err
		}
	}
	return nil
}

// filesIn are the files of a recording, by name.
func filesIn(name string) ([]string, error) {
	info, err := os.Stat(name)
	if err != nil || !info.IsDir() {
		return []string{name}, err
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		if ok, _ := filepath.Match("attempts*.jsonl", e.Name()); ok && !e.IsDir() {
			files = append(files, filepath.Join(name, e.Name()))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: no recording in this folder (attempts*.jsonl)", name)
	}
	return files, nil
}

// Close closes the files.
func (r *Reader) Close() (err error) {
	for _, s := range r.all {
		err = errors.Join(err, s.file.Close())
	}
	return err
}

// Next is what happened next, at no earlier instant than what was told before;
// io.EOF at the end. Other errors begin with file and line.
func (r *Reader) Next() (*Attempt, error) {
	for len(r.open) > 0 && !r.ripe() {
		if err := r.read(); err != nil {
			return nil, err
		}
	}
	if len(r.held) == 0 {
		return nil, io.EOF
	}
	a := heap.Pop(&r.held).(*Attempt)
	delete(r.byID, a.ID)
	if a.At.Before(r.told) {
		r.Late++
		a.At = r.told
	}
	r.told = a.At
	return a, nil
}

// ripe reports that the first of those held back need not wait any longer.
func (r *Reader) ripe() bool { return len(r.held) > 0 && r.last.Sub(r.held[0].At) > patience }

// read takes the line that comes next.
func (r *Reader) read() error {
	s := heap.Pop(&r.open).(*source)
	l := s.next
	r.lines++
	place := func() string { return fmt.Sprintf("%s:%d", s.name, s.line) }
	if l.At.After(r.last) {
		r.last = l.At
	}
	switch l.Is {
	case guard.RecordAdmitted, guard.RecordSilenced, guard.RecordRefused, guard.RecordUnavailable:
		if l.Action == "" || l.ID == 0 {
			return s.errorf("no attempt: action or id is missing")
		}
		a := &Attempt{Record: l.Record, Place: place(), read: r.lines}
		r.byID[l.ID] = a
		heap.Push(&r.held, a)
	case guard.RecordSucceeded, guard.RecordFailed, guard.RecordCancelled, guard.RecordShed:
		if a := r.byID[l.ID]; a != nil {
			a.Ended, a.EndedAt = l.Is, l.At
		} else {
			r.Homeless++
		}
	case guard.RecordUnlocked:
		heap.Push(&r.held, &Attempt{Record: l.Record, Place: place(), read: r.lines})
	case lineDropped:
		r.Missing += l.Dropped
	default:
		r.Strange++
	}
	return r.advance(s)
}

// advance reads on in s, and leaves it if nothing follows.
func (r *Reader) advance(s *source) error {
	switch err := s.advance(); {
	case err == nil:
		heap.Push(&r.open, s)
	case !errors.Is(err, io.EOF):
		return err
	case s.torn:
		r.Torn++
	}
	return nil
}

// held are the attempts that were read and not told, a heap by instant.
type held []*Attempt

func (h held) Len() int { return len(h) }
func (h held) Less(i, j int) bool {
	return cmp.Or(h[i].At.Compare(h[j].At), cmp.Compare(h[i].read, h[j].read)) < 0
}
func (h held) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *held) Push(x any)   { *h = append(*h, x.(*Attempt)) }
func (h *held) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return x
}
