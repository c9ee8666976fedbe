package oci

// Allowed reports whether a registry may have an address.
var Allowed = allowed
