package memcachestore

import (
	"errors"
	"fmt"
	"hash/crc32"
	"net"
	"strconv"
	"strings"

	"github.com/bradfitz/gomemcache/memcache"
)

// servers spread keys as memcache.ServerList does, but leave names to be resolved
// at each dial, so that a server which moves to another address is found again.
type servers []net.Addr

var _ memcache.ServerSelector = servers(nil)

type server struct{ network, address string }

func (s server) Network() string { return s.network }
func (s server) String() string  { return s.address }

func newServers(addrs []string) (servers, error) {
	if len(addrs) == 0 {
		return nil, errors.New("memcachestore: Config.Addrs is empty")
	}
	var all servers
	for i, addr := range addrs {
		if strings.HasPrefix(addr, "/") {
			all = append(all, server{"unix", addr})
			continue
		}
		_, port, err := net.SplitHostPort(addr)
		if err == nil {
			_, err = strconv.ParseUint(port, 10, 16)
		}
		if err != nil {
			return nil, fmt.Errorf("memcachestore: Config.Addrs[%d] is %q, want host:port or the absolute path of a socket", i, addr)
		}
		all = append(all, server{"tcp", addr})
	}
	return all, nil
}

// PickServer implements memcache.ServerSelector.
func (s servers) PickServer(key string) (net.Addr, error) {
	return s[crc32.ChecksumIEEE([]byte(key))%uint32(len(s))], nil
}

// Each implements memcache.ServerSelector.
func (s servers) Each(f func(net.Addr) error) error {
	for _, addr := range s {
		if err := f(addr); err != nil {
			return err
		}
	}
	return nil
}
