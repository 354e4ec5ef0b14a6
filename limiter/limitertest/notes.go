package limitertest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/limiter"
)

// Noter checks that what open makes is a [limiter.Noter]: lists that are bounded,
// end by themselves, and in a flood keep what they had and what lasts longest. It
// opens several, each of which must be empty at first or keep lists of its own, and
// read the clock that it is given.
func Noter(t *testing.T, open func(t *testing.T, now func() time.Time) limiter.Noter) {
	for name, check := range map[string]func(*lists){
		"a note is listed until it ends":                          notesEnd,
		"a key has one note, and keeps its later end":             oneNoteAKey,
		"what is struck is gone, and nothing else":                strikes,
		"hostile keys and labels come back as they were":          hostileNotes,
		"a flood displaces the middle, not the first or the last": flood,
		"notes, strikes and listings at one time":                 notesAtOneTime,
	} {
		t.Run(name, func(t *testing.T) {
			c := new(clock)
			check(&lists{t, open(t, c.now), c})
		})
	}
}

type lists struct {
	t     *testing.T
	noter limiter.Noter
	clock *clock
}

func (l *lists) note(list, key, label string, in time.Duration) {
	l.t.Helper()
	require.NoError(l.t, l.noter.Note(l.t.Context(), []limiter.Note{{List: list, Key: key, Label: []byte(label), Until: l.clock.now().Add(in)}}))
}

// keys of lists, as they are listed.
func (l *lists) keys(names ...string) []string {
	l.t.Helper()
	notes, err := l.noter.Noted(l.t.Context(), names)
	require.NoError(l.t, err)
	keys := []string{}
	for _, n := range notes {
		keys = append(keys, n.Key)
	}
	return keys
}

func notesEnd(l *lists) {
	require.Empty(l.t, l.keys("a", "b"))
	l.note("a", "one", "first", time.Minute)
	l.note("a", "two", "second", time.Hour)
	l.note("b", "one", "third", 100*24*time.Hour)
	notes, err := l.noter.Noted(l.t.Context(), []string{"b", "a", "none"})
	require.NoError(l.t, err)
	require.Len(l.t, notes, 3)
	for i, want := range []limiter.Note{
		{List: "b", Key: "one", Label: []byte("third"), Until: l.clock.now().Add(100 * 24 * time.Hour)},
		{List: "a", Key: "two", Label: []byte("second"), Until: l.clock.now().Add(time.Hour)},
		{List: "a", Key: "one", Label: []byte("first"), Until: l.clock.now().Add(time.Minute)},
	} {
		require.True(l.t, want.Until.Equal(notes[i].Until), "%v, want %v", notes[i].Until, want.Until)
		want.Until, notes[i].Until = time.Time{}, time.Time{}
		require.Equal(l.t, want, notes[i])
	}
	l.clock.advance(time.Minute)
	require.Equal(l.t, []string{"two"}, l.keys("a"))
	l.clock.advance(time.Hour)
	require.Empty(l.t, l.keys("a"))
	require.Equal(l.t, []string{"one"}, l.keys("b"))

	ctx, cancel := context.WithCancel(l.t.Context())
	cancel()
	require.Error(l.t, l.noter.Note(ctx, []limiter.Note{{List: "a", Key: "late", Until: l.clock.now().Add(time.Hour)}}))
	require.Error(l.t, l.noter.Strike(ctx, "b", []string{"one"}))
	_, err = l.noter.Noted(ctx, []string{"b"})
	require.Error(l.t, err)
	require.Equal(l.t, []string{"one"}, l.keys("a", "b"))
	require.NoError(l.t, l.noter.Note(l.t.Context(), nil))
}

