// Package storage keeps the objects of an API server in memory, in the place of etcd.
package storage
