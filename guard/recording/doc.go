// Package recording keeps what a guard has decided in files, so that other policies
// can be tried on it: package replay, and guardctl replay.
//
//	rec, err := recording.Open(recording.Config{Dir: "/var/lib/login/attempts"})
//	g, err := guard.New(guard.Config{…, Recorder: rec})
//	…
//	err = rec.Close() // writes what is left
//
// A file has a line of JSON for each [guard.Record]: one when an attempt is decided,
// and one when it has ended. No account, address or key is in it in clear. Files are
// for their owner alone (0600): they tell which hash was active when, and from how
// many addresses.
//
// A folder belongs to one process. Recording never makes an attempt wait, and never
// fails one: records that find no place in the queue, or on the disk, are dropped,
// and their number is in the files.
package recording
