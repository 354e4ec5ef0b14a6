package recording

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/guard"
	"authguard/internal/testkit"
)

var start = time.Unix(1_800_000_000, 0).UTC()

func admitted(id uint64, at time.Duration) guard.Record {
	return guard.Record{At: start.Add(at), Is: guard.RecordAdmitted, ID: id, Action: "login", Account: "0123456789abcdef", IP: "fedcba9876543210"}
}

// all reads a recording to its end.
func all(t *testing.T, r *Reader) (attempts []Attempt) {
	t.Helper()
	for {
		a, err := r.Next()
		if errors.Is(err, io.EOF) {
			require.NoError(t, r.Close())
			return attempts
		}
		require.NoError(t, err)
		attempts = append(attempts, *a)
	}
}

func TestWhatIsRecordedIsReadBack(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "er")
	want := guard.Record{
		At: start, Is: guard.RecordRefused, ID: 1<<64 - 1, Action: "login", Account: "a", IP: "b", Networks: []string{"c", "d", "e"},
		Device: "f", APIKey: "g", Tenant: "h", Parts: map[string]string{"x": "y"}, Cost: 3, Rules: []string{"account"},
	}
	for range 2 { // the second process begins a file of its own
		r, err := Open(Config{Dir: dir})
		require.NoError(t, err)
		r.Record(want)
		r.Record(admitted(7, time.Second))
		r.Record(guard.Record{At: start.Add(2 * time.Second), Is: guard.RecordFailed, ID: 7})
		require.NoError(t, r.Close())
		require.Zero(t, r.Dropped())
		r.Record(want) // too late, and no harm
		require.NoError(t, r.Close())
		time.Sleep(2 * time.Millisecond) // names have milliseconds
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	require.Len(t, files, 2)
	if runtime.GOOS != "windows" {
		for _, f := range append(files, dir) {
			info, err := os.Stat(f)
			require.NoError(t, err)
			require.Zero(t, info.Mode().Perm()&0o077, f)
		}
	}
	log, err := OpenReader(files[0])
	require.NoError(t, err)
	got := all(t, log)
	require.Len(t, got, 2)
	require.Equal(t, want, got[0].Record)
	require.Equal(t, files[0]+":1", got[0].Place)
	require.Equal(t, admitted(7, time.Second), got[1].Record)
	require.Equal(t, guard.RecordFailed, got[1].Ended)
	require.Equal(t, start.Add(2*time.Second), got[1].EndedAt)
}

func TestFilesAreBounded(t *testing.T) {
	dir := t.TempDir()
	r, err := Open(Config{Dir: dir, FileMiB: 1, Files: 3})
	require.NoError(t, err)
	const n = 36_000 // some 5 MiB
	for i := range n {
		for len(r.queue) > queued/2 {
			time.Sleep(time.Millisecond)
		}
		r.Record(admitted(uint64(i+1), time.Duration(i)*time.Millisecond))
	}
	require.NoError(t, r.Close())
	require.Zero(t, r.Dropped())
	require.Eventually(t, func() bool { // old files are removed beside the writing
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		require.NoError(t, err)
		for _, f := range files {
			info, err := os.Stat(f)
			if err == nil {
				require.LessOrEqual(t, info.Size(), int64(1<<20))
			}
		}
		return len(files) <= 3
	}, 20*time.Second, 10*time.Millisecond)
	log, err := OpenReader(dir)
	require.NoError(t, err)
	got := all(t, log)
	require.Greater(t, len(got), 10_000)
	require.EqualValues(t, n, got[len(got)-1].ID, "the newest are kept")
	for i := range got[1:] {
		require.Equal(t, got[i].ID+1, got[i+1].ID, "none is missing between files")
	}
}

// A queue that is full costs records and never waits; the files say how many.
func TestWhatFindsNoPlaceIsDroppedAndCounted(t *testing.T) {
	var log testkit.Buffer
	dir := t.TempDir()
	r, err := Open(Config{Dir: dir, Log: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	require.NoError(t, r.Close()) // nobody takes from the queue any more
	for i := range queued + 10 {
		r.Record(admitted(uint64(i+1), 0))
	}
	require.EqualValues(t, 10, r.Dropped())

	r.done, r.once = make(chan struct{}), sync.Once{}
	r.closing = make(chan struct{})
	go r.work()
	require.NoError(t, r.Close())
	require.Contains(t, log.String(), "dropped=10")
	in, err := OpenReader(dir)
	require.NoError(t, err)
	require.Len(t, all(t, in), queued)
	require.EqualValues(t, 10, in.Missing)
}

// A disk that fails costs records, and leaves no half line inside a file.
func TestAFolderThatIsGoneCostsOnlyRecords(t *testing.T) {
	var log testkit.Buffer
	dir := filepath.Join(t.TempDir(), "recording")
	r, err := Open(Config{Dir: dir, Log: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	require.NoError(t, r.file.Close())
	require.NoError(t, os.RemoveAll(dir))
	require.NoError(t, os.WriteFile(dir, nil, 0o600)) // where the folder was
	r.Record(admitted(1, 0))
	require.Eventually(t, func() bool { return r.Dropped() == 1 }, 20*time.Second, time.Millisecond)
	require.NoError(t, os.Remove(dir))
	r.Record(admitted(2, 0))
	require.NoError(t, r.Close())
	require.Contains(t, log.String(), "records were dropped")
	in, err := OpenReader(dir)
	require.NoError(t, err)
	got := all(t, in)
	require.Len(t, got, 1)
	require.EqualValues(t, 2, got[0].ID)
	require.EqualValues(t, 1, in.Missing)
}

func TestOpenRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for want, c := range map[string]Config{
		"Dir is empty":    {},
		"FileMiB is -1":   {Dir: file, FileMiB: -1},
		"Files is 1":      {Dir: file, Files: 1},
		"not a directory": {Dir: file},
	} {
		_, err := Open(c)
		require.ErrorContains(t, err, want)
	}
}
