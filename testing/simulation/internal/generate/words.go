package generate

import (
	"errors"
	"math/rand/v2"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"
)

// words draws words that a regular expression matches. A table says which states of its program lead to a match with a
// given number of further runes, so that each length can be drawn, the shortest and the longest included.
type words struct {
	program *syntax.Prog
	// next has the states that consume a rune, and are reached from a state in the middle of a word without one.
	next [][]uint32
	// ends[n][state] is set if n further runes lead from the state in the middle of a word to the end of a match.
	ends [][]bool
	// lengths are those of all words, in runes, shortest first.
	lengths []int
	// runes has some for each state that consumes one.
	runes [][]rune
}

// The lengths that are looked at. Longer words than maxLength are drawn only if they have to be longer.
const (
	maxLength    = 1024
	usualLengths = 64
	maxTable     = 1 << 22
)

// newWords returns the words of a pattern of a schema: it has to match a part of the word.
func newWords(pattern string, shortest, longest *int64) (*words, error) {
	parsed, err := syntax.Parse(`(?s:.*)(?:`+pattern+`)(?s:.*)`, syntax.Perl)
	if err != nil {
		return nil, err
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, err
	}
	from, to := lengthsOf(shortest, longest)
	states := len(program.Inst)
	w := &words{program: program, next: make([][]uint32, states), runes: make([][]rune, states)}
	w.ends = append(w.ends, make([]bool, states))
	for state := range program.Inst {
		if consumes(&program.Inst[state]) {
			w.runes[state] = runesOf(&program.Inst[state])
		}
		w.next[state], _ = w.follow(uint32(state), 0)
		_, w.ends[0][state] = w.follow(uint32(state), syntax.EmptyEndText|syntax.EmptyEndLine)
	}
	for n := 0; n <= to && n*states <= maxTable; n++ {
		if n > 0 {
			w.ends = append(w.ends, w.before(n))
		}
		if n >= from && len(w.choices(uint32(program.Start), 0, n)) > 0 || n == 0 && from == 0 && w.hasEmpty() {
			w.lengths = append(w.lengths, n)
		}
	}
	if len(w.lengths) == 0 {
		return nil, errors.New("there is no word of an allowed length")
	}
	return w, nil
}

// lengthsOf returns the shortest and the longest length to draw.
func lengthsOf(shortest, longest *int64) (from, to int) {
	if shortest != nil {
		from = int(max(*shortest, 0))
	}
	to = from + usualLengths
	if longest != nil && (*longest <= maxLength || *longest < int64(to)) {
		to = int(*longest)
	}
	return from, to
}

// before returns the states that lead to the end by n runes.
func (w *words) before(n int) []bool {
	row := make([]bool, len(w.program.Inst))
	for state, next := range w.next {
		row[state] = slices.ContainsFunc(next, func(s uint32) bool {
			return w.ends[n-1][w.program.Inst[s].Out] && len(w.runes[s]) > 0
		})
	}
	return row
}

// follow returns the states that consume a rune and are reached from a state without one, and whether the end of a
// match is. What is a boundary of words is not known, so each place counts as one.
func (w *words) follow(from uint32, at syntax.EmptyOp) (next []uint32, match bool) {
	at |= syntax.EmptyWordBoundary | syntax.EmptyNoWordBoundary
	seen := make([]bool, len(w.program.Inst))
	pending := []uint32{from}
	for len(pending) > 0 {
		state := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		if seen[state] {
			continue
		}
		seen[state] = true
		switch inst := &w.program.Inst[state]; inst.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			pending = append(pending, inst.Arg, inst.Out)
		case syntax.InstCapture, syntax.InstNop:
			pending = append(pending, inst.Out)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(inst.Arg)&^at == 0 {
				pending = append(pending, inst.Out)
			}
		case syntax.InstMatch:
			match = true
		case syntax.InstFail:
		default:
			next = append(next, state)
		}
	}
	return next, match
}

const emptyWord = syntax.EmptyBeginText | syntax.EmptyBeginLine | syntax.EmptyEndText | syntax.EmptyEndLine

func (w *words) hasEmpty() bool {
	_, match := w.follow(uint32(w.program.Start), emptyWord)
	return match
}

// choices returns the states that may consume the rune at a position of a word with left runes from there.
func (w *words) choices(from uint32, position, left int) []uint32 {
	if left == 0 {
		return nil
	}
	next := w.next[from]
	if position == 0 {
		next, _ = w.follow(from, syntax.EmptyBeginText|syntax.EmptyBeginLine)
	}
	possible := func(s uint32) bool { return w.ends[left-1][w.program.Inst[s].Out] && len(w.runes[s]) > 0 }
	if !slices.ContainsFunc(next, func(s uint32) bool { return !possible(s) }) {
		return next
	}
	return slices.DeleteFunc(slices.Clone(next), func(s uint32) bool { return !possible(s) })
}

// draw draws a word. It does not match the pattern in rare cases: those with boundaries of words or lines inside.
func (w *words) draw(r *rand.Rand) string { return w.ofLength(r, pickLength(r, w.lengths)) }

// ofLength draws a word of one of the lengths.
func (w *words) ofLength(r *rand.Rand, length int) string {
	word := make([]rune, length)
	state := uint32(w.program.Start)
	for i := range word {
		choices := w.choices(state, i, length-i)
		state = choices[r.IntN(len(choices))]
		word[i] = w.runes[state][r.IntN(len(w.runes[state]))]
		state = w.program.Inst[state].Out
	}
	return string(word)
}

// pickLength picks small lengths and the bounds more often than others.
func pickLength(r *rand.Rand, lengths []int) int {
	last := len(lengths) - 1
	switch r.IntN(8) {
	case 0:
		return lengths[0]
	case 1:
		return lengths[last]
	default:
		return lengths[min(few(r, 5), last)]
	}
}

func consumes(inst *syntax.Inst) bool {
	switch inst.Op {
	case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
		return true
	default:
		return false
	}
}

// runesOf returns the runes to draw from. Lower-case letters and digits are most of them if there are any, and all are
// of ASCII if possible.
func runesOf(inst *syntax.Inst) []rune {
	var usual, others []rune
	for c := rune(' '); c < 0x7f; c++ {
		switch {
		case !inst.MatchRune(c):
		case strings.ContainsRune(letters, c):
			usual = append(usual, c)
		default:
			others = append(others, c)
		}
	}
	found := append(slices.Clone(usual), others...)
	for len(usual) > 0 && len(others) > len(letters) && len(found) < 8*len(others) {
		found = append(found, usual...)
	}
	if len(found) > 0 {
		return found
	}
	for i := 0; i+1 < len(inst.Rune); i += 2 {
		for _, c := range []rune{inst.Rune[i], inst.Rune[i+1]} {
			if utf8.ValidRune(c) {
				others = append(others, c)
			}
		}
	}
	if len(inst.Rune) == 1 && utf8.ValidRune(inst.Rune[0]) {
		others = append(others, inst.Rune[0])
	}
	return others
}
