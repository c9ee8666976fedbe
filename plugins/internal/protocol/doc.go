// Package protocol has the Go code for the contract of plugins, which proto/espalier_plugins_v1.proto describes.
package protocol
