package cards

import "deerbot/store"

// Stops returns the stop reasons seen so far, in order of firing.
func (v *RunView) Stops() []store.StopReason { return append([]store.StopReason(nil), v.stops...) }
