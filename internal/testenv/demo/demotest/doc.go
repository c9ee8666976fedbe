// Package storytellingtest has what tests of stories need: worse conditions to tell them under, and a look at what they
// leave behind.
package storytellingtest
