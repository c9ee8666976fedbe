package reconcilers

import "maps"

// MergeMaps returns a new map with the entries of all maps. For equal keys, the entry of the later map wins. The result
// is never nil, and the arguments are not changed.
func MergeMaps(ms ...map[string]string) map[string]string {
	merged := map[string]string{}
	for _, m := range ms {
		maps.Copy(merged, m)
	}
	return merged
}
