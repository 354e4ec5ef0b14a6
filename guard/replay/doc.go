// Package replay tells what other policies would have refused of what a guard has
// recorded (package recording).
//
//	log, err := recording.OpenReader("/var/lib/login/attempts")
//	report, err := replay.Run(ctx, log, policies)
//	fmt.Print(report)
//
// Each attempt of the recording is made again, at its instant, on a real guard over
// a store in memory whose clock is that of the recording. What it says stands beside
// what happened then. Three things no recording can tell:
//
//   - How an attempt would have ended that was refused then: its secret was never
//     compared. If the tried policies refuse it, too, it is one of those of unknown
//     outcome, neither a guess stopped nor an owner annoyed. If they admit it, it is
//     charged as a failure, like a pass that nobody settles: so looser policies look
//     rather stricter than they are. The same goes for attempts that were cancelled
//     or not settled, but that what was cancelled is given back.
//   - What people do when they are refused: who is told to wait comes back, and who
//     is no longer refused does not.
//   - How long attempts were in flight: each is settled at the instant when it was
//     asked, which is what waiting for unsettled charges comes to (guard.Pass).
package replay
