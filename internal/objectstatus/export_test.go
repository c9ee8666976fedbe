package objectstatus

// StaticKinds are the kinds that Static knows.
var StaticKinds = staticKinds