func oneNoteAKey(l *lists) {
	l.note("a", "k", "old", time.Hour)
	l.note("a", "k", "new", time.Minute)
	notes, err := l.noter.Noted(l.t.Context(), []string{"a"})
	require.NoError(l.t, err)
	require.Len(l.t, notes, 1)
	require.Equal(l.t, "new", string(notes[0].Label))
	require.True(l.t, l.clock.now().Add(time.Hour).Equal(notes[0].Until))
	l.note("a", "k", "new", 2*time.Hour)
	l.clock.advance(time.Hour)
	require.Equal(l.t, []string{"k"}, l.keys("a"))
}

func strikes(l *lists) {
	for _, key := range []string{"x", "y", "z"} {
		l.note("a", key, "", time.Hour)
		l.note("b", key, "", time.Hour)
	}
	require.NoError(l.t, l.noter.Strike(l.t.Context(), "a", []string{"x", "z", "never there"}))
	require.NoError(l.t, l.noter.Strike(l.t.Context(), "none", []string{"x"}))
	require.NoError(l.t, l.noter.Strike(l.t.Context(), "b", nil))
	require.Equal(l.t, []string{"y"}, l.keys("a"))
	require.Len(l.t, l.keys("b"), 3)
}

func hostileNotes(l *lists) {
	hostile := []string{"", " ", "\x00", "{a}", "*", "'\"\r\n", "\xff\xfe", "nil", "é"}
	for i, s := range hostile {
		l.note("a", s, s, time.Duration(i+1)*time.Hour)
	}
	notes, err := l.noter.Noted(l.t.Context(), []string{"a"})
	require.NoError(l.t, err)
	require.Len(l.t, notes, len(hostile))
	for i, n := range notes {
		require.Equal(l.t, hostile[len(hostile)-1-i], n.Key)
		require.Equal(l.t, n.Key, string(n.Label))
	}
}

// A million invented names is so many floods; one is enough to see who goes.
func flood(l *lists) {
	for i := range 100 {
		l.note("a", fmt.Sprint("before ", i), "", time.Hour)
	}
	l.note("a", "locked", "", 24*time.Hour)
	l.clock.advance(time.Second)
	batch := func(from, n int) {
		var notes []limiter.Note
		for i := range n {
			notes = append(notes, limiter.Note{List: "a", Key: fmt.Sprint("flood ", from+i), Until: l.clock.now().Add(time.Hour)})
		}
		require.NoError(l.t, l.noter.Note(l.t.Context(), notes))
		l.clock.advance(time.Millisecond)
	}
	for from := 0; from < 5*limiter.MaxNotes; from += 200 {
		batch(from, 200)
	}
	l.note("a", "meanwhile", "", time.Hour)
	l.clock.advance(time.Millisecond)
	batch(100_000, 300)
	keys := l.keys("a")
	require.Len(l.t, keys, limiter.MaxNotes)
	require.Equal(l.t, "locked", keys[0])
	require.Contains(l.t, keys, "meanwhile")
	for i := range 100 {
		require.Contains(l.t, keys, fmt.Sprint("before ", i))
	}
	require.Empty(l.t, l.keys("b"))
	batch(200_000, 600)
	require.NotContains(l.t, l.keys("a"), "meanwhile", "half a list of others has come since")
	l.clock.advance(time.Hour)
	require.Equal(l.t, []string{"locked"}, l.keys("a"))
}

func notesAtOneTime(l *lists) {
	var busy sync.WaitGroup
	for n := range 8 {
		busy.Go(func() {
			for i := range 30 {
				key := fmt.Sprint(n, " ", i)
				err := l.noter.Note(l.t.Context(), []limiter.Note{{List: "a", Key: key, Until: l.clock.now().Add(time.Hour)}})
				if err == nil && i%2 == 0 {
					err = l.noter.Strike(l.t.Context(), "a", []string{key})
				}
				if err == nil {
					_, err = l.noter.Noted(l.t.Context(), []string{"a", "b"})
				}
				if err != nil {
					l.t.Errorf("%s: %v", key, err)
				}
			}
		})
	}
	busy.Wait()
	require.Len(l.t, l.keys("a"), 8*15)
}
