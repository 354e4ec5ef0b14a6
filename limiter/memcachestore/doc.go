// Package memcachestore keeps limits in Memcached, shared by all the processes of
// an application.
//
//	store, err := memcachestore.New(memcachestore.Config{Addrs: []string{"127.0.0.1:11211"}})
//
// Memcached knows no laws and no transactions, only compare-and-swap: a limit is
// read, decided here and written back if nobody wrote meanwhile, else read again.
// A batch is first read as a whole; what is denied then is denied, and nothing was
// written. Else its limits are charged one after the other, and what was charged
// is given back if a later one denies after all. When writers of a key keep getting
// in each other's way, the call is denied and told to come again in a second.
//
// What to know before choosing it over Redis:
//
//   - Memcached is a cache. Short of memory it evicts, also what still counts, and
//     an evicted key is an amnesty; so is a restart, and a change of Addrs for the
//     keys that change their server. Nobody is told: the counts of "evicted" and
//     "evicted_nonzero" in `stats items` are the only sign. Give it memory of its own.
//   - A batch is not one instant. One that is refused late may hold units of its
//     other limits for a few round trips, so a neighbour may be denied for a moment;
//     never is one too many admitted. If the process dies just then, the units stay
//     taken until they age out.
//   - The clocks of the processes decide, so servers must keep time (NTP). Clocks up
//     to 10 ms apart are waited for. Beyond that an admission by the slower clock
//     treats the faster one's as made now: its refund may find nothing to give back.
package memcachestore
