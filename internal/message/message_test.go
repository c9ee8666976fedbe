package message_test

import (
	"testing"

	"github.com/espalier-dev/espalier/internal/message"
)

func TestTruncate(t *testing.T) {
	for _, tc := range []struct {
		text  string
		limit int
		want  string
	}{
		{"", 0, ""},
		{"short", 5, "short"},
		{"longer", 5, "lo…"},
		{"löng text", 5, "l…"},
		{"text", 3, "…"},
		{"text", 2, ""},
		{"text", -1, ""},
		{"\xff", 10, "\uFFFD"},
		{"a\x1b[31m\u009b0m\r\u202e\u2066b\u00a0\u2028c\t\x00\nd", 40, "a[31m0m b  c\t\nd"},
	} {
		if got := message.Truncate(tc.text, tc.limit); got != tc.want {
			t.Errorf("Truncate(%q, %d) = %q, want %q", tc.text, tc.limit, got, tc.want)
		}
	}
}

func TestList(t *testing.T) {
	names := []string{"a", "b", "c"}
	for shown, want := range map[int]string{3: "a, b, c", 2: "a, b and 1 more", 1: "a and 2 more"} {
		if got := message.List(names, shown); got != want {
			t.Errorf("List(%d) = %q, want %q", shown, got, want)
		}
	}
}

func TestDeletion(t *testing.T) {
	for want, finalizers := range map[string][]string{
		"is being deleted": nil,
		"is being deleted, and waits for the finalizer a":                   {"a"},
		"is being deleted, and waits for the finalizers a, b":               {"a", "b"},
		"is being deleted, and waits for the finalizers a, b, c and 2 more": {"a", "b", "c", "d", "e"},
	} {
		if got := message.Deletion(finalizers); got != want {
			t.Errorf("Deletion(%q) = %q, want %q", finalizers, got, want)
		}
	}
}

func TestCapitalize(t *testing.T) {
	for text, want := range map[string]string{"": "", "über": "Über", "A": "A", "wave 1": "Wave 1"} {
		if got := message.Capitalize(text); got != want {
			t.Errorf("Capitalize(%q) = %q, want %q", text, got, want)
		}
	}
}
