package server

// StartShared starts what [Shared] returns, another one with each call.
var StartShared = startShared
