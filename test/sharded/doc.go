// Package sharded tests operators whose processes share their resources, together with a sharder: the stand-in of
// internal/testenv/sharder, or the sharder itself if the variable ESPALIER_SHARDER has its path. It has tests alone.
package sharded
