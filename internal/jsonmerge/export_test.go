package jsonmerge

// PatchTree makes the patch of trees.
var PatchTree = patchTree
