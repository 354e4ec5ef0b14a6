package redisstore

import (
	"context"
	"fmt"
)

// Warnings says what about the server's settings sets limits free: an eviction
// policy that drops counts when memory is short, and no persistence, so that a
// restart forgets all of them. An application logs them at its start. An error
// means that the server does not tell.
func (s *Store) Warnings(ctx context.Context) ([]string, error) {
	config := map[string]string{}
	for _, name := range []string{"maxmemory", "maxmemory-policy", "save", "appendonly"} {
		got, err := s.client.ConfigGet(ctx, name).Result()
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
