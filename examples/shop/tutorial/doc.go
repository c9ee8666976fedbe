// Package tutorial has the test that follows docs/getting-started.md: it writes the files of the page, and runs its
// commands.
package tutorial
