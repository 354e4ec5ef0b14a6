// Package fields reads request bodies strictly: [Read] takes exactly the named
// text fields, each once, from a JSON object or an HTML form, and refuses
// everything else. [Peek] does so in front of somebody else's handler: it lets
// other fields stand beside them, and puts the body back.
//
// Strictness is what keeps a limit and the code behind it in agreement on who
// is meant. A body with two e-mail addresses, an array of them, or one in
// another spelling is a way to have one of them counted and the other tried;
// encoding/json would take the last of two, and EMAIL for email.
package fields
