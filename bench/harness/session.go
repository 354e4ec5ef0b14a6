package harness

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// A Session runs experiments one after the other. It is for one goroutine.
type Session struct {
	// Rounds is how many times each contender of an experiment is measured.
	Rounds int

	// Quick asks for less of everything: the figures mean nothing, but each
	// answer is checked.
	Quick bool

	// Out is told of each table as soon as it is there.
	Out io.Writer

	page        strings.Builder
	plots       map[string][]byte
	met, missed int
}

// Measure runs e and writes its table.
func (s *Session) Measure(e Experiment) (Result, error) {
	if err := e.validate(); err != nil {
		return nil, err
	}
	r := Result{}
	for range s.rounds(e.Rounds) {
		for _, c := range e.Contenders {
			runtime.GC() // nobody pays for what the one before left behind
			sample, err := c.Run()
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", e.Name, c.Name, err)
			}
			r[c.Name] = append(r[c.Name], sample)
		}
	}
	for _, g := range e.Goals {
		if _, _, met := r.judge(g); met {
			s.met++
		} else {
			s.missed++
		}
	}
	text := "### " + e.Name + "\n\n"
	if e.About != "" {
		text += e.About + "\n\n"
	}
	s.Write(text + tables(e, r) + "\n")
	return r, nil
}

// rounds are the session's, or at most so many.
func (s *Session) rounds(most int) int {
	n := max(1, s.Rounds)
	if most > 0 {
		n = min(n, most)
	}
	return n
}

// Section begins a family of experiments.
func (s *Session) Section(title, about string) {
	s.Write("## " + title + "\n\n" + about + "\n\n")
}

// Write puts Markdown on the page.
func (s *Session) Write(markdown string) {
	s.page.WriteString(markdown)
	fmt.Fprint(s.Out, markdown)
}

// Page is all that was written.
func (s *Session) Page() string { return s.page.String() }

// Plot puts an SVG on the page.
func (s *Session) Plot(file, alt string, svg []byte) {
	if s.plots == nil {
		s.plots = map[string][]byte{}
	}
	s.plots[file] = svg
	s.Write(fmt.Sprintf("![%s](%s/%s)\n\n", alt, plotFolder, file))
}

// plotFolder is where plots are, beside the page.
const plotFolder = "img/bench"

// Save writes benchmarks.md and the plots that it shows to the folder docs.
func (s *Session) Save(docs string) error {
	folder := filepath.Join(docs, plotFolder)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("harness: %w", err)
	}
	for file, svg := range s.plots {
		if err := os.WriteFile(filepath.Join(folder, file), svg, 0o644); err != nil {
			return fmt.Errorf("harness: %w", err)
		}
	}
	if err := os.WriteFile(filepath.Join(docs, "benchmarks.md"), []byte(s.Page()), 0o644); err != nil {
		return fmt.Errorf("harness: %w", err)
	}
	return nil
}

// Goals says how many goals were met and missed.
func (s *Session) Goals() (met, missed int) { return s.met, s.missed }
