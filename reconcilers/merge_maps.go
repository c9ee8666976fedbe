package reconcilers

import "maps"

// MergeMaps returns a new map with the entries of all maps; of equal keys the later map's entry stays. The result is
// never nil, and the maps given are not changed.
func MergeMaps(ms ...map[string]string) map[string]string {
	merged := map[string]string{}
	for _, m := range ms {
		maps.Copy(merged, m)
	}
	return merged
}
