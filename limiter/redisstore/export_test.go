package redisstore

// Waiting is how many calls, or parts of them, wait in line.
func (s *Store) Waiting() (n int) {
	s.line.mu.Lock()
	defer s.line.mu.Unlock()
	for _, q := range s.line.queues {
		n += len(q.waiting)
	}
	return n
}
