package generator

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// written are the names of the annotations that the component itself writes under its prefix. Manifests that were read
// from a cluster have them.
var written = []string{AnnotationOwnerID, AnnotationDigest, AnnotationFence}

// refuseUnknown adds an error for each annotation that looks like a setting and is none.
func (r *annotationReader) refuseUnknown() {
	for _, key := range slices.Sorted(maps.Keys(r.annotations)) {
		i := strings.LastIndexByte(key, '/')
		if i <= 0 || !slices.Contains(r.prefixes, key[:i]) {
			continue
		}
		prefix, name := key[:i], key[i+1:]
		shared := prefix == SharedPrefix
		if slices.Contains(r.names, name) || !shared && slices.Contains(written, name) {
			continue
		}
		if nearest, ok := nearestOf(name, r.names); ok {
			r.errs = append(r.errs, fmt.Errorf("annotation %s: is unknown; the nearest is %s/%s", key, prefix, nearest))
		} else if shared {
			r.errs = append(r.errs, fmt.Errorf("annotation %s: is unknown", key))
		}
	}
}

// nearestOf returns the one of names that name was most likely meant to be, if one is so near that it was no other
// word: at most a quarter of its letters differ. Upper case, and underscores in place of hyphens, do not count.
func nearestOf(name string, names []string) (nearest string, ok bool) {
	best := 0
	plain := strings.ReplaceAll(kebab(name), "_", "")
	for _, candidate := range names {
		limit := len(candidate) / 4
		if difference := len(plain) - len(candidate); difference > limit || -difference > limit {
			continue
		}
		if distance := editDistance(plain, candidate); distance <= limit && (!ok || distance < best) {
			nearest, best, ok = candidate, distance, true
		}
	}
	return nearest, ok
}

// editDistance is how many letters have to be inserted, deleted, replaced, or swapped with the next one, to turn a into
// b.
func editDistance(a, b string) int {
	// distances[i][j] is the distance of the first i letters of a from the first j letters of b.
	distances := make([][]int, len(a)+1)
	for i := range distances {
		distances[i] = make([]int, len(b)+1)
		distances[i][0] = i
	}
	for j := range b {
		distances[0][j+1] = j + 1
	}
	for i := range len(a) {
		for j := range len(b) {
			replaced := distances[i][j]
			if a[i] != b[j] {
				replaced++
			}
			distance := min(distances[i][j+1]+1, distances[i+1][j]+1, replaced)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				distance = min(distance, distances[i-1][j-1]+1)
			}
			distances[i+1][j+1] = distance
		}
	}
	return distances[len(a)][len(b)]
}
