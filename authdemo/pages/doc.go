// Package pages draws the demo's HTML pages from embedded templates, and
// serves their style sheet and scripts. Every action is a form that posts to the same
// route as an API client would, and needs no JavaScript: only to solve a challenge
// instead of waiting does the login page have a script.
package pages
