// Package timing measures whether answers of package authdemo tell by their time
// which accounts there are.
package timing
