package recording

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"gopkg.in/natefinch/lumberjack.v2"

	"authguard/guard"
)

// Config says where records go and how much room they may take: FileMiB × Files.
type Config struct {
	// Dir is the folder, of this process alone; made if missing.
	Dir string

	FileMiB int // of one file, in MiB; 0 means 64
	Files   int // kept; the oldest goes. 0 means 16, and the least is 2

	// Log is told, once a minute, of records that were dropped; nil means slog.Default.
	Log *slog.Logger
}

const (
	current   = "attempts.jsonl" // older files have an instant in their names
	queued    = 4096             // records that wait to be written
	maxWrite  = 64 << 10         // bytes, in one write
	complains = time.Minute
)

// A Recorder writes records to files. It is a guard.Recorder, safe for any number
// of goroutines. Make it with [Open] and end it with Close.
type Recorder struct {
	file    *lumberjack.Logger
	log     *slog.Logger
	queue   chan guard.Record
	dropped atomic.Uint64
	closing chan struct{}
	once    sync.Once // closes closing
	done    chan struct{}

	// The rest is the writer's.
	told       uint64 // of dropped, in the files
	torn       bool   // the last write may have left half a line
	complained time.Time
}

// A line is a record, or a number of records that are missing.
type line struct {
	guard.Record
	Dropped uint64 `json:"dropped,omitempty"`
}

// lineDropped is the kind of a line that tells of missing records.
const lineDropped guard.RecordKind = "dropped"

// Open begins a new file in c.Dir.
func Open(c Config) (*Recorder, error) {
	switch {
	case c.Dir == "":
		return nil, errors.New("recording: Config.Dir is empty")
	case c.FileMiB < 0:
		return nil, fmt.Errorf("recording: Config.FileMiB is %d, want at least 0", c.FileMiB)
	case c.Files < 0 || c.Files == 1:
		return nil, fmt.Errorf("recording: Config.Files is %d, want 0 or at least 2", c.Files)
	}
	if c.FileMiB == 0 {
		c.FileMiB = 64
	}
	if c.Files == 0 {
		c.Files = 16
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("recording: %w", err)
	}
	r := &Recorder{
		file:    &lumberjack.Logger{Filename: filepath.Join(c.Dir, current), MaxSize: c.FileMiB, MaxBackups: c.Files - 1},
		log:     c.Log,
		queue:   make(chan guard.Record, queued),
		closing: make(chan struct{}),
		done:    make(chan struct{}),
	}
	// Never behind the half line of a process that was killed.
	if err := r.file.Rotate(); err != nil {
		return nil, fmt.Errorf("recording: %w", err)
	}
	go r.work()
	return r, nil
}

// Record implements guard.Recorder. It does not wait.
func (r *Recorder) Record(rec guard.Record) {
	select {
	case r.queue <- rec:
	default:
		r.dropped.Add(1)
	}
}

// Dropped is how many records are missing in the files.
func (r *Recorder) Dropped() uint64 { return r.dropped.Load() }

// Close writes what is in the queue and closes the file. What is recorded later is
// not written.
func (r *Recorder) Close() error {
	r.once.Do(func() { close(r.closing) })
	<-r.done
	return r.file.Close()
}

func (r *Recorder) work() {
	defer close(r.done)
	for {
		select {
		case rec := <-r.queue:
			r.write(rec)
		case <-r.closing:
			for len(r.queue) > 0 {
				r.write(<-r.queue)
			}
			r.write() // how many were dropped
			return
		}
	}
}

// write writes records, and more that wait, at once.
func (r *Recorder) write(recs ...guard.Record) {
	var buf []byte
	n := uint64(0)
	add := func(l line) {
		text, err := json.Marshal(l)
		if err != nil { // an instant beyond the year 9999
			r.dropped.Add(1)
			return
		}
		buf = append(append(buf, text...), '\n')
	}
	for _, rec := range recs {
		add(line{Record: rec})
		n++
	}
	for len(buf) < maxWrite && len(r.queue) > 0 { // nobody else takes from it
		add(line{Record: <-r.queue})
		n++
	}
	dropped := r.dropped.Load()
	if dropped > r.told {
		add(line{Record: guard.Record{At: time.Now(), Is: lineDropped}, Dropped: dropped - r.told})
	}
	if err := r.append(buf); err != nil {
		r.dropped.Add(n)
		r.complain("err", err)
		return
	}
	if dropped > r.told {
		r.complain()
	}
	r.told = dropped
}

// append writes whole lines. After one that failed it begins a new file, so that
// only the end of a file can be half a line.
func (r *Recorder) append(lines []byte) error {
	if len(lines) == 0 {
		return nil
	}
	if r.torn {
		if err := r.file.Rotate(); err != nil {
			return err
		}
	}
	_, err := r.file.Write(lines)
	r.torn = err != nil
	return err
}

// complain logs, now and then, that records are missing.
func (r *Recorder) complain(attrs ...any) {
	if now := time.Now(); now.Sub(r.complained) >= complains {
		r.complained = now
		r.log.Error("recording: records were dropped", append(attrs, "dropped", r.dropped.Load())...)
	}
}
