// Package promguard counts what a guard decides, for Prometheus.
//
//	metrics, err := promguard.New(policies)
//	prometheus.MustRegister(metrics)
//	g, err := guard.New(guard.Config{Policies: policies, Observer: metrics, …})
//
// Labels are the names of actions and rules, which the policies choose, and what
// became of an attempt: never an account, an address or anything else that a
// client sends. So however many clients come, the number of series stays, and an
// account that exists is counted like one that does not. All series are there
// from the start with 0, so that a rate can be taken of the first event.
//
// [Memory] is a collector for the size and the evictions of a memstore.
// Dashboard and alerts are in docs/ops.
package promguard
