package check

// pair is an expectation and the call that it is compared with, by their indexes. One of them is none if the other has
// no counterpart.
type pair struct{ want, call int }

const none = -1

// positions pairs so many expectations with so many calls by their positions.
func positions(expected, calls int) []pair {
	both := min(expected, calls)
	return between(between(nil, pair{}, pair{both, both}), pair{both, both}, pair{expected, calls})
}

// align pairs so many expectations with so many calls, both in their order, such that the sum of the scores is the
// highest. A pair without a score is none. What is left between two pairs is paired by position if it is as many
// expectations as calls: one of them has another name. Otherwise it has no counterpart.
func align(expected, calls int, score func(want, call int) int) []pair {
	// best[i][j] is the highest sum for the expectations from i and the calls from j.
	scores, best := make([][]int, expected), make([][]int, expected+1)
	best[expected] = make([]int, calls+1)
	for i := expected - 1; i >= 0; i-- {
		scores[i], best[i] = make([]int, calls), make([]int, calls+1)
		for j := calls - 1; j >= 0; j-- {
			scores[i][j] = score(i, j)
			best[i][j] = max(best[i+1][j], best[i][j+1])
			if scores[i][j] > 0 {
				best[i][j] = max(best[i][j], scores[i][j]+best[i+1][j+1])
			}
		}
	}
	var pairs []pair
	i, j, from, fromCall := 0, 0, 0, 0
	for i < expected && j < calls {
		switch best[i][j] {
		case best[i+1][j]:
			i++
		case best[i][j+1]:
			j++
		default:
			pairs = append(between(pairs, pair{from, fromCall}, pair{i, j}), pair{i, j})
			i, j = i+1, j+1
			from, fromCall = i, j
		}
	}
	return between(pairs, pair{from, fromCall}, pair{expected, calls})
}

// between adds what is between two pairs.
func between(pairs []pair, from, to pair) []pair {
	if to.want-from.want == to.call-from.call {
		for ; from.want < to.want; from.want, from.call = from.want+1, from.call+1 {
			pairs = append(pairs, from)
		}
		return pairs
	}
	for ; from.want < to.want; from.want++ {
		pairs = append(pairs, pair{from.want, none})
	}
	for ; from.call < to.call; from.call++ {
		pairs = append(pairs, pair{none, from.call})
	}
	return pairs
}
