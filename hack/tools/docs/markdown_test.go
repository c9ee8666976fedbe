package main

import "testing"

func TestWrapped(t *testing.T) {
	for _, tc := range []struct {
		name, text, want string
	}{
		{"nothing", "", ""},
		{"fits", "one two", "one two"},
		{"is as wide as a line", "three four", "three four"},
		{"is wider", "three four five", "three four\nfive"},
		{"was broken elsewhere", "three\nfour  five\n", "three four\nfive"},
		{"a word wider than a line", "a counter-example b", "a\ncounter-example\nb"},
		{"letters, not bytes", "drei fünfe", "drei fünfe"},
		{"no list begins", "one, two, - three", "one, two, -\nthree"},
		{"no numbered list begins", "we were in 1999. Then", "we were in 1999.\nThen"},
		{"no heading begins", "the issue #12 of ours", "the issue #12\nof ours"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := wrapped(tc.text, 10); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}
