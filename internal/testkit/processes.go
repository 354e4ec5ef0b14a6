package testkit

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// Processes are this test again, in processes of their own, which answer the test
// that started them. A test that uses them begins so:
//
//	if config, ok := testkit.InProcess(); ok {
//		store := open(config)
//		testkit.Answer(t, func(question string) string { … })
//		return
//	}
//	children := testkit.StartProcesses(t, 4, config)
//	answers := children.Ask("…") // all at one instant, as often as needed
type Processes struct {
	t        testing.TB
	children []child
}

type child struct {
	questions *os.File
	answers   *bufio.Reader
	output    *Buffer
}

// inProcess is the variable that tells a child what it is, and its configuration.
const inProcess = "AUTHGUARD_TEST_PROCESS"

// InProcess reports that this process is one of Processes, and what it was given.
func InProcess() (config string, ok bool) { return os.LookupEnv(inProcess) }

// StartProcesses starts n processes of t, a test that is no part of another. They
// end with it.
func StartProcesses(t testing.TB, n int, config string) *Processes {
	t.Helper()
	p := &Processes{t: t}
	for range n {
		p.start(config)
	}
	return p
}

func (p *Processes) start(config string) {
	p.t.Helper()
	hear, questions, err := os.Pipe()
	if err != nil {
		p.t.Fatal(err)
	}
	answers, say, err := os.Pipe()
	if err != nil {
		p.t.Fatal(err)
	}
	c := child{questions: questions, answers: bufio.NewReader(answers), output: new(Buffer)}
	cmd := exec.Command(os.Args[0], "-test.run=^"+p.t.Name()+"$", "-test.count=1")
	cmd.Env = append(os.Environ(), inProcess+"="+config)
	cmd.Stdout, cmd.Stderr = c.output, c.output
	cmd.ExtraFiles = []*os.File{hear, say}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	hear.Close()
	say.Close()
	p.t.Cleanup(func() {
		questions.Close() // which ends its test
		timer := time.AfterFunc(10*time.Second, func() { cmd.Process.Kill() })
		defer timer.Stop()
		if err := cmd.Wait(); err != nil {
			p.t.Errorf("a process: %v\n%s", err, c.output)
		}
		answers.Close()
	})
	p.children = append(p.children, c)
}

// lead is how long before its instant a question is sent, for all to have it.
const lead = 3 * time.Millisecond

// Ask asks all processes the same, at one instant, and returns their answers. Both
// are text of one line.
func (p *Processes) Ask(question string) []string {
	p.t.Helper()
	at := time.Now().Add(lead).UnixNano()
	for _, c := range p.children {
		if _, err := fmt.Fprintf(c.questions, "%d %s\n", at, question); err != nil {
			p.t.Fatalf("a process: %v\n%s", err, c.output)
		}
	}
	var answers []string
	for _, c := range p.children {
		answer, err := c.answers.ReadString('\n')
		if err != nil {
			p.t.Fatalf("a process: %v\n%s", err, c.output)
		}
		answers = append(answers, strings.TrimSuffix(answer, "\n"))
	}
	return answers
}

// Answer answers the questions of the test that started this process, until there
// are no more.
func Answer(t testing.TB, answer func(question string) string) {
	t.Helper()
	hear, say := os.NewFile(3, "questions"), os.NewFile(4, "answers")
	for questions := bufio.NewScanner(hear); questions.Scan(); {
		var at int64
		instant, question, _ := strings.Cut(questions.Text(), " ")
		if _, err := fmt.Sscan(instant, &at); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Until(time.Unix(0, at)))
		if _, err := fmt.Fprintln(say, answer(question)); err != nil {
			t.Fatal(err)
		}
	}
}
