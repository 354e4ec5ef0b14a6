package guardtest

import (
	"fmt"
	"slices"
	"strings"
)

// paths are other ways to write an escaped path, each of which some router
// cleans, folds, decodes or cuts until it is the same.
func paths(path string) []string {
	first, last := firstLetter(path), strings.LastIndexByte(path, '/')
	all := []string{
		strings.TrimSuffix(path, "/"), path + "/", path + "//", // a slash more or less
		"/" + path, "//" + path, strings.ReplaceAll(path, "/", "//"),
		strings.ToUpper(path), strings.ToLower(path), // letters
		path + "/.", path + "/..", "/." + path, path[:last] + "/." + path[last:], // dot segments
		"/guardtest/.." + path, path + "/guardtest/..", path[:last] + "/guardtest/.." + path[last:],
		"/%2e" + path, "/guardtest/%2e%2e" + path, path + "/%2e", "/guardtest/..%2f" + path[1:],
		path + ";", path + ";guardtest=1", path + "/;guardtest=1", "/;guardtest=1" + path, "/.;" + path, "/guardtest/..;" + path, // parameters
		"/%2f" + path[1:], path + "%2f", "/" + strings.ReplaceAll(path[1:], "/", "%2F"), // slashes
		"/" + strings.ReplaceAll(path[1:], "/", `\`), `/\` + path[1:], path + "%5c",
		path + "%20", path + "%00", path + "%09", path + "%0a", path + "%0d%0a", path + "%3f", path + "%23", path + "%3b", // an end that is cut off
		path + ".", path + ".json", path + ".html", path + "/index", path + "*", path + "&",
	}
	if first >= 0 {
		letter := path[first : first+1]
		for _, written := range []string{
			fmt.Sprintf("%%%02x", letter[0]), fmt.Sprintf("%%%02X", letter[0]), fmt.Sprintf("%%25%02x", letter[0]), // percent-encoded, and twice
			strings.ToUpper(letter), strings.ToLower(letter),
		} {
			all = append(all, path[:first]+written+path[first+1:])
		}
		encoded := ""
		for _, c := range []byte(path[first:]) {
			if letterOrDigit(c) {
				encoded += fmt.Sprintf("%%%02x", c)
			} else {
				encoded += string(c)
			}
		}
		if !strings.Contains(path, "%") {
			all = append(all, path[:first]+encoded)
		}
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(p string) bool { return p == path || p == "" })
}

// firstLetter is where the first letter or digit is that no percent sign precedes.
func firstLetter(path string) int {
	for i := range len(path) {
		if letterOrDigit(path[i]) && !strings.Contains(path[:i], "%") {
			return i
		}
	}
	return -1
}

func letterOrDigit(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}
