package redisstore

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// socketTimeout bounds connecting, reading and writing beside a call's own
// deadline, which is usually much shorter.
const socketTimeout = 500 * time.Millisecond

// NewClient makes a client whose options suit a store: it obeys contexts,
// retries nothing and connects without delay. URLs are
//
//	redis://user:password@host:6379/0
//	redis+sentinel://user:password@host1:26379,host2:26379/primary/0
//	redis+cluster://user:password@host1:6379,host2:6379
//
// and the same with rediss for TLS. A redis URL takes the parameters of
// redis.ParseURL; one with sentinel takes sentinel_username and
// sentinel_password; one with cluster takes none, and names any nodes of it. No
// error repeats the URL, which may hold a password.
func NewClient(rawURL string) (redis.UniversalClient, error) {
	rawURL, hosts := cutHosts(rawURL)
	u, err := url.Parse(rawURL)
	if err != nil || misplaced(u) {
		return nil, errors.New("redisstore: the URL cannot be read, want one such as redis://host:6379; special characters of a password must be percent-encoded")
	}
	switch u.Scheme {
	case "redis", "rediss":
		o, err := redis.ParseURL(rawURL)
		if err != nil {
			return nil, fmt.Errorf("redisstore: URL: %w", err)
		}
		o.ContextTimeoutEnabled = true
		o.MaxRetries, o.DialerRetries = -1, 1
		o.DialTimeout, o.ReadTimeout, o.WriteTimeout = orShort(o.DialTimeout), orShort(o.ReadTimeout), orShort(o.WriteTimeout)
		return redis.NewClient(o), nil
	case "redis+sentinel", "rediss+sentinel":
		o, err := sentinelOptions(u, hosts)
		if err != nil {
			return nil, fmt.Errorf("redisstore: URL: %w", err)
		}
		return redis.NewFailoverClient(o), nil
	case "redis+cluster", "rediss+cluster":
		o, err := clusterOptions(u, hosts)
		if err != nil {
			return nil, fmt.Errorf("redisstore: URL: %w", err)
		}
		return redis.NewClusterClient(o), nil
	}
	return nil, fmt.Errorf("redisstore: the URL's scheme is %q, want redis, redis+sentinel or redis+cluster, or these with rediss", u.Scheme)
}

// misplaced reports an @ behind the host: of a password with a / or ? in it, half
// of which has become a path or a parameter and would be told in an error.
func misplaced(u *url.URL) bool {
	if strings.Contains(u.Path+u.Fragment, "@") {
		return true
	}
	for key := range u.Query() {
		if strings.Contains(key, "@") {
			return true
		}
	}
	return false
}

func orShort(d time.Duration) time.Duration {
	if d == 0 {
		return socketTimeout
	}
	return d
}

// cutHosts puts a name in the place of a list of hosts, which is no URL's host.
func cutHosts(rawURL string) (withName string, hosts []string) {
	scheme, rest, _ := strings.Cut(rawURL, "://")
	if !strings.HasSuffix(scheme, "+sentinel") && !strings.HasSuffix(scheme, "+cluster") {
		return rawURL, nil
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	begin := strings.LastIndexByte(rest[:end], '@') + 1
	return scheme + "://" + rest[:begin] + "hosts" + rest[end:], strings.Split(rest[begin:end], ",")
}

func addresses(hosts []string, port string) ([]string, error) {
	addrs := make([]string, len(hosts))
	for i, addr := range hosts {
		if addr == "" {
			return nil, errors.New("a host is empty")
		}
		if _, _, err := net.SplitHostPort(addr); err != nil {
			addr = net.JoinHostPort(strings.Trim(addr, "[]"), port)
		}
		addrs[i] = addr
	}
	return addrs, nil
}

func clusterOptions(u *url.URL, hosts []string) (*redis.ClusterOptions, error) {
	o := &redis.ClusterOptions{
		ContextTimeoutEnabled: true,
		MaxRetries:            -1,
		DialerRetries:         1,
		DialTimeout:           socketTimeout,
		ReadTimeout:           socketTimeout,
		WriteTimeout:          socketTimeout,
		Username:              u.User.Username(),
	}
	o.Password, _ = u.User.Password()
	var err error
	if o.Addrs, err = addresses(hosts, "6379"); err != nil {
		return nil, err
	}
	if path := strings.Trim(u.Path, "/"); path != "" && path != "0" {
		return nil, fmt.Errorf("the database is %q: a cluster has none but 0", path)
	}
	for key := range u.Query() {
		return nil, fmt.Errorf("unknown parameter %q", key)
	}
	if strings.HasPrefix(u.Scheme, "rediss") {
		o.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return o, nil
}

func sentinelOptions(u *url.URL, hosts []string) (*redis.FailoverOptions, error) {
	o := &redis.FailoverOptions{
		ContextTimeoutEnabled: true,
		MaxRetries:            -1,
		DialerRetries:         1,
		DialTimeout:           socketTimeout,
		ReadTimeout:           socketTimeout,
		WriteTimeout:          socketTimeout,
		Username:              u.User.Username(),
	}
	o.Password, _ = u.User.Password()
	var err error
	if o.SentinelAddrs, err = addresses(hosts, "26379"); err != nil {
		return nil, err
	}
	name, db, _ := strings.Cut(strings.Trim(u.Path, "/"), "/")
	if name == "" {
		return nil, errors.New("the path must name the primary, as in redis+sentinel://host:26379/mymaster")
	}
	o.MasterName = name
	if db != "" {
		n, err := strconv.Atoi(db)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("the database is %q, want a number", db)
		}
		o.DB = n
	}
	for key, values := range u.Query() {
		switch key {
		case "sentinel_username":
			o.SentinelUsername = values[0]
		case "sentinel_password":
			o.SentinelPassword = values[0]
		default:
			return nil, fmt.Errorf("unknown parameter %q", key)
		}
	}
	if strings.HasPrefix(u.Scheme, "rediss") {
		o.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return o, nil
}
