package testserver

import (
	"context"
	"os"
	"testing"
)

// shared is what tests of a package have in common, until Main ends it.
var shared struct {
	keeper  keeper
	cluster *Clustered
}

// Main runs the tests of a package that share servers, ends the servers, whatever
// became of the tests, and exits. It is to be called by TestMain.
func Main(m *testing.M) {
	code := m.Run()
	for i := len(shared.keeper.ends) - 1; i >= 0; i-- {
		shared.keeper.ends[i]()
	}
	os.Exit(code)
}

// SharedCluster is [Cluster], started once for all tests of the package that leave it
// as they found it: they kill no node, leave no user and end what they move. It is
// empty and knows no script. Tests that share it do not run in parallel, and TestMain
// calls [Main].
func SharedCluster(t testing.TB) *Clustered {
	t.Helper()
	if shared.cluster == nil {
		shared.keeper.TB = t
		shared.cluster = Cluster(&shared.keeper)
	}
	c := &Clustered{t: t, nodes: shared.cluster.nodes}
	for _, n := range c.Nodes() {
		c.must(n.Do(t.Context(), "CLIENT", "UNPAUSE").Err())
		c.must(n.FlushAll(t.Context()).Err())
		c.must(n.ScriptFlush(t.Context()).Err())
	}
	return c
}

// keeper is a test whose servers outlive it.
type keeper struct {
	testing.TB
	ends []func()
}

func (k *keeper) Cleanup(end func()) { k.ends = append(k.ends, end) }

func (k *keeper) Context() context.Context { return context.Background() }

func (k *keeper) TempDir() string {
	k.Helper()
	dir, err := os.MkdirTemp("", "testserver")
	if err != nil {
		k.Fatal(err)
	}
	k.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
