// Command guardctl is the operator's tool for authguard.
//
//	guardctl explain [FILE]
//
// tells what the policies of a file, or the presets that come with the library,
// leave to somebody who guesses: per hour, day, 30 days and year, from one
// address or from many. It carries the attacks out, in memory and in virtual
// time, which takes seconds; it talks to no server.
//
//	guardctl replay [-json] LOG... FILE
//
// tells what the policies of a file would have refused of what was recorded (package
// recording): per action and rule, how many attempts, how many of them had succeeded
// or failed, at how many accounts and from how many addresses, beside what was
// refused then. LOG is a file or the folder of a process; with several processes all
// of them are named. Actions that the file does not name are left out.
//
// It ends with status 0, with 1 when a file cannot be read or has errors, which
// are told with file, line and column, and with 2 for wrong usage.
package main
