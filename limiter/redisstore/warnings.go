package redisstore

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Warnings says what about the servers' settings sets limits free: an eviction
// policy that drops counts when memory is short, and no persistence, so that a
// restart forgets all of them. An application logs them at its start. An error
// means that a server does not tell.
func (s *Store) Warnings(ctx context.Context) ([]string, error) {
	if s.cluster == nil {
		return warnings(ctx, s.single)
	}
	var (
		mu  sync.Mutex
		all []string
	)
	err := s.cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		some, err := warnings(ctx, node)
		mu.Lock()
		defer mu.Unlock()
		all = append(all, some...)
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

func warnings(ctx context.Context, node *redis.Client) ([]string, error) {
	config := map[string]string{}
	for _, name := range []string{"maxmemory", "maxmemory-policy", "save", "appendonly"} {
		got, err := node.ConfigGet(ctx, name).Result()
		if err != nil {
			return nil, fmt.Errorf("redisstore: CONFIG GET %s: %w", name, err)
		}
		config[name] = got[name]
	}
	var warnings []string
	if policy := config["maxmemory-policy"]; config["maxmemory"] != "0" && policy != "noeviction" {
		warnings = append(warnings, fmt.Sprintf("maxmemory-policy is %s: when memory is short the server drops counts, which sets who was refused free; use noeviction", policy))
	}
	if config["save"] == "" && config["appendonly"] == "no" {
		warnings = append(warnings, "the server has no persistence: a restart forgets all counts, so every limit can be used up once more")
	}
	return warnings, nil
}
