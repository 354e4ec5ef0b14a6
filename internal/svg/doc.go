// Package svg draws the plots of the documents: text, lines and marks on a white
// card, in one style. The same calls give the same bytes.
package svg
