package testserver

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Clustered is a Redis Cluster of three primaries, each with a replica.
type Clustered struct {
	t     testing.TB
	nodes []*node
}

// node of a cluster; the first three are the primaries at the start.
type node struct {
	*process
	id     string
	client *redis.Client
}

const (
	primaries = 3
	slots     = 16384
)

// How long a node may be silent before the others take it for dead, in milliseconds.
// Only a cluster that is to lose a node is as quick as that: on a busy machine any
// node may stand still for seconds.
const (
	patient = "60000"
	quick   = "1000"
)

// Cluster starts a Redis Cluster and waits until it answers for all slots and every
// replica has caught up. No replica takes over before [Clustered.Kill].
func Cluster(t testing.TB) *Clustered {
	t.Helper()
	path := find(t, "redis-server")
	c := &Clustered{t: t}
	for range 2 * primaries {
		c.nodes = append(c.nodes, startNode(t, path))
	}
	for i, n := range c.nodes {
		host, port, _ := net.SplitHostPort(c.nodes[0].addr)
		c.must(n.client.Do(t.Context(), "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err())
		if i > 0 {
			c.must(n.client.Do(t.Context(), "CLUSTER", "MEET", host, port, c.nodes[0].busPort()).Err())
		}
		if i < primaries {
			c.must(n.client.Do(t.Context(), "CLUSTER", "ADDSLOTSRANGE", i*slots/primaries, (i+1)*slots/primaries-1).Err())
		}
	}
	for i, n := range c.nodes[primaries:] {
		wait(t, "replica "+n.addr, func() bool { // once it knows its primary
			return n.client.ClusterReplicate(t.Context(), c.nodes[i].id).Err() == nil
		})
	}
	wait(t, "the cluster", c.ready)
	for _, n := range c.nodes { // not before: nodes find each other faster when quick
		c.must(n.client.ConfigSet(t.Context(), "cluster-node-timeout", patient).Err())
	}
	return c
}

func (c *Clustered) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

func startNode(t testing.TB, path string) *node {
	t.Helper()
	bus, err := freePort() // that of a high port, plus 10000, is none
	if err != nil {
		t.Fatal(err)
	}
	p := startRedis(t, path, []string{"--cluster-enabled", "yes", "--cluster-port", fmt.Sprint(bus),
		"--cluster-node-timeout", quick, "--cluster-replica-no-failover", "yes", "--repl-diskless-sync-delay", "0"})
	client := redis.NewClient(&redis.Options{Addr: p.addr, MaxRetries: -1})
	t.Cleanup(func() { client.Close() })
	id, err := client.Do(t.Context(), "CLUSTER", "MYID").Text()
	if err != nil {
		t.Fatal(err)
	}
	return &node{process: p, id: id, client: client}
}

func (n *node) busPort() string {
	config, _ := n.client.ConfigGet(context.Background(), "cluster-port").Result()
	return config["cluster-port"]
}

// ready asks all nodes whether they see the whole cluster.
func (c *Clustered) ready() bool {
	for i, n := range c.nodes {
		info, _ := n.client.ClusterInfo(c.t.Context()).Result()
		if !strings.Contains(info, "cluster_state:ok") || !strings.Contains(info, "cluster_known_nodes:6") {
			return false
		}
		if i < primaries {
			continue
		}
		info, _ = n.client.Info(c.t.Context(), "replication").Result()
		if !strings.Contains(info, "master_link_status:up") {
			return false
		}
		// A primary may be replaced only by replicas that others know as such.
		known, _ := c.nodes[0].client.ClusterNodes(c.t.Context()).Result()
		if strings.Count(known, "slave") != primaries {
			return false
		}
	}
	return true
}

// Addrs of all nodes.
func (c *Clustered) Addrs() []string {
	var addrs []string
	for _, n := range c.nodes {
		addrs = append(addrs, n.addr)
	}
	return addrs
}

// Slot of a key, as the servers compute it.
func (c *Clustered) Slot(key string) int {
	c.t.Helper()
	slot, err := c.nodes[len(c.nodes)-1].client.ClusterKeySlot(c.t.Context(), key).Result()
	c.must(err)
	return int(slot)
}

// Nodes are clients of those nodes that own slots now, one each.
func (c *Clustered) Nodes() []*redis.Client {
	var all []*redis.Client
	for _, n := range c.nodes {
		role, err := n.client.Do(c.t.Context(), "ROLE").Slice()
		if err == nil && role[0] == "master" {
			all = append(all, n.client)
		}
	}
	return all
}

// Primary is a client of the node that owns a slot now.
func (c *Clustered) Primary(slot int) *redis.Client { return c.owner(slot).client }

// Kill ends the node that owns a slot without a word; its replica takes over, and
// never that of another node.
func (c *Clustered) Kill(slot int) {
	c.t.Helper()
	owner := c.owner(slot)
	replicas, err := owner.client.Do(c.t.Context(), "CLUSTER", "REPLICAS", owner.id).StringSlice()
	c.must(err)
	for _, n := range c.nodes {
		c.must(n.client.ConfigSet(c.t.Context(), "cluster-node-timeout", quick).Err())
		if strings.Contains(strings.Join(replicas, "\n"), n.id+" ") {
			c.must(n.client.ConfigSet(c.t.Context(), "cluster-replica-no-failover", "no").Err())
		}
	}
	owner.kill()
}

// CutReplica keeps from the replica of a slot's owner what is written from now on, so
// that it is lost if the owner is killed.
func (c *Clustered) CutReplica(slot int) {
	c.t.Helper()
	owner := c.owner(slot).client
	c.must(owner.Do(c.t.Context(), "ACL", "SETUSER", "default", "-psync", "-sync").Err())
	c.must(owner.ClientKillByFilter(c.t.Context(), "TYPE", "replica").Err())
}

func (c *Clustered) owner(slot int) *node {
	c.t.Helper()
	for _, asked := range c.nodes {
		if n := c.ownerSeenBy(asked, slot); n != nil {
			return n
		}
	}
	c.t.Fatalf("nobody owns slot %d", slot)
	return nil
}

func (c *Clustered) ownerSeenBy(asked *node, slot int) *node {
	ranges, _ := asked.client.Do(c.t.Context(), "CLUSTER", "SLOTS").Slice()
	for _, r := range ranges {
		r := r.([]any) // first slot, last slot, primary (host, port, id, ...), replicas
		if int64(slot) < r[0].(int64) || int64(slot) > r[1].(int64) {
			continue
		}
		for _, n := range c.nodes {
			if n.id == r[2].([]any)[2] {
				return n
			}
		}
	}
	return nil
}

// A Move takes a slot from one primary to another, step by step.
type Move struct {
	cluster  *Clustered
	slot     int
	from, to *node
}

// BeginMove opens the move of a slot to another primary: keys that are not at its
// owner any more, or not yet, are asked for at the other.
func (c *Clustered) BeginMove(slot int) *Move {
	c.t.Helper()
	m := &Move{cluster: c, slot: slot, from: c.owner(slot)}
	for _, n := range c.nodes[:primaries] {
		if n != m.from {
			m.to = n
		}
	}
	c.must(m.to.client.Do(c.t.Context(), "CLUSTER", "SETSLOT", slot, "IMPORTING", m.from.id).Err())
	c.must(m.from.client.Do(c.t.Context(), "CLUSTER", "SETSLOT", slot, "MIGRATING", m.to.id).Err())
	return m
}

// Keys moves the keys that are named, or all of the slot if none is.
func (m *Move) Keys(keys ...string) {
	m.cluster.t.Helper()
	ctx := m.cluster.t.Context()
	host, port, _ := net.SplitHostPort(m.to.addr)
	move := func(keys []string) {
		args := []any{"MIGRATE", host, port, "", 0, 5000, "KEYS"}
		for _, k := range keys {
			args = append(args, k)
		}
		m.cluster.must(m.from.client.Do(ctx, args...).Err())
	}
	if len(keys) > 0 {
		move(keys)
		return
	}
	for {
		some, err := m.from.client.ClusterGetKeysInSlot(ctx, m.slot, 100).Result()
		m.cluster.must(err)
		if len(some) == 0 {
			return
		}
		move(some)
	}
}

// End gives the slot to its new owner, who must have all of its keys, and waits
// until all nodes have heard of it. Before that, a next move would find two owners;
// and the old owner must hear it from the new one, together with the epoch: if it
// were told to take the slot back before it knew that epoch, it would claim the slot
// with an older one of its own, which nobody would believe.
func (m *Move) End() {
	m.cluster.t.Helper()
	assign := func(n *node) error {
		return n.client.Do(m.cluster.t.Context(), "CLUSTER", "SETSLOT", m.slot, "NODE", m.to.id).Err()
	}
	m.cluster.must(assign(m.to))
	for _, n := range m.cluster.nodes {
		wait(m.cluster.t, n.addr, func() bool { return m.cluster.ownerSeenBy(n, m.slot) == m.to })
	}
	m.cluster.must(assign(m.from)) // which ends its part of the move
}
