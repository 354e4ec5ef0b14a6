// Package pages draws the demo's HTML pages from embedded templates, and
// serves their style sheet. They need no JavaScript: every action is a form
// that posts to the same route as an API client would.
package pages
