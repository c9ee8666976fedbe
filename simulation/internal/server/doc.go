// Package server is a Kubernetes API server in process.
package server
