package recording

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/guard"
)

// written is a file of these lines.
func written(t *testing.T, name string, lines ...any) string {
	t.Helper()
	var b strings.Builder
	for _, l := range lines {
		if s, ok := l.(string); ok {
			b.WriteString(s)
			continue
		}
		text, err := json.Marshal(l)
		require.NoError(t, err)
		b.Write(append(text, '\n'))
	}
	require.NoError(t, os.WriteFile(name, []byte(b.String()), 0o600))
	return name
}

func ended(id uint64, at time.Duration, is guard.RecordKind) guard.Record {
	return guard.Record{At: start.Add(at), Is: is, ID: id}
}

func ids(attempts []Attempt) (ids []uint64) {
	for _, a := range attempts {
		ids = append(ids, a.ID)
	}
	return ids
}

// Several processes, whose files overlap, whose clocks differ and which were killed;
// in whatever order the files are named.
func TestRecordingsOfSeveralProcessesAreReadInTheOrderOfTime(t *testing.T) {
	dir := t.TempDir()
	a := filepath.Join(dir, "a")
	require.NoError(t, os.Mkdir(a, 0o700))
	written(t, filepath.Join(a, "attempts-2027.jsonl"), admitted(1, 0), admitted(3, 20*time.Second), ended(1, 21*time.Second, "succeeded"))
	written(t, filepath.Join(a, "attempts.jsonl"), admitted(6, 25*time.Second), admitted(5, 24*time.Second), "\n", ended(3, 26*time.Second, "failed"),
		ended(99, 27*time.Second, "failed"), `{"at":"2027-01-15T08:00:28Z","id":"7","is":"admi`)
	written(t, filepath.Join(a, "notes.txt"), "not a recording")
	b := written(t, filepath.Join(dir, "b.jsonl"), admitted(2, 10*time.Second), admitted(4, 22*time.Second), ended(4, 40*time.Second, "shed"),
		`{"at":"2027-01-15T08:00:41Z","id":"8","is":"admitted","action":"login","of_a_later_version":[1,2]}`+"\n",
		`{"at":"2027-01-15T08:00:42Z","is":"blocked"}`+"\n",
		line{Record: guard.Record{At: start.Add(43 * time.Second), Is: lineDropped}, Dropped: 5},
		guard.Record{At: start.Add(44 * time.Second), Is: guard.RecordUnlocked, Action: "login", Account: "x"})

	for _, names := range [][]string{{a, b}, {b, a}} {
		r, err := OpenReader(names...)
		require.NoError(t, err)
		got := all(t, r)
		require.Equal(t, []uint64{1, 2, 3, 4, 5, 6, 8, 0}, ids(got))
		require.Equal(t, guard.RecordSucceeded, got[0].Ended)
		require.Equal(t, guard.RecordFailed, got[2].Ended, "in the next file")
		require.Equal(t, guard.RecordShed, got[3].Ended)
		require.Empty(t, got[4].Ended)
		require.Equal(t, guard.RecordUnlocked, got[7].Is)
		require.EqualValues(t, 5, r.Missing)
		require.Equal(t, []int{1, 0, 1, 1}, []int{r.Torn, r.Late, r.Strange, r.Homeless})
	}
}

// A clock that was set back: time never runs backwards for who reads.
func TestWhatComesFarTooLateIsToldThen(t *testing.T) {
	file := written(t, filepath.Join(t.TempDir(), "x"), admitted(1, 0), admitted(2, time.Hour), admitted(3, time.Hour+time.Minute), admitted(4, time.Minute), admitted(5, 2*time.Hour))
	r, err := OpenReader(file)
	require.NoError(t, err)
	got := all(t, r)
	require.Equal(t, []uint64{1, 2, 4, 3, 5}, ids(got))
	require.Equal(t, 1, r.Late)
	require.Equal(t, start.Add(time.Hour), got[2].At)
}

// What is held at one time does not grow with the recording.
func TestARecordingOfAnySizeIsReadAsAStream(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x")
	f, err := os.Create(name)
	require.NoError(t, err)
	const n = 10_000
	for i := range n {
		fmt.Fprintf(f, `{"at":%q,"is":"admitted","id":"%d","action":"login"}`+"\n", start.Add(time.Duration(i)*time.Second).Format(time.RFC3339), i+1)
	}
	require.NoError(t, f.Close())
	r, err := OpenReader(name)
	require.NoError(t, err)
	read := 0
	for ; ; read++ {
		if _, err := r.Next(); err != nil {
			break
		}
		require.LessOrEqual(t, len(r.held), 32)
		require.LessOrEqual(t, len(r.byID), 32)
	}
	require.Equal(t, n, read)
}

func TestBadLinesAreToldWithTheirPlace(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{
		"{\n":                                  "x:2: unexpected end",
		`[1]` + "\n":                           "x:2: json: cannot unmarshal array",
		`{"is":"admitted"}` + "\n":             "x:2: no record: at is missing",
		`{"at":"2027-01-15T08:00:00Z"}` + "\n": "x:2: no record: is is missing",
		`{"at":"yesterday","is":"admitted"}` + "\n":                             "x:2: parsing time",
		`{"at":"2027-01-15T08:00:00Z","is":"admitted","action":"login"}` + "\n": "x:2: no attempt: action or id is missing",
		strings.Repeat("x", maxLine+1):                                          "x:2: a line of more than 1048576 bytes",
	} {
		r, err := OpenReader(written(t, filepath.Join(dir, "x"), admitted(1, 0), text))
		require.NoError(t, err)
		for err == nil {
			_, err = r.Next()
		}
		require.ErrorContains(t, err, want)
		require.NoError(t, r.Close())
	}
	_, err := OpenReader(filepath.Join(dir, "absent"))
	require.ErrorContains(t, err, "absent: no such file")
	_, err = OpenReader(t.TempDir())
	require.ErrorContains(t, err, "no recording in this folder")
}
