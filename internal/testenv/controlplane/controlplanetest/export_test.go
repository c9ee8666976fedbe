package controlplanetest

// NamespacePrefix is tested apart, for what no name of a test in this package shows.
var NamespacePrefix = namespacePrefix
