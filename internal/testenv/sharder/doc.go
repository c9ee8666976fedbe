// Package sharder stands in for the sharder of kubernetes-controller-sharding in tests. It does what the sharder of
// version 0.9 does, as far as a shard can tell:
//
//   - state.go has the states of a shard's Lease, and what is done in each.
//   - hash.go has the ring of hashes, and key.go the keys of objects.
//   - assignment.go decides which shard an object belongs to, at its admission and at a sync.
//   - leases.go, sync.go and rings.go carry that out, as controllers of a manager. webhook.go serves the webhook.
//   - definition.go has the definition of a ControllerRing, and ring.go what is read of one.
//
// The decisions are functions of Leases, objects and a time, without a client or a clock.
package sharder
