// Package channeltest is the conformance suite of channel adapters. [Run] runs the same tests over any adapter against a
// server that plays its platform; a new platform is done when it passes.
//
// An adapter's test makes a [Platform]: the adapter, the people on the other side, and ways to break things. Abilities
// that not every adapter has are found by type assertion, as the daemon finds them, and their tests are skipped when
// absent. The suite needs no sleeps: it waits for events and for what people see.
package channeltest
