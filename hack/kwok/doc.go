// Package kwok is empty. Its module requires kwok, which plays the kubelets of the nodes in a simulated cluster, and
// keeps the requirements of kwok apart from those of the control plane. "make cluster" builds the program.
package kwok
