// Package story tells what the operator for platforms does, step by step, on a real cluster, and checks each fact as it
// is told. The steps are data ([Steps]), so that a test can tell the same story under worse conditions.
package story
