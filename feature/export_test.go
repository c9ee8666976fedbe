package feature

import (
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Forget does what a root does when it finds the resource gone.
func Forget[T client.Object](node *Feature[T], uid types.UID) { node.states.Forget(uid) }
