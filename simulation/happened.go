package simulation

import "github.com/espalier-dev/espalier/simulation/faults"

// Happened returns the faults that have struck up to now, each as a fault of one call.
func (w *World) Happened() []faults.Fault { return w.network.Happened() }
