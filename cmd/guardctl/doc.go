// Command guardctl is the operator's tool for authguard.
//
//	guardctl explain [FILE]
//
// tells what the policies of a file, or the presets that come with the library,
// leave to somebody who guesses: per hour, day, 30 days and year, from one
// address or from many. It carries the attacks out, in memory and in virtual
// time, which takes seconds, or minutes where a policy lets very many attempts of an
// address through; it talks to no server.
//
//	guardctl replay [-json] LOG... FILE
//
// tells what the policies of a file would have refused of what was recorded (package
// recording): per action and rule, how many attempts, how many of them had succeeded
// or failed, at how many accounts and from how many addresses, beside what was
// refused then. LOG is a file or the folder of a process; with several processes all
// of them are named. Actions that the file does not name are left out.
//
//	guardctl erase -redis URL -secret-file FILE [-previous-secret-file FILE] [-policies FILE] [-id ID] ACCOUNT
//
// forgets all that is kept under an account's name in the Redis that processes
// share, for somebody who has the right to be forgotten ([guard.Guard.Erase]). The
// secrets and the file of policies are those of the processes; without a file, and
// besides it, the presets. ID is what Config.Resolve gives for the account, in the
// demo the id in its table of accounts. An account that processes forget has its
// whole budget again. What a process keeps in its own memory goes with the process.
//
//	guardctl inspect ACTION [ACCOUNT] [-ip ADDRESS]
//	guardctl list
//	guardctl unlock ACCOUNT [ACTION[/RULE]]...
//	guardctl block ACCOUNT|-ip ADDRESS -for DURATION
//	guardctl unblock ACCOUNT|-ip ADDRESS
//
// say why attempts are refused and who is refused now, and change it. They ask a
// running application through its API (package adminapi), or its Redis. Flags and
// arguments come in any order; without any, guardctl tells them all.
//
// It ends with status 0, also when the answer is that somebody is refused, with 1
// when a file cannot be read or has errors, which are told with file, line and column,
// or a server fails, and with 2 for wrong usage.
package main
